"""Counting and aggregating the matches of a rule with COUNT, without listing them: all at once, or as a running shard.

Events are points in time: a reading is taken at the middle of its (moved) stamp, and stamps that are not points are counted.
Matches are counted by the stretch of time, EVERY long from 1970 on, that contains their last event. A stretch is emitted
when no event can fall into it any more: when the frontier, which is about ends of stamps, is past its end by half of the
longest stamp. An event in an emitted stretch is late.

At the limit of the counter (held events, live starts), new events go to the side output with the reason "limit".

Cost: that of `counter`, and an entry for each stretch that has events.
"""

import json
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts_cloud.blobs import joined, parted
from whenabouts_cloud.cep.count.counter import MOST, Counter, CountLimitError, Counts, counter
from whenabouts_cloud.cep.shard.events import Floats, Ints, beyond_time, columns_of, measured
from whenabouts_cloud.cep.shard.identities import Identities
from whenabouts_cloud.cep.shard.results import COUNT, count_rows
from whenabouts_cloud.cep.shard.shard import NO_BOUND_US, with_reason
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.frontier.rule import RuleFrontier
from whenabouts_cloud.frontier.times import FURTHEST_US
from whenabouts_cloud.rules.model import CepRule, Count
from whenabouts_cloud.shard import StepOutput, late_rows


class WholeCount(NamedTuple):
    """`counts` are rows of COUNT, `middles` is the number of stamps taken at their middle; the rest is as in `Whole`."""

    counts: pa.Table
    within: npt.NDArray[np.bool_]
    once: Ints
    middles: int


def counts_of(rule: CepRule, events: pa.Table) -> WholeCount:
    """Return all counts among events (`events.schema_of`), which may contain repeats."""
    within = ~beyond_time(events)
    at = np.flatnonzero(within)
    stored = Identities(rule)
    rows, keys = stored.add(events.take(pa.array(at)))
    once = at[rows]
    points = _points(rule, events.take(pa.array(once)))
    counting, emitted = _counter(rule), []
    order, done = np.argsort(points.t, kind="stable"), 0
    for begin, border in _borders(rule, points.t):
        some = order[done : np.searchsorted(points.t, border, sorter=order)]
        attributes = {name: column[some] for name, column in points.attributes.items()}
        counting.feed(points.types[some], keys[some], points.t[some], attributes=attributes)
        emitted.append(_rows(rule, stored, counting.advance(border), begin))
        done += len(some)
    return WholeCount(pa.concat_tables([COUNT.empty_table(), *emitted]), within, once, points.middles)


