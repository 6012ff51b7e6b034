"""Counts of the matches of each key, and aggregates over them, without building a match.

The number of matches grows with the window to the power of the pattern's length. Time and memory here grow with the number
of first events in a window.

The counter takes sequences of points in time, with negation anywhere, alternatives, repetitions and NEXT or STRICT, provided
that each condition is on a single event (`pattern.countable`); other patterns are refused. Events are held until the
frontier is past them, then counted in time order. A match is emitted once the frontier is past its last event and, if a
negation reaches beyond that, past the window of its first event. So at the end, for any order of arrival, the emitted counts
are those of the matches that `detect` lists; the engine emits some matches earlier.

Counts are exact up to MOST; a count of MOST means MOST or more. Aggregates are floating-point numbers: sums of whole numbers
are exact below 2^53. Events without the value (nan) are left out of sums and averages, as in SQL; the result is nan if no
event has the value. Late events are not counted but reported.

Cost: Table 1 at any window from 40 to 160 (0.4 to 200 matches an event) 0.3 us an event and core with one key and 0.6 with
1024, measured on a loaded machine; with a sum 0.4 and 0.8. Memory: 8 bytes for each start and place, and 32 more for each
measure.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whenabouts_cloud.cep.count.state import (
    GREATEST,
    KINDS,
    LEAST,
    META,
    NUMBER,
    RESULT,
    SUM,
    KeyResults,
    State,
    larger,
    more_held,
    more_queue,
    more_rows,
    more_slots,
    new_state,
)
from whenabouts_cloud.cep.count.step import new_step
from whenabouts_cloud.cep.count.sweep import (
    DONE,
    MORE_HELD,
    MORE_QUEUE,
    MORE_ROWS,
    MORE_SLOTS,
    MOST,
    Events,
    Machine,
    process_events,
)
from whenabouts_cloud.cep.kernel.conditions import of_columns
from whenabouts_cloud.cep.kernel.layout import FOREVER
from whenabouts_cloud.cep.runtime import validate
from whenabouts_cloud.cep.runtime.checksum import opened, with_checksum
from whenabouts_cloud.cep.runtime.disorder import Disorder, Order
from whenabouts_cloud.jit import Array
from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.pattern.countable import (
    LIMIT,
    STAMPS,
    Aggregate,
    Countable,
    NotCountableError,
    Tables,
    countable,
    places_of,
)
from whenabouts_cloud.pattern.plan import Plan

__all__ = ["MOST", "Counter", "CountLimitError", "Counts", "NotCountableError", "counter"]

HELD_EVENTS = 1 << 26  # most events before the frontier passes them, a new block included: 2 GB
LIVE_STARTS = 1 << 26  # most live starts, a new block included; feed refuses blocks beyond these limits
VERSION = 3

_GROW = {MORE_HELD: more_held, MORE_SLOTS: more_slots, MORE_ROWS: more_rows, MORE_QUEUE: more_queue}


class CountLimitError(RuntimeError):
    """A block would exceed a limit. None of its events is stored."""


@dataclass(frozen=True)
class Counts:
    """Results of one call: for each key with new matches, ascending, their number and aggregates.

    `aggregates` is (keys, aggregates), nan where no match has the value. `late` are the indices, over all events fed, of the
    late events, which are not counted. A pattern ACROSS KEYS has the single key 0.
    """

    keys: Array
    matches: Array
    aggregates: Array
    late: Array


@dataclass(frozen=True)
class Totals:
    """Sums of all results so far; `exact` is False if a count was MOST, which means MOST or more."""

    matches: int
    aggregates: dict[str, float]
    exact: bool


class Counter:
    """Counts the matches of one pattern over one stream of events; see the module docstring. Created by `counter`."""

    def __init__(self, countable: Countable, disorder: Disorder, by_source: bool) -> None:
        self._countable, self._disorder, self._by_source = countable, disorder, by_source
        self._measures, places = countable.tables.reads.shape
        leads = int(countable.tables.limits[LIMIT.leads])
        self._state = new_state(len(countable.values), leads, 1 + places + leads, self._measures * KINDS * places)
        self._fed = self._late = self._matches = 0
        self._exact = True
        self._measured = _nothing(self._measures)

    @property
    def totals(self) -> Totals:
        """Totals over all keys since the start. Callers add up totals by key: they would grow with the keys ever seen."""
        [row] = self._aggregated(self._measured[None])
        return Totals(self._matches, dict(zip(self._countable.names, map(float, row), strict=True)), self._exact)

    @property
    def frontier(self) -> int:
        """Time before which all events have arrived; -2^62 before the first event or frontier."""
        return self._disorder.frontier

    @property
    def counters(self) -> dict[str, int]:
        """Sizes of the state, and numbers of events fed and late."""
        meta = self._state.meta
        return {
            "held_events": int(meta[META.held]), "keys": int(meta[META.keys]), "live_starts": int(meta[META.live]),
            "state_bytes": sum(array.nbytes for array in self._state), "fed_events": self._fed, "late_events": self._late,
        }  # fmt: skip

    def feed(
        self, type_code: Any, key: Any, t: Any, source: Any = None, attributes: Mapping[str, Any] | None = None
    ) -> Counts:
        """Feeds events in the order of arrival, columns of equal length; `attributes` are columns of numbers by name.

        Raises:
            ValueError: a column is missing, or has another length, kind or range than expected; no event is stored.
            CountLimitError: there are too many events or starts; no event is stored.
        """
        times = validate.times("t", t, None)
        count = len(times)
        kinds = validate.codes(type_code, count, len(self._countable.type_mask))
        keys = validate.column("key", key, count)
        if self._by_source and source is None:
            raise ValueError("source: found none, expected a column of sources for order source")
        sources = validate.column("source", source, count) if self._by_source else None
        read = self._columns(attributes or {}, times)
        self._check_room(count)
        mask = self._masks(kinds, read)
        before = self._disorder.frontier
        frontier = self._disorder.after(times, sources)
        late = times < np.concatenate(([before], frontier))[:-1]
        matchable = self._countable.tables.limits[LIMIT.window] >= 0
        rows = np.flatnonzero(~late & (mask != 0) & matchable)
        values = np.empty((len(rows), len(self._countable.values)))
        for place, name in enumerate(self._countable.values):
            values[:, place] = read[name][rows]
        gone = np.flatnonzero(late) + self._fed
        self._fed += count
        self._late += len(gone)
        keys = keys[rows] if self._countable.per_key else np.zeros(len(rows), np.int64)
        return self._run(times[rows], keys, mask[rows], values, frontier[rows], gone)

    def advance(self, frontier: int | Mapping[int, int]) -> Counts:
        """Raises the frontier, for all or by source, and returns the matches that are final then. It never falls."""
        if isinstance(frontier, Mapping) and not self._by_source:
            raise ValueError("frontier by source: found order kbound, expected source, or one number for all")
        self._disorder.advance(frontier)
        none = np.empty(0, np.int64)
        return self._run(none, none, none, np.empty((0, len(self._countable.values))), none, none)

    def finish(self) -> Counts:
        """Returns the remaining matches; no more events may be fed."""
        return self.advance(FOREVER)

    def snapshot(self) -> bytes:
        """The state as bytes, for `counter.restore`."""
        given = self._countable
        header = {
            "version": VERSION, "conditions": given.conditions, "columns": given.columns, "values": given.values,
            "aggregates": given.aggregates, "names": given.names, "per_key": given.per_key, "by_source": self._by_source,
            "fed": self._fed, "late": self._late, "matches": self._matches, "exact": self._exact,
        }  # fmt: skip
        arrays: dict[str, Array] = {
            "header": np.frombuffer(json.dumps(header).encode(), np.uint8),
            "type_mask": given.type_mask, "measured": self._measured, **self._disorder.arrays,
        }  # fmt: skip
        for part, kind in ((given.tables, "tables"), (self._state, "state")):
            arrays |= {f"{kind}.{name}": array for name, array in part._asdict().items()}
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # the stub takes the array names for options
        return with_checksum([file.getvalue()])

    def _columns(self, attributes: Mapping[str, Any], times: Array) -> dict[str, Array]:
        columns: dict[str, Array] = dict.fromkeys(STAMPS, times)
        for name in self._countable.columns:
            if name not in attributes:
                raise ValueError(
                    f"attributes: found {', '.join(attributes) or 'none'}, expected {name} too, which the pattern reads"
                )
            columns[name] = np.ascontiguousarray(attributes[name], np.float64)
            if columns[name].shape != times.shape:
                raise ValueError(f"attribute {name}: found shape {columns[name].shape}, expected {times.shape}")
        return columns

    def _check_room(self, count: int) -> None:
        for what, held, most in (("held events", META.held, HELD_EVENTS), ("live starts", META.live, LIVE_STARTS)):
            if self._state.meta[held] + count > most:
                raise CountLimitError(
                    f"{what}: found {self._state.meta[held]} and a block of {count}, expected at most {most}; nothing is "
                    "taken in: advance the frontier, feed smaller blocks or narrow the window"
                )

    def _masks(self, kinds: Array, columns: dict[str, Array]) -> Array:
        """For each event, the bits of the terms that it satisfies."""
        mask: Array = self._countable.type_mask[kinds]
        for term, types, steps in self._countable.conditions:
            rows = np.flatnonzero(np.isin(kinds, types))
            mask[rows[of_columns(steps, columns, rows)]] |= 1 << term
        return mask

    def _run(self, t: Array, key: Array, mask: Array, values: Array, frontier: Array, late: Array) -> Counts:
        """Runs the kernel until it is done; after each call, enlarges the array that it reports as full."""
        self._state.meta[META.event] = self._state.meta[META.emitted] = 0
        self._state.meta[META.calls] += 1
        events = Events(t, key, mask, values, frontier)
        emitted = KeyResults(np.empty((64, len(RESULT)), np.int64), np.empty((64, self._measures, KINDS)))
        tables, step = self._countable.tables, new_step(self._countable.tables, self._state)
        while True:
            wanted = process_events(Machine(tables, self._state, emitted, step), events, self._disorder.frontier)
            if wanted == DONE:
                break
            if wanted in _GROW:
                self._state = _GROW[wanted](self._state)
                step = new_step(tables, self._state) if wanted == MORE_HELD else step
            else:
                emitted = KeyResults(larger(emitted.rows), larger(emitted.measured))
        count = int(self._state.meta[META.emitted])
        rows, measured = _by_key(emitted.rows[:count], emitted.measured[:count])
        self._add(rows[:, RESULT.matches], measured)
        return Counts(rows[:, RESULT.key].copy(), rows[:, RESULT.matches].copy(), self._aggregated(measured), late)

    def _add(self, matches: Array, measured: Array) -> None:
        self._matches += (int((matches >> 31).sum()) << 31) + int((matches & (1 << 31) - 1).sum())
        self._exact = self._exact and not (matches == MOST).any()
        self._measured = _joined(np.concatenate((self._measured[None], measured)), np.zeros(1, np.int64))[0]

    def _aggregated(self, measured: Array) -> Array:
        aggregated = np.full((len(measured), len(self._countable.aggregates)), np.nan)
        for n, (function, m) in enumerate(self._countable.aggregates):
            some = measured[:, m, NUMBER] > 0
            one = measured[some, m]
            aggregated[some, n] = {
                "sum": one[:, SUM], "min": one[:, LEAST], "max": one[:, GREATEST], "avg": one[:, SUM] / one[:, NUMBER],
            }[function]  # fmt: skip
        return aggregated


def _nothing(measures: int) -> Array:
    return np.tile([0.0, 0.0, np.inf, -np.inf], (measures, 1))


def _by_key(rows: Array, measured: Array) -> tuple[Array, Array]:
    """One row for each key, ascending; the several rows of a key that was forgotten in between are added up."""
    order = np.argsort(rows[:, RESULT.key], kind="stable")
    rows, measured = rows[order], measured[order]
    starts = np.flatnonzero(np.concatenate(([True], rows[1:, RESULT.key] != rows[:-1, RESULT.key]))[: len(rows)])
    if len(starts) == len(rows):
        return rows, measured
    sums = np.add.reduceat(rows[:, RESULT.matches], starts)
    sums[np.add.reduceat(rows[:, RESULT.matches].astype(np.float64), starts) >= float(MOST)] = MOST
    return np.column_stack((rows[starts, RESULT.key], sums)), _joined(measured, starts)


def _joined(measured: Array, starts: Array) -> Array:
    """Measures of each group of rows; a group begins at each start."""
    merged = np.empty((len(starts), *measured.shape[1:]))
    for kind, ufunc in ((NUMBER, np.add), (SUM, np.add), (LEAST, np.minimum), (GREATEST, np.maximum)):
        merged[:, :, kind] = ufunc.reduceat(measured[:, :, kind], starts, axis=0)
    return merged


class _Counters:
    """Counters of matches: created by calling `counter`, or by `counter.restore` from a snapshot."""

    def __call__(
        self, pattern: Pattern | Plan, type_names: Sequence[str], k: int | None = None, order: Order = "kbound",
        sources: Sequence[int] | None = None, aggregates: Sequence[Aggregate] = (),
    ) -> Counter:  # fmt: skip
        """Create a counter of the matches of a pattern, over type codes that are places in `type_names`.

        `aggregates` are (function, "ELEMENT.COLUMN") with sum, min, max or avg over all matches: ("sum", "d.value"). The
        element is a name of `Pattern.names`; the name of a repeated element means all its repetitions. For a plan, the
        element is the number of the place. `k` in ticks is needed for order `kbound`.

        Raises:
            NotCountableError: the matches of this pattern cannot be counted without listing them; the text says why.
            ValueError: an argument has an unknown value, or k is missing.

        >>> c = counter(Pattern.parse("SEQ(A, B) WITHIN 10"), ["A", "B"], k=0, aggregates=[("max", "B.value")])
        >>> out = c.feed([0, 0, 1], [7, 7, 7], [1, 2, 3], attributes={"value": [0.0, 0.0, 5.0]})
        >>> out.matches.tolist(), c.finish().matches.tolist(), c.totals.aggregates
        ([], [2], {'max(B.value)': 5.0})
        """
        if isinstance(pattern, Plan):
            plan = pattern
            places = {str(place): [place] for place in range(plan.width)}
        else:
            plan, places = pattern.plan(type_names), places_of(pattern.names)
        counted = countable(plan, len(type_names), aggregates, places)
        return Counter(counted, Disorder(order, k, None if sources is None else list(sources)), order == "source")

    def restore(self, blob: bytes) -> Counter:
        """Restore a counter from a snapshot.

        Raises:
            ValueError: the bytes are no snapshot, damaged, or of another version.
        """
        with np.load(io.BytesIO(opened(blob)), allow_pickle=False) as file:
            arrays = dict(file)
        header = json.loads(arrays["header"].tobytes())
        if header["version"] != VERSION:
            raise ValueError(f"snapshot: found version {header['version']}, expected {VERSION}; feed the events again")
        tables = Tables(*(arrays[f"tables.{name}"] for name in Tables._fields))
        state = State(*(arrays[f"state.{name}"] for name in State._fields))
        conditions = tuple(
            (t, tuple(types), tuple(tuple(step) for step in steps)) for t, types, steps in header["conditions"]
        )
        counted = Countable(
            tables, arrays["type_mask"], conditions, tuple(header["columns"]), tuple(header["values"]),
            tuple((f, m) for f, m in header["aggregates"]), tuple(header["names"]), header["per_key"],
        )  # fmt: skip
        one = Counter(counted, Disorder.of(arrays), header["by_source"])
        one._state, one._measured = state, arrays["measured"]
        one._fed, one._late, one._matches, one._exact = (header[n] for n in ("fed", "late", "matches", "exact"))
        return one


counter = _Counters()
