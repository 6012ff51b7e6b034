"""Goods that left without being paid for: the truth, the rule's exact matches, and the results of a naive engine.

Pure. `SEQ(shelf, !till, exit) WITHIN w PER key` is evaluated in three ways: on true times; on the stamps that landed, by the
definition of CERTAIN; and by an engine that assumes its input to be in order. Cost: cubic in the sightings of one key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from whenabouts_sim.judge.placement import Landed, Placement, ReadingId, grouped
from whenabouts_sim.judge.truth import PairScore
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.world import SimReader

Theft = tuple[ReadingId, ReadingId]
"""The readings at the shelf and at the exit."""


@dataclass(frozen=True)
class TheftRule:
    """`SEQ(shelf, !till, exit) WITHIN window_us PER key` between the streams of three readers."""

    shelf: SimReader
    till: SimReader
    exit: SimReader
    window_us: int


@dataclass(frozen=True)
class TheftSummary:
    """Numbers of goods in a run. `stolen`: goods that truly left unpaid, by the sightings that landed.

    `job`, `by_arrival`, `by_stamp`: goods reported by the job, by a naive engine in the order in which readings landed, and
    by the same engine in the order of plain timestamps. `expected_matches`, `unexpected`, `absent`: the rule's matches by
    its definition, and how the job's matches differ from them.
    """

    stolen: int
    job: PairScore
    by_arrival: PairScore
    by_stamp: PairScore
    expected_matches: int
    matches_repeated: int
    unexpected: int
    absent: int

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and dictionaries."""
        return asdict(self)

    @property
    def exact(self) -> bool:
        """True if the job emitted the rule's matches, once each, and accused nobody wrongly."""
        return not (self.job.false or self.matches_repeated or self.unexpected or self.absent)


def stolen_goods(rule: TheftRule, emitted: Iterable[EmittedFrame]) -> set[str]:
    """Keys that were at the shelf, then at the exit, and not at the till between, by true time."""
    detected = set()
    for key, of_key in grouped(emitted, lambda entry: entry.key).items():
        first, paid, last = (
            [entry.true_us for entry in of_key if entry.reader == reader.name]
            for reader in (rule.shelf, rule.till, rule.exit)
        )
        pairs = [(a, e) for a in first for e in last if 0 < e - a <= rule.window_us]
        if any(not any(a < c < e for c in paid) for a, e in pairs):
            detected.add(key)
    return detected


def certain_thefts(rule: TheftRule, landed: Iterable[Landed]) -> set[Theft]:
    """The rule's matches by definition: order and window hold and no till reading lies between, for every choice of times
    in the stamps."""
    unique = {row.id: row for row in landed}.values()
    detected = set()
    for of_key in grouped(unique, lambda row: row.key).values():
        first, paid, last = (_at(reader, of_key) for reader in (rule.shelf, rule.till, rule.exit))
        for a in first:
            for e in last:
                in_order = a.t_max < e.t_min and e.t_max - a.t_min <= rule.window_us
                if in_order and all(c.t_max <= a.t_min or c.t_min >= e.t_max for c in paid):
                    detected.add((a.id, e.id))
    return detected


def naive_thefts(rule: TheftRule, landed: Iterable[Landed]) -> set[str]:
    """Keys found by an engine that assumes the given order and takes the middle of a stamp for its time."""
    at_shelf: dict[str, int] = {}
    detected = set()
    for row in landed:
        where, middle_us = (row.gateway, row.stream), (row.t_min + row.t_max) // 2
        if where == _where(rule.shelf):
            at_shelf[row.key] = middle_us
        elif where == _where(rule.till):
            at_shelf.pop(row.key, None)
        elif where == _where(rule.exit) and row.key in at_shelf and middle_us - at_shelf[row.key] <= rule.window_us:
            detected.add(row.key)
    return detected


def summarise_thefts(
    rule: TheftRule,
    emitted: Sequence[EmittedFrame],
    landed: Sequence[Landed],
    job: Sequence[Theft],
    placement: Placement,
) -> TheftSummary:
    """Judges a run; `landed` in the order of arrival, `job` the matches that the job emitted, repeats included."""
    arrived = set(placement.sighting_of.values())
    stolen = stolen_goods(rule, [entry for entry in emitted if entry.id in arrived])
    key_of = {row.id: row.key for row in landed}
    expected, matches = certain_thefts(rule, landed), set(job)
    by_stamp = sorted(landed, key=lambda row: row.t_min + row.t_max)
    return TheftSummary(
        stolen=len(stolen),
        job=PairScore.of({key_of.get(a, "") for a, _ in matches}, stolen),
        by_arrival=PairScore.of(naive_thefts(rule, landed), stolen),
        by_stamp=PairScore.of(naive_thefts(rule, by_stamp), stolen),
        expected_matches=len(expected),
        matches_repeated=len(job) - len(matches),
        unexpected=len(matches - expected),
        absent=len(expected - matches),
    )


def _where(reader: SimReader) -> tuple[str, str]:
    return reader.gateway, reader.stream


def _at(reader: SimReader, rows: Iterable[Landed]) -> list[Landed]:
    return [row for row in rows if (row.gateway, row.stream) == _where(reader)]
