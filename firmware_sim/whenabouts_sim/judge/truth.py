"""Judges a run against what truly happened: readings lost, stamps violated, pairs found, pairs invented.

Pure. The job's pairs are compared with the truth and with two other joins: the one people write today, on one naive time
stamp per reading, and the probability rule computed the slow way, in exact fractions and by other formulas than the
engines use.
Cost: quadratic in the sightings of one key at both readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from whenabouts_sim.judge.placement import Landed, Placement, ReadingId, SightingId, grouped, place
from whenabouts_sim.world.clocks import GatewayClock
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.world import SimReader

Pair = tuple[SightingId, SightingId]
ReadingPair = tuple[ReadingId, ReadingId]

T = TypeVar("T")


def true_pairs(a: Iterable[EmittedFrame], b: Iterable[EmittedFrame], d_us: int) -> set[Pair]:
    """All pairs of sightings of one key that truly happened at most `d_us` apart, a tie included."""
    return _near_pairs(a, b, d_us, lambda entry: entry.true_us)


def naive_pairs(
    a: Iterable[EmittedFrame],
    b: Iterable[EmittedFrame],
    d_us: int,
    clock_of_reader: Mapping[str, GatewayClock],
) -> set[Pair]:
    """The join on one stamp per reading: what the gateway's clock showed when the frame's last byte arrived."""
    return _near_pairs(a, b, d_us, lambda entry: clock_of_reader[entry.reader].reading_us(entry.last_byte_us))


def _near_pairs(
    a: Iterable[EmittedFrame], b: Iterable[EmittedFrame], d_us: int, time_us: Callable[[EmittedFrame], int]
) -> set[Pair]:
    others = grouped(b, lambda entry: entry.key)
    return {
        (first.id, second.id)
        for first in a
        for second in others.get(first.key, ())
        if abs(time_us(second) - time_us(first)) <= d_us
    }


def rule_pairs(a: Iterable[Landed], b: Iterable[Landed], d_us: int, ct: Fraction) -> set[ReadingPair]:
    """The exact pairs of `|@a - @b| <= d OVER ct AND a.key = b.key` for these readings; a tie with ct is a pair."""
    others = grouped(b, lambda reading: reading.key)
    return {
        (first.id, second.id)
        for first in a
        for second in others.get(first.key, ())
        if within_probability(first.t_min, first.t_max, second.t_min, second.t_max, d_us) >= ct
    }


def within_probability(a1: int, b1: int, a2: int, b2: int, d: int) -> Fraction:
    """P(|Y - X| <= d) for X uniform in [a1, b1] and Y in [a2, b2], independent, exactly.

    The share of the rectangle that lies between the lines y = x - d and y = x + d, by integrating over x; an interval
    of length zero is a point.
    """
    if a1 == b1 and a2 == b2:
        return Fraction(int(abs(a2 - a1) <= d))
    if a1 == b1:
        return Fraction(max(0, min(b2, a1 + d) - max(a2, a1 - d)), b2 - a2)
    if a2 == b2:
        return within_probability(a2, b2, a1, b1, d)
    below = _area_below(a1, b1, a2, b2, d) - _area_below(a1, b1, a2, b2, -d)
    return below / ((b1 - a1) * (b2 - a2))


def _area_below(a1: int, b1: int, a2: int, b2: int, z: int) -> Fraction:
    """Area of {(x, y) in the rectangle: y <= x + z}."""

    def integral(x: int) -> Fraction:
        """Integral up to x of the height min(max(x + z - a2, 0), b2 - a2)."""
        height, full = max(0, x + z - a2), b2 - a2
        return Fraction(min(height, full) ** 2, 2) + full * max(0, height - full)

    return integral(b1) - integral(a1)


@dataclass(frozen=True)
class PairScore:
    """Numbers of pairs: `true_reported` are reported and true, `false` are reported but not true, `missed` are true but not
    reported.
    """

    true_reported: int
    false: int
    missed: int

    @classmethod
    def of(cls, reported: set[T], true: set[T]) -> PairScore:
        """Counts one set against the other."""
        return cls(len(reported & true), len(reported - true), len(true - reported))


@dataclass(frozen=True)
class Summary:
    """Numbers of a run; `as_dict` is ready for JSON.

    `made`: frames that reported a sighting; `damaged` of them may be lost without a fault of the system. `lost`: undamaged
    frames that did not land. `true_pairs`: pairs among all frames made. The three scores count only pairs of sightings that
    landed, so that they measure the joins and not the losses; `missed_not_landed` counts the other true pairs.
    `expected_pairs`: pairs of the rule computed the slow way; `unexpected`, `absent`: how the job's pairs differ from them.
    """

    made: int
    damaged: int
    landed: int
    lost: int
    damaged_lost: int
    repeated: int
    violations: int
    surplus: int
    invented: int
    true_pairs: int
    missed_not_landed: int
    job: PairScore
    naive: PairScore
    ideal: PairScore
    expected_pairs: int
    pairs_repeated: int
    unexpected: int
    absent: int
    damage: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and dictionaries."""
        return asdict(self)


