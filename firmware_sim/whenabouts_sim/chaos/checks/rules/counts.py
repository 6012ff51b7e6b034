"""Counts of matches by their definition: of the middles of stamps, by key and by the time of the last event; and what was
measured with their first and last events.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

from whenabouts_cloud.rules.model import CepRule
from whenabouts_sim.chaos.checks.landed import LandedReading
from whenabouts_sim.chaos.checks.lateness import counted_before, middle_us
from whenabouts_sim.chaos.checks.results import Told
from whenabouts_sim.chaos.checks.rules.matches import matches

Events = Sequence[LandedReading]
AGGREGATES: dict[str, Callable[[list[float]], float]] = {"sum": sum, "min": min, "max": max, "avg": fmean}


def broken_counts(rule: CepRule, told: Told, readings: Sequence[LandedReading], complete_us: int) -> Iterator[str]:
    """Stretches with another count than their matches, and those that were not told. complete_us: before it, all was."""
    counted = rule.count
    assert counted is not None
    every_us = counted.every_us
    assert every_us is not None
    in_time = [(one, middle_us(rule, one)) for one in readings if one.identity not in told.late]
    points = [one._replace(t_min=at_us, t_max=at_us) for one, at_us in in_time]
    wanted: dict[tuple[str | None, int], list[Events]] = {}
    for match in matches(rule, points, {}):
        wanted.setdefault((match[0].key, match[-1].t_min // every_us * every_us), []).append(match)
    told_of = {(row.columns["key"], row.columns["t_min"]): row.columns for row in told.rows}
    if len(told_of) < len(told.rows):
        yield f"{rule.name}: {len(told.rows) - len(told_of)} counts were told twice"
    for (key, begin_us), columns in told_of.items():
        of = wanted.get((key, begin_us), [])
        expected = {"rule": rule.name, "matches": len(of), "exact": True, "t_max": begin_us + every_us - 1}
        found = {name: columns[name] for name in expected}
        if found != expected:
            yield f"{rule.name}: {key} was told from {begin_us} on with {found}, expected {expected}"
        values = {one["name"]: one["value"] for one in columns["aggregates"]}
        named = zip(counted.names, counted.aggregates, strict=True)
        sums = {text: _aggregate(function, name, of) for text, (function, name, _) in named}
        if values.keys() != sums.keys() or not all(_is_near(values[name], sums[name]) for name in sums):
            yield f"{rule.name}: {key} was told from {begin_us} on with {values}, expected {sums}"
    offset_us = min(stream.offset_us for stream in rule.streams)
    decided_us = counted_before(rule, complete_us + offset_us)
    for key, begin_us in wanted.keys() - told_of.keys():
        if begin_us + every_us <= decided_us:
            yield f"{rule.name}: {len(wanted[key, begin_us])} matches of {key} from {begin_us} on were not told"


def _aggregate(function: str, name: str, of: Sequence[Events]) -> float | None:
    """Over all matches what was measured with the first event, which is a, or with the last one."""
    said = (match[0 if name == "a" else -1].value for match in of)
    values = [float(one) for one in map(json.loads, (x or "null" for x in said)) if isinstance(one, (int, float))]
    return AGGREGATES[function](values) if values else None


def _is_near(found: float | None, expected: float | None) -> bool:
    """Sums are of floating-point numbers, in an order of their own."""
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected)
