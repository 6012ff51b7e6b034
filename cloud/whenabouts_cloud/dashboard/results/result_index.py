"""What jobs have published, as the page asks for it: results of a time or of a reading, late readings, figures, queries.

The newest MAX_RESULTS results and MAX_LATE readings of the side output are kept as Arrow tables, some 200 bytes each; the
figures of rules count all. A retraction takes its result out of what is shown. Cost: 2 us a result, once.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whenabouts_cloud.dashboard.results.outputs import LATE, Batches, Output, outputs_in
from whenabouts_cloud.dashboard.results.result_rows import KINDS, RETRACTED, ROWS, rows_of
from whenabouts_cloud.dashboard.results.rule_figures import RuleFigures
from whenabouts_cloud.delivery.published import INPUT, parquet_in
from whenabouts_cloud.landing.schema import STAMPED, of
from whenabouts_cloud.landing.store import Store

MAX_RESULTS = 200_000
MAX_LATE = 100_000
MAX_RETRACTED = 200_000
MAX_RULES = 200
PROBLEMS = 20
RELIST_S, REMOTE_RELIST_S = 0.5, 10.0  # between two looks for what is new: in folders, in object stores
SIDE = pa.schema([("rule", pa.string()), ("reason", pa.string()), *of(*STAMPED)])


class ResultIndex:
    """An index of the results of some places. `follow` belongs to one thread, all else to any."""

    def __init__(self, places: Sequence[Store], monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._places, self._monotonic_s = list(places), monotonic_s
        self._lock = threading.RLock()
        self._batches: dict[str, Batches] = {}
        self._queue: list[tuple[Output, str, Store, int]] = []
        self._rows: dict[str, list[pa.Table]] = {}  # by output
        self._late: dict[str, list[pa.Table]] = {}
        self._retracted: dict[str, None] = {}
        self._figures: dict[str, dict[str, RuleFigures]] = {}
        self._progress: dict[str, tuple[str, bytes]] = {}  # by output: its name and the text of its file
        self._problems: list[str] = []
        self._empty: list[str] = []  # places without an output
        self._dropped = 0
        self._relist_s = RELIST_S if all(one.local for one in self._places) else REMOTE_RELIST_S
        self._listed_s = -REMOTE_RELIST_S
        self._whole: tuple[int, pa.Table, pa.Table] | None = None
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
        rows, _ = self._tables()
        mask = pc.and_(pc.less_equal(rows["t_min"], to_us), pc.greater_equal(rows["t_max"], from_us))
        mask = pc.and_(mask, pc.greater(pc.list_value_length(rows["readings"]), 0))
        if rules is not None:
            mask = pc.and_(mask, pc.is_in(rows["rule"], value_set=pa.array(list(rules), pa.string())))
        found = rows.filter(mask)
        total = found.num_rows
        if total > most:
            order = pc.sort_indices(pc.fill_null(found["probability"], 1.0), sort_keys=[("", "descending")])
            found = found.take(order[:most])
        return [_with_ends(one) for one in found.to_pylist()], total

    def of_reading(self, site: str, gateway: str, boot: int, seq: int) -> dict[str, list[dict[str, Any]]]:
        """`results` that have a reading, at most 200, and its rows in the `side_output`."""
        rows, late = self._tables()
        lists = rows["readings"].combine_chunks()
        found: list[dict[str, Any]] = []
        for part in lists.chunks if isinstance(lists, pa.ChunkedArray) else [lists]:
            flat = part.flatten()
            same = pc.and_(pc.equal(pc.struct_field(flat, "boot"), boot), pc.equal(pc.struct_field(flat, "seq"), seq))
            same = pc.and_(same, pc.equal(pc.struct_field(flat, "gateway"), gateway))
            same = pc.fill_null(pc.and_(same, pc.equal(pc.struct_field(flat, "site"), site)), False)
            parents = pc.unique(part.value_parent_indices().filter(same))
            names = ["rule", "kind", "id", "key", "probability", "t_min", "t_max", "status"]
            found += rows.select(names).take(parents[:200]).to_pylist()
        side = late.filter(pc.and_(pc.equal(late["boot"], boot), pc.equal(late["seq"], seq))).to_pylist()
        told = [
            {"rule": x["rule"], "reason": x["reason"]} for x in side if (x["site"], x["gateway"]) == (site, gateway)
        ]
        return {"results": found, "side_output": told[:200]}

    def late(self, from_us: int, to_us: int, most: int) -> list[dict[str, Any]]:
        """Readings of the side output that overlap a time, each once."""
        _, late = self._tables()
        mask = pc.and_(pc.less_equal(late["t_min"], to_us), pc.greater_equal(late["t_max"], from_us))
        found = {
            (x["site"], x["gateway"], x["boot"], x["seq"]): x for x in late.filter(mask).slice(0, most).to_pylist()
        }
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
            self._changed()

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
                with folder.open(name) as file:
                    table = pq.read_table(file, use_threads=False)
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
            gone = pc.equal(rows["status"], RETRACTED)
            for one in rows["id"].filter(gone).to_pylist():
                self._retracted[one] = None
            while len(self._retracted) > MAX_RETRACTED:
                self._retracted.pop(next(iter(self._retracted)))
            rows = rows.filter(pc.invert(pc.fill_null(gone, False)))
            figures = self._figures.setdefault(output.store.uri, {})
            for rule in pc.unique(rows["rule"]).to_pylist():
                if rule in figures or len(figures) < MAX_RULES:
                    figures.setdefault(rule, RuleFigures()).add(rows.filter(pc.equal(rows["rule"], rule)))
            self._rows.setdefault(output.store.uri, []).append(rows)
            self._dropped += _bounded(self._rows, MAX_RESULTS)
            self._changed()

    def _take_late(self, output: Output, late: pa.Table) -> None:
        with self._lock:
            figures = self._figures.setdefault(output.store.uri, {})
            for one in late.group_by(["rule", "reason"]).aggregate([([], "count_all")]).to_pylist():
                if one["rule"] in figures or len(figures) < MAX_RULES:
                    figures.setdefault(one["rule"], RuleFigures()).add_late(str(one["reason"]), one["count_all"])
            self._late.setdefault(output.store.uri, []).append(late)
            _bounded(self._late, MAX_LATE)
            self._changed()

    def _changed(self) -> None:
        self._whole = None
        self.version += 1

    def _tables(self) -> tuple[pa.Table, pa.Table]:
        """All results that hold, and the side output."""
        with self._lock:
            if self._whole is None or self._whole[0] != self.version:
                rows = pa.concat_tables([ROWS.empty_table(), *(x for some in self._rows.values() for x in some)])
                if self._retracted:
                    gone = pc.is_in(rows["id"], value_set=pa.array(list(self._retracted), pa.string()))
                    rows = rows.filter(pc.invert(gone))
                late = pa.concat_tables([SIDE.empty_table(), *(x for some in self._late.values() for x in some)])
                self._whole = (self.version, rows.combine_chunks(), late.combine_chunks())
            return self._whole[1], self._whole[2]


def _bounded(tables: dict[str, list[pa.Table]], most: int) -> int:
    """Drop the oldest tables of the largest output until at most so many rows are left; return how many were dropped."""
    dropped = 0
    while (total := sum(x.num_rows for some in tables.values() for x in some)) > most:
        largest = max(tables.values(), key=lambda some: sum(x.num_rows for x in some))
        first = largest.pop(0)
        keep = max(0, first.num_rows - (total - most))
        dropped += first.num_rows - keep
        if keep:
            largest.insert(0, first.slice(first.num_rows - keep))
    return dropped


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
