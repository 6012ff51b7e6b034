"""Nothing is told before it is certain: matches with a gap, what SKIP leaves, counts, and a reading's best pairs or that it
has none wait for what may still come.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule
from whenabouts_sim.chaos.checks.distance import limits_us, longest_us, useful_us
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.checks.lateness import longest_event_us, moved
from whenabouts_sim.chaos.checks.results import Row, Told
from whenabouts_sim.chaos.checks.rules.matches import closing
from whenabouts_sim.chaos.checks.rules.sequences import wait_us


def broken_waits(
    rule: Rule, told: Told, said: Iterable[tuple[int, Mapping[str, int]]], landed: Landed
) -> Iterator[str]:
    """What was told too early. said: the frontiers of the rule's streams after micro-batches."""
    after = dict(said)
    if isinstance(rule, CorrelateRule):
        early = _early_pairs(rule, told, after, landed)
    elif isinstance(rule, CepRule):
        early = _early_matches(rule, told, after, landed)
    else:
        return
    for row, early_us in early:
        yield f"{rule.name}: {row.readings or row.columns['t_min']} was told {early_us} us before it was certain"


def _early_pairs(
    rule: CorrelateRule, told: Told, after: Mapping[int, Mapping[str, int]], landed: Landed
) -> Iterator[tuple[Row, int]]:
    """A reading that no other can pair with is told at once; so is a pair, unless only the best are told."""
    of = {one.identity: one for one in landed.readings}
    _, hi_us = limits_us(rule)
    for row in told.rows:
        a, frontier_us = of.get(row.readings[0]), after.get(row.batch, {}).get(rule.b.name)
        if frontier_us is None or a is None or a.t_max - a.t_min > useful_us(rule):
            continue
        certain_us = a.t_max + hi_us + longest_us(rule, rule.b) + 1
        if certain_us > frontier_us and (len(row.readings) == 1 or rule.top_k is not None):
            yield row, certain_us - frontier_us


def _early_matches(
    rule: CepRule, told: Told, after: Mapping[int, Mapping[str, int]], landed: Landed
) -> Iterator[tuple[Row, int]]:
    if rule.pattern.emit != "sure":
        return
    of = {one.identity: moved(rule, one) for one in landed.readings}
    for row in told.rows:
        frontiers = after.get(row.batch, {})
        if len(frontiers) < len(rule.streams) or not of.keys() >= set(row.readings):
            continue
        frontier_us = min(frontiers[one.name] + one.offset_us for one in rule.streams)
        early_us = _due_us(rule, row, [of[one] for one in row.readings]) - frontier_us
        if early_us > 0:
            yield row, early_us


def _due_us(rule: CepRule, row: Row, events: Sequence[LandedReading]) -> int:
    """The frontier from which on a result is certain."""
    if rule.count:
        return int(row.columns["t_max"]) + 1 + (longest_event_us(rule) + 1) // 2
    if rule.pattern.skip != "none":
        return events[0].t_min + wait_us(rule) + 1
    at_end_us = min(one.t_max for one in events) + rule.pattern.window_us + 1
    ends_us = (at_end_us if behind is None else behind.t_max for behind in closing(rule, events))
    return max((end_us + longest_event_us(rule) for end_us in ends_us), default=-(1 << 62))
