"""Counts of matches by their definition: of the middles of stamps, by key and by the time of the last event."""

from collections import Counter
from collections.abc import Iterator, Sequence

from whenabouts_cloud.rules.model import CepRule
from whenabouts_sim.chaos.checks.landed import LandedReading
from whenabouts_sim.chaos.checks.lateness import counted_before, middle_us
from whenabouts_sim.chaos.checks.results import Told
from whenabouts_sim.chaos.checks.rules.matches import matches


def broken_counts(rule: CepRule, told: Told, readings: Sequence[LandedReading], complete_us: int) -> Iterator[str]:
    """Stretches with another count than their matches, and those that were not told. complete_us: before it, all was."""
    every_us = rule.count.every_us if rule.count else None
    assert every_us is not None
    in_time = [(one, middle_us(rule, one)) for one in readings if one.identity not in told.late]
    points = [one._replace(t_min=at_us, t_max=at_us) for one, at_us in in_time]
    wanted = Counter((found[0].key, found[-1].t_min // every_us * every_us) for found in matches(rule, points, {}))
    told_of = {(row.columns["key"], row.columns["t_min"]): row.columns for row in told.rows}
    if len(told_of) < len(told.rows):
        yield f"{rule.name}: {len(told.rows) - len(told_of)} counts were told twice"
    for (key, begin_us), columns in told_of.items():
        expected = {
            "rule": rule.name, "matches": wanted[key, begin_us], "exact": True, "t_max": begin_us + every_us - 1,
            "aggregates": [],
        }  # fmt: skip
        found = {name: columns[name] for name in expected}
        if found != expected:
            yield f"{rule.name}: {key} was told from {begin_us} on with {found}, expected {expected}"
    offset_us = min(stream.offset_us for stream in rule.streams)
    decided_us = counted_before(rule, complete_us + offset_us)
    for key, begin_us in wanted.keys() - told_of.keys():
        if begin_us + every_us <= decided_us:
            yield f"{rule.name}: {wanted[key, begin_us]} matches of {key} from {begin_us} on were not told"