@dataclass(frozen=True)
class Rule:
    """`|@a - @b| <= d_us OVER ct AND a.key = b.key` between the streams of two readers."""

    a: SimReader
    b: SimReader
    d_us: int
    ct: Fraction


def summarise(
    rule: Rule,
    emitted: Sequence[EmittedFrame],
    landed: Sequence[Landed],
    job_pairs: Sequence[ReadingPair],
    readers: Sequence[SimReader],
    clocks: Mapping[str, GatewayClock],
) -> Summary:
    """Judges a whole run; `job_pairs` are the identities of the readings that the job paired, (a, b), repeats included."""
    pairs = set(job_pairs)
    placement = place(landed, emitted, readers, clocks)
    arrived = set(placement.sighting_of.values())
    lost = [entry for entry in emitted if entry.id not in arrived]

    def side(reader: SimReader) -> list[EmittedFrame]:
        return [entry for entry in emitted if entry.reader == reader.name]

    def arrived_side(reader: SimReader) -> list[EmittedFrame]:
        return [entry for entry in side(reader) if entry.id in arrived]

    def rows(reader: SimReader) -> list[Landed]:
        return [row for row in landed if (row.gateway, row.stream) == (reader.gateway, reader.stream)]

    every = true_pairs(side(rule.a), side(rule.b), rule.d_us)
    reachable = true_pairs(arrived_side(rule.a), arrived_side(rule.b), rule.d_us)
    clock_of_reader = {reader.name: clocks[reader.gateway] for reader in readers}
    naive = naive_pairs(arrived_side(rule.a), arrived_side(rule.b), rule.d_us, clock_of_reader)
    expected = rule_pairs(rows(rule.a), rows(rule.b), rule.d_us, rule.ct)
    return Summary(
        made=len(emitted),
        damaged=sum(bool(entry.damaged) for entry in emitted),
        landed=len({row.id for row in landed}),
        lost=sum(not entry.damaged for entry in lost),
        damaged_lost=sum(bool(entry.damaged) for entry in lost),
        repeated=placement.repeated,
        violations=len(placement.violations),
        surplus=len(placement.surplus),
        invented=len(placement.invented),
        true_pairs=len(every),
        missed_not_landed=len(every - reachable),
        job=PairScore.of(_as_sightings(pairs, placement), reachable),
        naive=PairScore.of(naive, reachable),
        ideal=PairScore.of(_as_sightings(expected, placement), reachable),
        expected_pairs=len(expected),
        pairs_repeated=len(job_pairs) - len(pairs),
        unexpected=len(pairs - expected),
        absent=len(expected - pairs),
        damage={reason: len(entries) for reason, entries in grouped(emitted, lambda e: e.damaged).items() if reason},
    )


def _as_sightings(pairs: set[ReadingPair], placement: Placement) -> set[tuple[Any, Any]]:
    """Reading identities replaced by those of the sightings; an unplaced reading keeps its own, so its pair is false."""
    where = placement.sighting_of
    return {(where.get(a, a), where.get(b, b)) for a, b in pairs}
