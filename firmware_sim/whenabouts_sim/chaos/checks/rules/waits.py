"""Nothing is told before it is certain: matches with a gap, what SKIP leaves, and counts wait for what may still come."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from whenabouts_cloud.rules.model import CepRule, Rule
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.checks.lateness import longest_event_us, moved
from whenabouts_sim.chaos.checks.results import Row, Told
from whenabouts_sim.chaos.checks.rules.matches import closing
from whenabouts_sim.chaos.checks.rules.sequences import wait_us


def broken_waits(
    rule: Rule, told: Told, said: Iterable[tuple[int, Mapping[str, int]]], landed: Landed
) -> Iterator[str]:
    """What was told too early. said: the frontiers of the rule's streams after micro-batches."""
    if not isinstance(rule, CepRule) or rule.pattern.emit != "sure":
        return
    of = {one.identity: moved(rule, one) for one in landed.readings}
    after = {batch: frontiers for batch, frontiers in said if len(frontiers) == len(rule.streams)}
    for row in told.rows:
        if row.batch not in after or not of.keys() >= set(row.readings):
            continue
        frontier_us = min(after[row.batch][one.name] + one.offset_us for one in rule.streams)
        early_us = _due_us(rule, row, [of[one] for one in row.readings]) - frontier_us
        if early_us > 0:
            yield f"{rule.name}: {row.readings or row.columns['t_min']} was told {early_us} us before it was certain"


def _due_us(rule: CepRule, row: Row, events: Sequence[LandedReading]) -> int:
    """The frontier from which on a result is certain."""
    if rule.count:
        return int(row.columns["t_max"]) + 1 + (longest_event_us(rule) + 1) // 2
    if rule.pattern.skip != "none":
        return events[0].t_min + wait_us(rule) + 1
    at_end_us = min(one.t_max for one in events) + rule.pattern.window_us + 1
    ends_us = (at_end_us if behind is None else behind.t_max for behind in closing(rule, events))
    return max((end_us + longest_event_us(rule) for end_us in ends_us), default=-(1 << 62))
