"""Pairs, readings of a without a pair, and the best pairs of a, by their definition.

A late reading of b may come when a was told already, so only readings in time oblige: a pair of two of them must be told,
and a reading of a that could pair with any other, late or not, need not be told as unmatched. Nothing else is open, but for
stamps beyond the declared LENGTH, which may come when their partner is forgotten.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from whenabouts_cloud.rules.model import CorrelateRule
from whenabouts_sim.chaos.checks.distance import limits_us, longest_us, probability, useful_us
from whenabouts_sim.chaos.checks.landed import Id, LandedReading
from whenabouts_sim.chaos.checks.results import Told

Pair = tuple[Id, ...]


class _Known(NamedTuple):
    """The pairs of the definition with their probability, late readings too; those that are owed; what was told."""

    rule: CorrelateRule
    of: Mapping[Id, LandedReading]
    possible: Mapping[Pair, Fraction]
    owed: Collection[Pair]
    pairs: Collection[Pair]
    alone: Collection[Id]


def broken_pairs(rule: CorrelateRule, told: Told, readings: Sequence[LandedReading], complete_us: int) -> Iterator[str]:
    """Pairs and unmatched readings that are none, and those that are missing. complete_us: before it, all was told."""
    of = {one.identity: one for one in readings}
    possible = _pairs(rule, readings)
    owed = {pair for pair in possible if told.late.isdisjoint(pair) and _meets(rule, *(of[one] for one in pair))}
    pairs = {one for one in told.results if len(one) > 1}
    known = _Known(rule, of, possible, owed, pairs, {one[0] for one in told.results if len(one) == 1})
    for pair in pairs if rule.kind == "anti" else pairs - possible.keys():
        yield f"{rule.name}: {_shown(known, pair)} was told, and is no result"
    decided_us = complete_us - limits_us(rule)[1] - longest_us(rule, rule.b)
    if rule.top_k is not None:
        yield from _not_best(known, rule.top_k, decided_us)
    elif rule.kind != "anti":
        for pair in owed - pairs:
            if all(of[one].t_max < complete_us for one in pair):
                yield f"{rule.name}: {_shown(known, pair)} is a result, and was not told"
    yield from _wrongly_alone(known, told.late)
    if rule.kind != "inner":
        in_time = [one for one in readings if one.stream == rule.a.pattern and one.identity not in told.late]
        yield from _not_told(known, in_time, decided_us)


def _pairs(rule: CorrelateRule, readings: Sequence[LandedReading]) -> dict[Pair, Fraction]:
    by_key: dict[str | None, list[LandedReading]] = {}
    for one in readings:
        if one.stream == rule.b.pattern:
            by_key.setdefault(one.key, []).append(one)
    least = rule.condition.ct
    return {
        (a.identity, b.identity): share
        for a in readings
        if a.stream == rule.a.pattern
        for b in by_key.get(a.key, ())
        if (share := probability(rule, a, b)) >= least
    }


def _meets(rule: CorrelateRule, a: LandedReading, b: LandedReading) -> bool:
    """True if neither may be forgotten when the other comes in time, that is before a watermark passes its end."""
    return _waits(rule, a, b) and a.t_max <= b.t_max - limits_us(rule)[0] + longest_us(rule, rule.a)


def _waits(rule: CorrelateRule, a: LandedReading, b: LandedReading) -> bool:
    """True if a waits for b, as long as b comes in time."""
    return b.t_max <= a.t_max + limits_us(rule)[1] + longest_us(rule, rule.b)


def _not_best(known: _Known, most: int, decided_us: int) -> Iterator[str]:
    """Pairs beyond the number of the best, and owed ones that are left out though worse ones were told, or too few."""
    rule = known.rule
    for a in {pair[0] for pair in (*known.pairs, *known.owed)}:
        mine = [pair for pair in known.pairs if pair[0] == a and pair in known.possible]
        if len(mine) > most:
            yield f"{rule.name}: {len(mine)} pairs of {a} were told, expected at most {most}"
        worst = max((_rank(known, pair) for pair in mine), default=None)
        for pair in known.owed if known.of[a].t_max < decided_us or mine else ():
            if pair[0] == a and pair not in mine and (worst is None or len(mine) < most or _rank(known, pair) < worst):
                yield f"{rule.name}: {_shown(known, pair)} is one of the best {most} pairs, and was not told"


def _rank(known: _Known, pair: Pair) -> tuple[Fraction, int, Id]:
    """The most probable first, of equal ones the nearest, then by the identity of b."""
    a, b = (known.of[one] for one in pair)
    moved_us = known.rule.b.offset_us - known.rule.a.offset_us
    apart = abs(b.t_min + b.t_max - a.t_min - a.t_max + 2 * moved_us)
    return -known.possible[pair], apart, b.identity


def _wrongly_alone(known: _Known, late: Collection[Id]) -> Iterator[str]:
    """Readings of a that were told as unmatched: none is in a pair that was told, and none, even if it came late itself,
    could pair with a reading of b that came in time.
    """
    rule = known.rule
    for a in known.alone:
        if rule.kind == "inner" or a not in known.of or known.of[a].stream != rule.a.pattern:
            yield f"{rule.name}: {a} was told as unmatched, and is no result"
    for pair in known.possible:
        if pair[0] in known.alone and pair in known.pairs:
            yield f"{rule.name}: {_shown(known, pair)} was told as a pair, and the first as unmatched"
        elif pair[0] in known.alone and pair[1] not in late and _waits(rule, *(known.of[one] for one in pair)):
            yield f"{rule.name}: {_shown(known, pair)} is a pair, and the first was told as unmatched"


def _not_told(known: _Known, in_time: Sequence[LandedReading], decided_us: int) -> Iterator[str]:
    """Readings of a that came in time and of which nothing was told, though they are in no pair that hides them.

    One that is longer than declared may have had partners that were forgotten, unless no pair can hold it.
    """
    rule = known.rule
    hidden = {pair[0] for pair in (known.possible if rule.kind == "anti" else known.pairs)}
    longest = longest_us(rule, rule.a)
    for one in in_time:
        length = one.t_max - one.t_min
        if longest < length <= useful_us(rule) or one.t_max >= decided_us:
            continue
        if one.identity not in known.alone and one.identity not in hidden:
            yield f"{rule.name}: {one.stream} {one.key} [{one.t_min}, {one.t_max}] is unmatched, and was not told"


def _shown(known: _Known, pair: Pair) -> str:
    readings = [known.of[one] for one in pair if one in known.of]
    return " with ".join(f"{one.stream} {one.key} [{one.t_min}, {one.t_max}]" for one in readings)
