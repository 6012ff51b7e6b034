"""Reads the agent's TOML file and reports all mistakes in it at once, each with its line.

Unknown keys are refused, with the nearest known key as a hint: a misspelt option that is silently ignored is found
months later.
"""

import difflib
import ipaddress
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from whenabouts_edge.clock import simulated
from whenabouts_edge.config.packages import register_readers
from whenabouts_edge.config.settings import (  # fmt: skip
    BOARD,
    BROKER,
    CLOCK,
    GENERAL,
    GROUP,
    HEARTBEAT,
    LLRP,
    LLRP_READER,
    MQTT,
    NUMBER,
    OF_SERIAL_LINE,
    PUBLISHER,
    READER,
    REQUIRED,
    SPOOL,
    STATE,
    TABLES,
    BoardConfig,
    BrokerConfig,
    Config,
    GroupConfig,
    LineConfig,
    Option,
    PresenceConfig,
    ReaderConfig,
    StateConfig,
    own_options,
)
from whenabouts_hardware import READERS, Reader
from whenabouts_protocol.reading import MAX_ATTRS, MAX_PROCESSES
from whenabouts_protocol.topics import is_name

_TYPE_NAMES = {int: "a whole number", str: "text in quotes", bool: "true or false", list: "a list", NUMBER: "a number"}
_CLOCK_NEEDS = {"fixed": ("bound_us",), "sim": ("epoch_us", "anchor_ns")}
_CLOCK_KEYS = {"fixed": ("bound_us",), "sim": simulated.KEYS}
_OF_LINE = ("form", "columns", "key_field", "value_field", "unit")
_OF_TAGS = ("leave_ms", "presence_stream", "expected")
_OF_KIND = {key: kind for kind in READERS for key in READERS[kind].own_keys if key in READER}
_OF_KIND |= dict.fromkeys(_OF_LINE, "line")
_KINDS_WITH = {
    key: sorted(kind for kind in READERS if key in READERS[kind].own_keys)
    for facts in READERS.values()
    for key in facts.own_keys
}
_OWN_KEYS = tuple(key for key in _OF_KIND if key not in _OF_LINE)  # of built-in kinds
SHOWN_CHARS = 80  # most characters of a wrong value in a message
MAX_BYTES = 1 << 20  # a larger file is not a configuration
MAX_READERS = 32  # of one gateway: each needs a port and a thread
MAX_STATES = MAX_ATTRS - 4  # values of one gateway's state: they are attributes, next to the reserved ones
_OF_PRESENCE, _OF_MEASURE = ("reads", "leave_ms"), ("attr", "on_at", "off_at", "hold_ms")


