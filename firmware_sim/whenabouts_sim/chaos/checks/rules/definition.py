"""Results are equal to the definition on what landed in time; what was late is told as late; nothing is told twice."""

from collections import Counter
from collections.abc import Iterator

from whenabouts_cloud.rules.model import CepRule, CorrelateRule, Rule
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.checks.lateness import feeds, streams_of
from whenabouts_sim.chaos.checks.results import Told
from whenabouts_sim.chaos.checks.rules.causal_order import places_of
from whenabouts_sim.chaos.checks.rules.counts import broken_counts
from whenabouts_sim.chaos.checks.rules.pairs import broken_pairs
from whenabouts_sim.chaos.checks.rules.sequences import broken_matches


def broken_results(rule: Rule, told: Told, landed: Landed, complete_us: int) -> Iterator[str]:
    """Every law of results that does not hold, in words. complete_us: before it, everything has landed and was told."""
    for result, count in Counter(told.results).items():
        if result and count > 1:
            yield f"{rule.name}: {result} was told {count} times"
    readings = [one for one in landed.readings if any(feeds(one, stream) for stream in streams_of(rule))]
    if isinstance(rule, CorrelateRule):
        yield from broken_pairs(rule, told, readings, complete_us)
    elif isinstance(rule, CepRule) and rule.count:
        yield from broken_counts(rule, told, readings, complete_us)
    elif isinstance(rule, CepRule):
        places = places_of(landed.readings) if rule.pattern.mode == "causal" else None
        yield from broken_matches(rule, told, readings, complete_us, places)
