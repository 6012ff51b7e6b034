"""Reads the agent's TOML file and says everything that is wrong with it at once, each mistake with its line.

Unknown keys are refused with the nearest known one: a misspelt option that is silently ignored is found months later.
"""

import difflib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whenabouts_edge.settings import (
    BEAT,
    BROKER,
    CLOCK,
    GENERAL,
    READER,
    REQUIRED,
    SPOOL,
    TABLES,
    BrokerConfig,
    Config,
    Option,
    ReaderConfig,
)  # fmt: skip
from whenabouts_hardware.readers import READERS

_TYPE_NAMES = {int: "a whole number", str: "text in quotes", bool: "true or false"}
_CLOCK_NEEDS = {"fixed": ("bound_us",), "sim": ("epoch_us", "anchor_ns")}
_SIM_KEYS = ("epoch_us", "anchor_ns", "speed_milli", "offset_us", "drift_ppm", "base_bound_us", "assumed_drift_ppm")
_CLOCK_KEYS = {"fixed": ("bound_us",), "sim": _SIM_KEYS}
SHOWN_CHARS = 80  # of a wrong value in a message
MAX_READERS = 32  # one gateway: each is a port and a thread


class ConfigError(Exception):
    """A configuration that cannot be used; `mistakes` holds one line for each."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


def load(path: Path) -> Config:
    """The configuration in a file.

    Raises:
        ConfigError: it cannot be read, is no TOML, or has mistakes.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise ConfigError([f"{path}: cannot read ({error}); make one with `whenabouts-edge sample-config`"]) from None
    return parse(text, str(path))


