"""The state of a job stays small: it holds no more readings than those that later ones can still form results with."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.parts.landing_files import Ends


class Kept(NamedTuple):
    """What a shard says of itself after a micro-batch: readings in its state, and the frontiers of its rule's streams."""

    batch: int
    shard: int
    rows: int
    frontiers_us: Mapping[str, int]


def kept_of(batch: int, counts: Mapping[str, Any]) -> Kept:
    """From the counts that a job reports."""
    return Kept(batch, counts["shard"], counts["rows_kept"], dict(counts["streams_us"]))


def broken_kept(rule: Rule, kept: Sequence[Kept], landed: Landed, ends: Sequence[Ends]) -> Iterator[str]:
    """Shards that keep more than they need. ends: how far each micro-batch has read the landing."""
    if not isinstance(rule, CepRule | CorrelateRule):
        return
    names = {one.name for one in (rule.streams if isinstance(rule, CepRule) else (rule.a, rule.b))}
    streams = {f"{name}/tags" for name in names}
    readings = [one for one in landed.readings if one.kind == "tag" and one.stream in streams]
    for one in kept:
        begin_us = min(one.frontiers_us.values()) - _reach_us(rule) if one.frontiers_us.keys() == names else None
        read = [reading for reading in readings if reading.file.within(ends[one.batch])]
        needed = sum(begin_us is None or reading.t_max >= begin_us for reading in read)
        if one.rows > needed:
            yield (
                f"{rule.name}: shard {one.shard} keeps {one.rows} readings after micro-batch {one.batch}, and {needed} of "
                "the readings that have landed can still matter"
            )


def _reach_us(rule: CepRule | CorrelateRule) -> int:
    """How long before the frontier a reading can end and still be part of a result to come."""
    if isinstance(rule, CepRule):
        return rule.longest_us + rule.pattern.window_us
    longest_us = sum(one.length_us[1] if one.length_us else rule.condition.longest_us for one in (rule.a, rule.b))
    return rule.condition.hi_us - rule.condition.lo_us + longest_us
