"""What jobs have published, as the page asks for it: results of a time or of a reading, late readings, figures, queries.

The newest MAX_RESULTS results and MAX_LATE readings of the side output are kept as Arrow tables (see `kept_tables`), some
500 bytes each; the figures of rules count all. A retraction takes its result out of what is shown. Cost: 2 us a result,
once.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.dashboard.results.kept_tables import Tables, appended, drop_oldest, without
from whenabouts_cloud.dashboard.results.outputs import LATE, Batches, Output, outputs_in
from whenabouts_cloud.dashboard.results.result_rows import KINDS, RETRACTED, rows_of
from whenabouts_cloud.dashboard.results.rule_figures import RuleFigures
from whenabouts_cloud.delivery.published import INPUT, parquet_in
from whenabouts_cloud.delivery.result_files import table_of
from whenabouts_cloud.landing.schema import STAMPED, of
from whenabouts_cloud.landing.store import Store

MAX_RESULTS = 200_000
MAX_LATE = 100_000
MAX_RETRACTED = 200_000
MAX_RULES = 200
MOST_OF_READING = 200
PROBLEMS = 20
RELIST_S, REMOTE_RELIST_S = 0.5, 10.0  # between two looks for what is new: in folders, in object stores
OF_READING = ("rule", "kind", "id", "key", "probability", "t_min", "t_max", "status")
WHY = ("rule", "reason")
SIDE = pa.schema([("rule", pa.string()), ("reason", pa.string()), *of(*STAMPED)])


class ResultIndex:
    """An index of the results of some places. `follow` belongs to one thread, all else to any."""

    def __init__(self, places: Sequence[Store], monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._places, self._monotonic_s = list(places), monotonic_s
        self._lock = threading.RLock()
        self._batches: dict[str, Batches] = {}
        self._queue: list[tuple[Output, str, Store, int]] = []
        self._rows: dict[str, Tables] = {}  # by output
        self._late: dict[str, Tables] = {}
        self._retracted: dict[str, None] = {}
        self._figures: dict[str, dict[str, RuleFigures]] = {}
        self._progress: dict[str, tuple[str, bytes]] = {}  # by output: its name and the text of its file
        self._problems: list[str] = []
        self._empty: list[str] = []  # places without an output
        self._dropped = 0
        self._relist_s = RELIST_S if all(one.local for one in self._places) else REMOTE_RELIST_S
        self._listed_s = -REMOTE_RELIST_S
        self.version = 0

    def follow(self, budget_s: float) -> bool:
        """Read what is new for about this time; True if there is more to do at once.

        Raises:
            OSError: a place cannot be listed.
        """
        until_s = self._monotonic_s() + budget_s
        if not self._queue and self._monotonic_s() >= self._listed_s + self._relist_s:
            self._list()
        while self._queue:
            self._read(*self._queue.pop(0))
            if self._monotonic_s() >= until_s:
                break
        return bool(self._queue)

    def problems(self) -> list[str]:
        """Places without results, what could not be read, and what was forgotten."""
        with self._lock:
            kinds = ", ".join(f"{kind}/" for kind in KINDS)
            found = [f"{place}: no results yet, expected one of {kinds} there" for place in self._empty]
            found += self._problems
            if self._dropped:
                found.append(
                    f"found more than {MAX_RESULTS} results: the oldest {self._dropped} are counted, but not shown"
                )
            return found

    def arcs(
        self, from_us: int, to_us: int, most: int, rules: Sequence[str] | None
    ) -> tuple[list[dict[str, Any]], int]:
        """The most probable results that overlap a time and have readings, and how many there are.

        Each: rule, kind, id, key, probability, status, t_min, t_max, and a, b: its first and its last reading.
        """
        tables = self._tables(self._rows)
        places = [_indices(_overlapping(table, from_us, to_us, rules)) for table in tables]
        if not sum(map(len, places)):
            return [], 0
        owner = np.repeat(np.arange(len(tables)), [len(some) for some in places])
        row = np.concatenate(places)
        probability = np.concatenate(
            [np.asarray(pc.fill_null(x["probability"], 1.0))[some] for x, some in zip(tables, places, strict=True)]
        )
        chosen = np.argsort(-probability, kind="stable")[:most]
        found: list[dict[str, Any]] = [{}] * len(chosen)
        for number in np.unique(owner[chosen]).tolist():
            at = np.flatnonzero(owner[chosen] == number)
            taken = tables[number].take(pa.array(row[chosen[at]])).to_pylist()
            for place, one in zip(at.tolist(), taken, strict=True):
                found[place] = _with_ends(one)
        return found, len(row)

    def of_reading(self, site: str, gateway: str, boot: int, seq: int) -> dict[str, list[dict[str, Any]]]:
        """`results` that have a reading, at most MOST_OF_READING, and its rows in the `side_output`, as many."""
        results: list[dict[str, Any]] = []
        for table in self._tables(self._rows):
            lists = table["readings"].chunk(0)
            parents = pc.unique(lists.value_parent_indices().filter(_same(lists.flatten(), site, gateway, boot, seq)))
            results += table.select(OF_READING).take(parents[:MOST_OF_READING]).to_pylist()
        late: list[dict[str, Any]] = []
        for table in self._tables(self._late):
            late += table.filter(_same(table.to_struct_array(), site, gateway, boot, seq)).select(WHY).to_pylist()
        return {"results": results[:MOST_OF_READING], "side_output": late[:MOST_OF_READING]}

    def late(self, from_us: int, to_us: int, most: int) -> list[dict[str, Any]]:
        """Readings of the side output that overlap a time, each once."""
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        left = most
        for table in self._tables(self._late):
            rows = table.filter(_in_time(table, from_us, to_us)).slice(0, left)
            left -= rows.num_rows
            found |= {(x["site"], x["gateway"], x["boot"], x["seq"]): x for x in rows.to_pylist()}
        return list(found.values())

    def figures(self) -> dict[str, dict[str, Any]]:
        """The figures of each rule."""
        with self._lock:
            together: dict[str, RuleFigures] = {}
            for rules in self._figures.values():
                together |= rules
            return {rule: figures.value() for rule, figures in together.items()}

    def queries(self) -> list[dict[str, Any]]:
        """The progress of each query, as its file tells it: name, updated_us, started_us, batches, rules, recent."""
        with self._lock:
            files = list(self._progress.values())
        return [one for name, text in files if (one := _progress(name, text)) is not None]

    def _list(self) -> None:
        self._listed_s = self._monotonic_s()
        outputs = outputs_in(self._places)
        self._note_empty(outputs)
        for output in outputs:
            batches = self._batches.setdefault(output.store.uri, Batches(output))
            if batches.replaced():
                self._forget(output)
            self._queue += [(output, *new) for new in batches.new()]
            self._read_progress(output)

    def _note_empty(self, outputs: Sequence[Output]) -> None:
        """Remember the places that hold no output: a mistyped one looks like a job that has not begun."""
        uris = [output.store.uri for output in outputs]
        empty = [one.uri for one in self._places if not any(uri.startswith(f"{one.uri}/") for uri in uris)]
        with self._lock:
            if empty != self._empty:
                self._empty = empty
                self.version += 1

    def _forget(self, output: Output) -> None:
        with self._lock:
            for known in (self._rows, self._late, self._figures):
                known.pop(output.store.uri, None)
            self.version += 1

    def _read_progress(self, output: Output) -> None:
        try:
            text = output.store.read("_progress.json")[: 4 << 20]
        except OSError:
            return
        with self._lock:
            if self._progress.get(output.store.uri) != (output.name, text):
                self._progress[output.store.uri] = (output.name, text)
                self.version += 1

    def _read(self, output: Output, side: str, folder: Store, number: int) -> None:
        try:
            published_us = _published_us(folder)
            for name in parquet_in(folder):
                table = table_of(folder, name)
                if side == LATE:
                    self._take_late(output, table.select(SIDE.names).cast(SIDE))
                else:
                    self._take(output, rows_of(table, output.kind, published_us))
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            said = " ".join(str(error).split())[:150]
            text = f"{output.name}/{side or 'results'} {number}: found no readable batch ({said})"
            with self._lock:
                if len(self._problems) < PROBLEMS:
                    self._problems.append(text)

    def _take(self, output: Output, rows: pa.Table) -> None:
        with self._lock:
            gone = pc.fill_null(pc.equal(rows["status"], RETRACTED), False)
            retracted = rows["id"].filter(gone)
            if len(retracted):
                self._retracted |= dict.fromkeys(retracted.to_pylist())
                while len(self._retracted) > MAX_RETRACTED:
                    self._retracted.pop(next(iter(self._retracted)))
                for uri, kept in self._rows.items():
                    self._rows[uri] = without(kept, "id", retracted)
            rows = rows.filter(pc.invert(gone))
            if self._retracted:  # a retraction may be read before its result
                [rows] = without([rows], "id", pa.array(self._retracted, pa.string()))
            figures = self._figures.setdefault(output.store.uri, {})
            for rule in pc.unique(rows["rule"]).to_pylist():
                if rule in figures or len(figures) < MAX_RULES:
                    figures.setdefault(rule, RuleFigures()).add(rows.filter(pc.equal(rows["rule"], rule)))
            self._rows[output.store.uri] = appended(self._rows.get(output.store.uri, []), rows)
            self._dropped += drop_oldest(self._rows, MAX_RESULTS)
            self.version += 1

    def _take_late(self, output: Output, late: pa.Table) -> None:
        with self._lock:
            figures = self._figures.setdefault(output.store.uri, {})
            for one in late.group_by(["rule", "reason"]).aggregate([([], "count_all")]).to_pylist():
                if one["rule"] in figures or len(figures) < MAX_RULES:
                    figures.setdefault(one["rule"], RuleFigures()).add_late(str(one["reason"]), one["count_all"])
            self._late[output.store.uri] = appended(self._late.get(output.store.uri, []), late)
            drop_oldest(self._late, MAX_LATE)
            self.version += 1

    def _tables(self, kept: dict[str, Tables]) -> Tables:
        """The tables of all outputs that have rows; each column of one is a single chunk. Nothing is copied."""
        with self._lock:
            return [table for some in kept.values() for table in some if table.num_rows]


def _in_time(table: pa.Table, from_us: int, to_us: int) -> Any:
    return pc.and_(pc.less_equal(table["t_min"], to_us), pc.greater_equal(table["t_max"], from_us))


def _overlapping(table: pa.Table, from_us: int, to_us: int, rules: Sequence[str] | None) -> Any:
    """Which results overlap a time, have readings, and are of these rules."""
    mask = pc.and_(_in_time(table, from_us, to_us), pc.greater(pc.list_value_length(table["readings"]), 0))
    return mask if rules is None else pc.and_(mask, pc.is_in(table["rule"], value_set=pa.array(rules, pa.string())))


def _indices(mask: Any) -> Any:
    return np.flatnonzero(np.asarray(pc.fill_null(mask, False)))


def _same(rows: Any, site: str, gateway: str, boot: int, seq: int) -> Any:
    """Which rows of a struct array are of this reading."""
    mask = pc.and_(pc.equal(pc.struct_field(rows, "boot"), boot), pc.equal(pc.struct_field(rows, "seq"), seq))
    mask = pc.and_(mask, pc.equal(pc.struct_field(rows, "gateway"), gateway))
    return pc.fill_null(pc.and_(mask, pc.equal(pc.struct_field(rows, "site"), site)), False)


def _with_ends(one: dict[str, Any]) -> dict[str, Any]:
    readings = sorted(one.pop("readings"), key=lambda x: (np.add(x["t_min"] or 0, x["t_max"] or 0), str(x["stream"])))
    return {**one, "a": {**readings[0], "key": one["key"]}, "b": {**readings[-1], "key": one["key"]}}


def _published_us(folder: Store) -> int | None:
    try:
        found = json.loads(folder.read(INPUT)).get("published_us")
    except (OSError, ValueError, AttributeError):
        return None
    return found if type(found) is int else None


def _progress(name: str, text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
        return {
            "name": name, "updated_us": int(found["updated_us"]), "started_us": int(found["started_us"]),
            "batches": int(found["batches"]), "rules": dict(found["rules"]), "recent": list(found["recent"])[-200:],
        }  # fmt: skip
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