class ConfigError(Exception):
    """A configuration that cannot be used; `mistakes` holds one line for each."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


def load(path: Path) -> Config:
    """The configuration in a file.

    Raises:
        ConfigError: the file cannot be read, is not TOML, or has mistakes.
    """
    return parse(read(path), str(path))


def read(path: Path) -> str:
    """The text of a configuration file.

    Raises:
        ConfigError: the file cannot be read, or is not text.
    """
    advice = "expected a TOML file in UTF-8; `whenabouts-edge sample-config` prints one"
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except PermissionError:
        raise ConfigError([f"{path}: cannot read it, found no permission; run it with sudo"]) from None
    except OSError as error:
        raise ConfigError([f"{path}: cannot read it, found {error.strerror or error}; {advice}"]) from None
    if len(data) > MAX_BYTES:
        raise ConfigError([f"{path}: found more than {MAX_BYTES} bytes; {advice}"])
    try:
        return data.decode("utf-8-sig")  # some editors begin a file with a byte-order mark
    except UnicodeError as error:
        raise ConfigError([f"{path}: found bytes that are no text ({error}); {advice}"]) from None


def parse(text: str, source: str = "config") -> Config:
    """The configuration in a TOML text; messages refer to it as `source`. Raises ConfigError as `load` does."""
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # RecursionError: thousands of brackets
        problem = f"{source}: found no TOML: {error}"
        raise ConfigError([f"{problem}; correct that line, `whenabouts-edge sample-config` shows the format"]) from None
    checker = _Checker(source, text)
    config = checker.check(document)
    if checker.mistakes:
        raise ConfigError([m for _, m in sorted(checker.mistakes)])
    return config


class _Checker:
    def __init__(self, source: str, text: str) -> None:
        self.mistakes: list[tuple[int, str]] = []
        self._source = source
        self._lines = dict(key_lines(text))

    def check(self, document: dict[str, Any]) -> Config:
        tables = {name: document.pop(name, {}) for name in TABLES}
        readers = document.pop("reader", [])
        states = document.pop("state", [])
        known_at_top = [*GENERAL, *TABLES, "reader", "state"]
        general = self._table("", 0, document, GENERAL, known_at_top)
        broker = self._table("broker", 0, tables["broker"], BROKER)
        clock = self._table("clock", 0, tables["clock"], CLOCK)
        spool = self._table("spool", 0, tables["spool"], SPOOL)
        heartbeat = self._table("heartbeat", 0, tables["heartbeat"], HEARTBEAT)
        board = self._table("board", 0, tables["board"], BOARD)
        given = tables["clock"] if isinstance(tables["clock"], dict) else {}
        right = given.get("source", clock["source"]) == clock["source"]  # else only the invalid source is reported
        for key in sorted(set(given) - {"source", *_CLOCK_KEYS.get(clock["source"], ())}) if right else ():
            self._mistake(("clock", 0, key), f'{key} belongs to another source than "{clock["source"]}"')
        for needed in _CLOCK_NEEDS.get(clock["source"], ()):
            if needed not in tables["clock"] and clock[needed] is None:
                self._mistake(("clock", 0, "source"), f'source "{clock["source"]}" needs {needed}, found none')
        if bool(broker["cert_file"]) != bool(broker["key_file"]):
            self._mistake(("broker", 0, "cert_file"), "found one of cert_file and key_file, expected both or none")
        if board["wifi_password_file"] and not board["wifi_ssid"]:
            self._mistake(
                ("board", 0, "wifi_password_file"), "found wifi_password_file without wifi_ssid, expected both"
            )
        if broker["password_file"] and not broker["username"]:
            self._mistake(("broker", 0, "password_file"), "found password_file without username, expected both")
        broker["client_id"] = broker["client_id"] or f"{general['site']}/{general['gateway']}"
        self._broker = BrokerConfig(**broker)
        group = self._table("group", 0, tables["group"], GROUP)
        read = self._readers(readers)
        return Config(
            site=general["site"],
            gateway=general["gateway"],
            state_dir=general["state_dir"],
            rules_file=general["rules_file"],
            metrics_file=general["metrics_file"],
            broker=self._broker,
            clock=clock,
            spool_limit_bytes=(spool["limit_mib"] or 0) << 20,
            commit_ms=spool["commit_ms"],
            heartbeat_ms=heartbeat["every_ms"],
            board=BoardConfig(**board),
            readers=read,
            group=self._group(tables["group"], group, self._states(states, read), general),
        )

    def _readers(self, tables: Any) -> tuple[ReaderConfig, ...]:
        if not isinstance(tables, list) or not 0 < len(tables) <= MAX_READERS:
            shown = f"{len(tables)} readers" if isinstance(tables, list) else _shown(tables)
            self._mistake(
                ("reader", 0, ""),
                f"found {shown}, expected 1 to {MAX_READERS} tables that begin with [[reader]] in double brackets",
            )
            return ()
        readers = []
        seen: dict[tuple[str, Any], int] = {}
        for number, table in enumerate(tables):
            facts = self._facts(number, table)
            own = {} if facts is None else own_options(table["kind"], facts)
            placed = {} if facts is None else LLRP_READER if facts.converse else PUBLISHER if facts.publishes else {}
            options = READER | own | placed
            if placed is PUBLISHER:
                del options["port"]
            values = self._table("reader", number, table, options)
            if placed:
                self._put_on_network(number, table, values)
                own = own | {key: option for key, option in placed.items() if key == "antennas"}
            for key in ("name", "port"):
                first = seen.setdefault((key, values[key]), number)
                if values[key] is not None and first != number:
                    self._mistake(
                        ("reader", number, key), f"{key} {values[key]!r} is already that of reader number {first + 1}"
                    )
            if facts is None or values["name"] is None or values["port"] is None:
                continue
            for key, kind in _OF_KIND.items():
                if values[key] != READER[key].default and values["kind"] != kind and key not in own:
                    self._mistake(
                        ("reader", number, key), f"{key} belongs to readers of kind {kind}, found {values['kind']}"
                    )
            given = {key: values.pop(key, None) for key in (*_OWN_KEYS, *own)}
            values["own"] = {key: value for key, value in given.items() if value is not None}
            values["line"] = self._line(number, values)
            values["stream"] = values["stream"] or f"{values['name']}/{'tags' if values['line'] is None else 'values'}"
            values["presence"] = self._presence(number, values)
            values["baud"] = facts.baud if values["baud"] is None else values["baud"]
            values["latency_us"] = facts.latency_us if values["latency_us"] is None else values["latency_us"]
            readers.append(ReaderConfig(**values))
        self._check_presence_streams(readers)
        return tuple(readers)

    def _put_on_network(self, number: int, table: dict[str, Any], values: dict[str, Any]) -> None:
        """Replace host and port by the URL of the reader; its port is on no serial line."""
        if "host" in values:
            host, port = values.pop("host"), values["port"]
            values["port"] = None if host is None else f"{LLRP}{f'[{host}]' if ':' in host else host}:{port}"
        else:
            values["port"] = self._where_published(number, table, values)
        for key in OF_SERIAL_LINE:
            if key in table:
                self._mistake(("reader", number, key), f"{key} belongs to a serial line, found kind {values['kind']}")

    def _where_published(self, number: int, table: dict[str, Any], values: dict[str, Any]) -> str | None:
        """The URL of a reader that publishes its events; None with a mistake if it has none or two."""
        listen, topic = values.pop("listen"), values.pop("topic")
        if (listen is None) is (topic is None):
            found = [key for key in ("listen", "topic") if key in table]
            if len(found) != 1:  # else its value is the mistake
                shown = " and ".join(found) or "neither listen nor topic"
                self._mistake(("reader", number, "kind"), f"found {shown}, expected one of listen and topic")
            return None
        if topic is not None and values["token_file"] is not None:
            self._mistake(("reader", number, "token_file"), "token_file belongs to listen, found topic")
        if topic is not None:
            values["broker"] = self._broker
            return f"{MQTT}{topic}"
        if values["token_file"] is None and not ipaddress.ip_address(urlsplit(listen).hostname or "").is_loopback:
            problem = "found listen beyond this machine without token_file, expected both: anybody could post there"
            self._mistake(("reader", number, "listen"), problem)
        return str(listen)

    def _facts(self, number: int, table: Any) -> Reader | None:
        """The facts of the kind of reader in a table, built in or of an installed package; None for an unknown kind."""
        kind = table.get("kind") if isinstance(table, dict) else None
        if not isinstance(kind, str):  # reported with the table's other mistakes
            return None
        if kind in READERS:
            return READERS[kind]
        problems = register_readers()
        if kind not in READERS:
            known = f"expected one of {', '.join(sorted(READERS))}"
            hint = f"{problems[kind]}; {known}" if kind in problems else known
            self._mistake(("reader", number, "kind"), f"kind: found {_shown(kind)}, {hint}")
        return READERS.get(kind)

    def _presence(self, number: int, values: dict[str, Any]) -> PresenceConfig | None:
        """Remove the presence options from the values; None without leave_ms."""
        leave_ms, stream, expected = (values.pop(key) for key in _OF_TAGS)
        if leave_ms is None:
            for key, value in (("presence_stream", stream), ("expected", expected)):
                if value is not None:
                    self._mistake(("reader", number, key), f"found {key} without leave_ms, expected both")
            return None
        if READERS[values["kind"]].reports_once:
            problem = f"leave_ms: found a reader of kind {values['kind']}, which reports a tag only once"
            self._mistake(("reader", number, "leave_ms"), f"{problem}; expected one that repeats tags while they stay")
        if values["line"] is not None and values["line"].key_field is None:
            self._mistake(("reader", number, "leave_ms"), "leave_ms needs a key: lines have one with key_field")
        return PresenceConfig(stream or f"{values['name']}/presence", leave_ms, tuple(expected or ()))

    def _check_presence_streams(self, readers: list[ReaderConfig]) -> None:
        """Visits are numbered per reader, so two readers must not publish theirs in one stream."""
        taken = {reader.stream for reader in readers}
        for number, reader in enumerate(readers):
            if reader.presence is None:
                continue
            if reader.presence.stream in taken:
                problem = f"stream {_shown(reader.presence.stream)} is already that of another reader or of readings"
                self._mistake(("reader", number, "presence_stream"), problem)
            taken.add(reader.presence.stream)

    def _line(self, number: int, values: dict[str, Any]) -> LineConfig | None:
        """Remove the line options from the values; None for readers of other kinds."""
        line = {key: values.pop(key) for key in _OF_LINE}
        line["columns"] = tuple(line["columns"] or ())
        if values["kind"] != "line":
            return None
        for key in ("key_field", "value_field"):
            if line["columns"] and line[key] is not None and line[key] not in line["columns"]:
                problem = (
                    f"found {key} {line[key]!r}, expected one of the columns {', '.join(filter(None, line['columns']))}"
                )
                self._mistake(("reader", number, key), problem)
        if line["form"] == "csv" and not line["columns"]:
            self._mistake(("reader", number, "columns"), "columns is missing: names of the values of a line")
        return LineConfig(**line)

    def _group(
        self, given: Any, group: dict[str, Any], states: tuple[StateConfig, ...], general: dict[str, Any]
    ) -> GroupConfig | None:
        if group["name"] is None:
            if states:
                self._mistake(("state", 0, ""), "found states but no group; set name and members in [group]")
            if group["members"] or group["stream"]:
                self._mistake(("group", 0, ""), "name is missing: the group that this gateway is a member of")
            return None
        unusable = group["members"] is None and "members" in given  # already reported as a mistake
        own = general["site"], general["gateway"]
        peers: dict[str, tuple[str, str]] = {}
        for member in group["members"] or ():
            site, _, gateway = member.rpartition("/")
            place = site or own[0], gateway
            if not all(is_name(part) for part in place if part is not None):
                self._mistake(
                    ("group", 0, "members"), f"found member {_shown(member)}, expected gateway or site/gateway"
                )
            elif place == own:
                continue
            elif gateway == own[1] or gateway in peers:
                self._mistake(("group", 0, "members"), f"found two members named {gateway}, expected unique names")
            else:
                peers[gateway] = place
        if not 0 < len(peers) < MAX_PROCESSES and not unusable:
            self._mistake(
                ("group", 0, "members"), f"found {len(peers)} other members, expected 1 to {MAX_PROCESSES - 1} of them"
            )
        return GroupConfig(group["name"], tuple(peers.values()), group["stream"] or f"{own[1]}/state", states)

    def _states(self, tables: Any, readers: tuple[ReaderConfig, ...]) -> tuple[StateConfig, ...]:
        if not isinstance(tables, list) or len(tables) > MAX_STATES:
            shown = f"{len(tables)} states" if isinstance(tables, list) else _shown(tables)
            self._mistake(
                ("state", 0, ""),
                f"found {shown}, expected at most {MAX_STATES} tables that begin with [[state]] in double brackets",
            )
            return ()
        streams = sorted({reader.stream for reader in readers})
        states, seen = [], set()
        for number, table in enumerate(tables):
            values = self._table("state", number, table, STATE)
            name, stream = values["name"], values["stream"]
            if name in seen:
                self._mistake(("state", number, "name"), f"name {name!r} is already that of another state")
            if stream is not None and streams and stream not in streams:
                known = ", ".join(streams)
                self._mistake(("state", number, "stream"), f"found stream {_shown(stream)}, expected one of {known}")
            if isinstance(table, dict):
                self._check_kind(number, table, values)
            if name is not None:
                seen.add(name)
                states.append(StateConfig(**values))
        return tuple(states)

    def _check_kind(self, number: int, table: dict[str, Any], values: dict[str, Any]) -> None:
        """A state is either a presence or a measure, and a measure has two thresholds."""
        if not any(key in table for key in _OF_MEASURE):
            return
        for key in _OF_PRESENCE:
            if key in table:
                self._mistake(("state", number, key), f"{key} belongs to a presence, found thresholds of a measure")
        for key in ("on_at", "off_at"):
            if key not in table:
                self._mistake(("state", number, ""), f"{key} is missing: a measure has two thresholds")
        if values["on_at"] is not None and values["on_at"] == values["off_at"]:
            self._mistake(("state", number, "off_at"), "found on_at equal to off_at, expected different thresholds")

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
                hint = _hint(key, known or list(options), _KINDS_WITH.get(key, []) if name == "reader" else [])
                self._mistake((name, number, key), f"unknown key {_shown(key)[1:-1]}; {hint}")
            elif type(value) not in (option.kind if isinstance(option.kind, tuple) else (option.kind,)):
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
        places = place, (table, number, ""), ("", 0, table)  # the last one for a table in the form `table = {...}`
        line = next((self._lines[p] for p in places if p in self._lines), 1)
        where = f"[{table}] " if table else ""
        self.mistakes.append((line, f"{self._source}:{line}: {where}{text}"))


def key_lines(text: str) -> Iterator[tuple[tuple[str, int, str], int]]:
    """((table, number of that table, key), line) of each table head and key that begins a line."""
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
    """The value as shown in a message, cut to a readable length."""
    try:
        shown = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, endless nesting
        return type(value).__name__
    return shown if len(shown) <= SHOWN_CHARS else shown[: SHOWN_CHARS - 3] + "..."


def _hint(key: str, known: list[str], kinds: list[str]) -> str:
    """What may have been meant by an unknown key. kinds: of readers that have it."""
    if kinds:
        return f"only readers of kind {' or '.join(kinds)} have it"
    near = difflib.get_close_matches(key, known, 1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