class CountShard:
    """The counter of one rule and key shard, with the identities of its events and the frontier; see `shard.CepShard`."""

    def __init__(self, rule: CepRule) -> None:
        self._rule, self._plan = rule, rule.plan()
        self._every_us = _count(rule).every_us or 0
        if not self._every_us:
            raise ValueError(
                f"rule {rule.name}: found COUNT without EVERY, expected it: a count over all time is never final"
            )
        self._counter = _counter(rule)
        self._stored = Identities(rule)
        self._frontier = RuleFrontier(rule)
        self._open: set[int] = set()  # begins of stretches that have events and are not emitted
        self._full = ""
        self.counts: Tally[str] = Tally()

    def step(self, tables: Mapping[str, pa.Table], watermarks: Sequence[Iterable[Watermark]]) -> StepOutput:
        """Feed the table "events"; return the counts that the watermarks of the step before make final."""
        events = tables["events"]
        beyond = beyond_time(events)
        side_output = [with_reason(events.filter(pa.array(beyond)), "beyond time")] if beyond.any() else []
        if beyond.any():
            events = events.filter(pa.array(~beyond))
        self.counts["beyond_time"] += int(beyond.sum())
        self._frontier.note_watermarks(events, watermarks)
        side_output.append(self._feed(events))
        emitted = [COUNT.empty_table()]
        frontier = self._frontier.value_us
        if frontier is not None:
            reached = _floor(frontier - (self._plan.longest + 1) // 2, self._every_us)
            for begin in sorted(self._open):
                if begin + self._every_us <= reached:
                    emitted.append(
                        _rows(self._rule, self._stored, self._counter.advance(begin + self._every_us), begin)
                    )
                    self._open.remove(begin)
            self._counter.advance(reached)
            self._stored.keep_from(reached - self._plan.window)
        rows = pa.concat_tables(emitted)
        self.counts["counts"] += rows.num_rows
        return StepOutput(rows, self.state(), late_rows(self._rule.name, pa.concat_tables(side_output)))

    def state(self) -> dict[str, Any]:
        """Counts since the shard was created or restored, and its current state, as JSON values."""
        held = self._counter.counters
        return {
            **self.counts,
            "rows_kept": len(self._stored),
            "keys_kept": held["keys"],
            "ungrouped_at": [],
            "full": self._full,
            **self._frontier.state(),
        }

    def snapshot(self) -> bytes:
        """The whole state."""
        stretches = json.dumps(sorted(self._open)).encode()
        return joined([self._counter.snapshot(), self._stored.snapshot(), self._frontier.snapshot(), stretches])

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot of the same rule.

        Raises:
            ValueError: another version wrote the snapshot.
        """
        counting, identities, frontier, stretches = parted(snapshot)
        self._counter = counter.restore(counting)
        self._stored.restore(identities)
        self._frontier.restore(frontier)
        self._open = set(json.loads(stretches))

    def _feed(self, events: pa.Table) -> pa.Table:
        """Feed events; return those for the side output."""
        rows, keys = self._stored.add(events)
        self.counts["repeats"] += events.num_rows - len(rows)
        self.counts["readings"] += len(rows)
        events = events.take(pa.array(rows))
        points = _points(self._rule, events)
        fed = self._counter.counters["fed_events"]
        try:
            out = self._counter.feed(points.types, keys, points.t, attributes=points.attributes)
        except CountLimitError as error:
            self._full = str(error).split(";")[0]
            self._stored.drop_last(len(rows))
            self.counts["limit"] += len(rows)
            return with_reason(events, "limit")
        self.counts["middles"] += points.middles
        self.counts["late"] += len(out.late)
        at = np.setdiff1d(np.arange(len(rows)), out.late - fed)
        self._open.update(np.unique(_floor(points.t[at], self._every_us)).tolist())
        return with_reason(events.take(pa.array(out.late - fed)), "late")


class _Points(NamedTuple):
    types: Ints
    t: Ints
    attributes: dict[str, Floats]
    middles: int


def _points(rule: CepRule, events: pa.Table) -> _Points:
    """Events at the middles of their stamps, with the numbers that conditions and aggregates read."""
    types, t, t_max, attributes = columns_of(rule, rule.plan(), events)
    lengths = np.zeros(len(t), np.int64) if t_max is None else t_max - t
    numbers = {f"#{name}": events[f"#{name}"].to_numpy() for name in measured(rule.count)}
    return _Points(types, t + lengths // 2, {**attributes, **numbers}, int((lengths > 0).sum()))


def _counter(rule: CepRule) -> Counter:
    aggregates = [(function, f"{name}.#{column}") for function, name, column in _count(rule).aggregates]
    return counter(rule.pattern, rule.type_names, k=NO_BOUND_US, aggregates=aggregates)


def _count(rule: CepRule) -> Count:
    if rule.count is None:
        raise ValueError(f"rule {rule.name}: found no COUNT, expected one")
    return rule.count


def _borders(rule: CepRule, t: Ints) -> list[tuple[int | None, int]]:
    """(begin, end) of the stretches that have events; without EVERY, a single one for all time."""
    every_us = _count(rule).every_us
    if every_us is None:
        return [(None, 4 * FURTHEST_US)]
    return [(begin, begin + every_us) for begin in np.unique(_floor(t, every_us)).tolist()]


def _floor(t: Any, every_us: int) -> Any:
    return t // every_us * every_us


def _rows(rule: CepRule, stored: Identities, out: Counts, begin: int | None) -> pa.Table:
    keys = stored.keys(out.keys) if rule.pattern.per_key else pa.nulls(len(out.keys), pa.string())
    return count_rows(rule, keys, begin, out.matches, out.matches < MOST, out.aggregates)