def parse(text: str, source: str = "config") -> Config:
    """The configuration in a TOML text; source names it in messages. Raises ConfigError as `load` does."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # beside its own ValueError: thousands of digits, of brackets
        raise ConfigError([f"{source}: no TOML: {error}"]) from None
    checker = _Checker(source, text)
    config = checker.check(document)
    if checker.mistakes:
        raise ConfigError([m for _, m in sorted(checker.mistakes)])
    return config


class _Checker:
    def __init__(self, source: str, text: str) -> None:
        self.mistakes: list[tuple[int, str]] = []
        self._source = source
        self._lines = dict(_key_lines(text))

    def check(self, document: dict[str, Any]) -> Config:
        tables = {name: document.pop(name, {}) for name in TABLES}
        readers = document.pop("reader", [])
        known_at_top = [*GENERAL, *TABLES, "reader"]
        general = self._table("", 0, document, GENERAL, known_at_top)
        broker = self._table("broker", 0, tables["broker"], BROKER)
        clock = self._table("clock", 0, tables["clock"], CLOCK)
        spool = self._table("spool", 0, tables["spool"], SPOOL)
        beat = self._table("beat", 0, tables["beat"], BEAT)
        clock_keys = set(tables["clock"]) if isinstance(tables["clock"], dict) else set()
        for key in sorted(clock_keys - {"source", *_CLOCK_KEYS.get(clock["source"], ())}):
            self._mistake(("clock", 0, key), f'{key} belongs to another source than "{clock["source"]}"')
        for needed in _CLOCK_NEEDS.get(clock["source"], ()):
            if needed not in tables["clock"] and clock[needed] is None:
                self._mistake(("clock", 0, "source"), f'source "{clock["source"]}" needs {needed}, found none')
        if bool(broker["cert_file"]) != bool(broker["key_file"]):
            self._mistake(("broker", 0, "cert_file"), "found one of cert_file and key_file, expected both or none")
        if broker["password_file"] and not broker["username"]:
            self._mistake(("broker", 0, "password_file"), "found password_file without username, expected both")
        return Config(
            site=general["site"],
            gateway=general["gateway"],
            state_dir=general["state_dir"],
            rules_file=general["rules_file"],
            broker=BrokerConfig(**broker),
            clock=clock,
            spool_limit_bytes=(spool["limit_mib"] or 0) << 20,
            commit_ms=spool["commit_ms"],
            beat_ms=beat["every_ms"],
            readers=self._readers(readers),
        )

    def _readers(self, tables: Any) -> tuple[ReaderConfig, ...]:
        if not isinstance(tables, list) or not 0 < len(tables) <= MAX_READERS:
            found = f"{len(tables)} readers" if isinstance(tables, list) else _shown(tables)
            self._mistake(
                ("reader", 0, ""),
                f"found {found}, expected 1 to {MAX_READERS} tables that begin with [[reader]] in double brackets",
            )
            return ()
        readers = []
        seen: dict[tuple[str, Any], int] = {}
        for number, table in enumerate(tables):
            values = self._table("reader", number, table, READER)
            for key in ("name", "port"):
                first = seen.setdefault((key, values[key]), number)
                if values[key] is not None and first != number:
                    self._mistake(
                        ("reader", number, key), f"{key} {values[key]!r} is already that of reader number {first + 1}"
                    )
            facts = READERS.get(values["kind"])
            if facts is None or values["name"] is None or values["port"] is None:
                continue
            for key in ("region", "read_power_cdbm"):
                if values[key] is not None and values["kind"] != "m6e":
                    self._mistake(
                        ("reader", number, key), f"{key} belongs to readers of kind m6e, found {values['kind']}"
                    )
            values["stream"] = values["stream"] or f"{values['name']}/tags"
            values["baud"] = facts.baud if values["baud"] is None else values["baud"]
            values["latency_us"] = facts.latency_us if values["latency_us"] is None else values["latency_us"]
            readers.append(ReaderConfig(**values))
        return tuple(readers)

    def _table(
        self, name: str, number: int, table: Any, options: dict[str, Option], known: list[str] | None = None
    ) -> dict[str, Any]:
        values = {key: None if o.default is REQUIRED else o.default for key, o in options.items()}
        if not isinstance(table, dict):
            self._mistake((name, number, ""), f"found {_shown(table)}, expected a table")
            return values
        for key, value in table.items():
            option = options.get(key)
            if option is None:
                near = difflib.get_close_matches(key, known or list(options), 1)
                hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known or options)}"
                self._mistake((name, number, key), f"unknown key {_shown(key)[1:-1]}{hint}")
            elif type(value) is not option.kind:
                self._mistake((name, number, key), f"{key}: found {_shown(value)}, expected {_TYPE_NAMES[option.kind]}")
            elif option.test and not option.test(value):
                self._mistake((name, number, key), f"{key}: found {_shown(value)}, expected {option.expected}")
            else:
                values[key] = value
        for key, option in options.items():
            if option.default is REQUIRED and key not in table:
                self._mistake((name, number, ""), f"{key} is missing: {option.about}")
        return values

    def _mistake(self, place: tuple[str, int, str], text: str) -> None:
        table, number, _ = place
        places = place, (table, number, ""), ("", 0, table)  # the last for a table written as `table = {...}`
        line = next((self._lines[p] for p in places if p in self._lines), 1)
        where = f"[{table}] " if table else ""
        self.mistakes.append((line, f"{self._source}:{line}: {where}{text}"))


def _key_lines(text: str) -> Iterator[tuple[tuple[str, int, str], int]]:
    """((table, number of that table, key), line) for each table head and key, as far as they begin a line."""
    table, counts = "", {"": 0}
    for line, content in enumerate(text.split("\n"), 1):
        head = re.match(r"\s*\[\[?\s*([A-Za-z0-9_-]+)\s*\]\]?", content)
        key = re.match(r"\s*([A-Za-z0-9_-]+)\s*=", content)
        if head:
            table = head[1]
            counts[table] = counts.get(table, -1) + 1
            yield (table, counts[table], ""), line
        elif key:
            yield (table, counts[table], key[1]), line


def _shown(value: object) -> str:
    """The value as a message shows it, cut to a readable length."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, nesting without end
        return type(value).__name__
    return shown if len(shown) <= SHOWN_CHARS else shown[: SHOWN_CHARS - 3] + "..."
