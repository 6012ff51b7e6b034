"""The state of a job stays small: it holds no more readings than those that later ones can still form results with."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule
from whenabouts_sim.chaos.checks.distance import horizons
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.checks.lateness import counted_before, feeds, longest_event_us, needs_states, streams_of
from whenabouts_sim.chaos.checks.rules.sequences import skip_lengths
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
    readings = [one for one in landed.readings if any(feeds(one, stream) for stream in streams_of(rule))]
    longest_us = max((one.t_max - one.t_min for one in readings), default=0)
    for one in kept:
        begins = _begins(rule, one.frontiers_us, longest_us)
        # Of a reading in several parts the job may have read a later copy.
        read = [x for x in readings if x.file.within(ends[one.batch]) or x.identity in landed.again]
        needed = sum(reading.t_max >= begins[reading.stream] for reading in read)
        if one.rows > needed + len(landed.twice):  # copies wait, too, until frontiers are known
            yield (
                f"{rule.name}: shard {one.shard} keeps {one.rows} readings after micro-batch {one.batch}, and {needed} of "
                "the readings that have landed can still matter"
            )


def _begins(rule: CepRule | CorrelateRule, frontiers_us: Mapping[str, int], longest_us: int) -> dict[str, float]:
    """For the name of each stream the end from which on its readings can be part of a result to come. longest_us: of the
    stamps that landed.
    """
    streams = streams_of(rule)
    if not frontiers_us.keys() >= {one.name for one in streams}:
        return {one.pattern: -math.inf for one in streams}
    if isinstance(rule, CorrelateRule):
        forgotten = horizons(rule, frontiers_us)
        return dict(zip((rule.a.pattern, rule.b.pattern), forgotten or (), strict=True))
    frontier_us = min(frontiers_us[one.name] + one.offset_us for one in streams)
    if rule.count:
        frontier_us = counted_before(rule, frontier_us)
        return {one.pattern: frontier_us - rule.pattern.window_us - one.offset_us for one in streams}
    waits_us = longest_event_us(rule)
    if rule.pattern.mode != "certain":  # a match whose window is too short for some of its times may have any stamps
        waits_us += max(waits_us, longest_us)
    if rule.pattern.skip != "none":
        longest_us = max(longest_us, longest_event_us(rule)) if needs_states(rule) else longest_event_us(rule)
        waits_us = max(waits_us, skip_lengths(rule) * longest_us)
    reach_us = waits_us + rule.pattern.window_us
    return {one.pattern: frontier_us - reach_us - one.offset_us for one in streams}
