"""A job gets each reading that has landed once: no more and no fewer than the files hold for its rule."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from whenabouts_cloud.rules.model import CepRule, CorrelateRule, LatwinRule, Rule
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.checks.lateness import feeds, is_useless, needs_states, streams_of


def broken_handed(rule: Rule, counts: Sequence[tuple[int, Mapping[str, Any]]], landed: Landed) -> Iterator[str]:
    """Readings that were lost or doubled between the landing and a job. counts: what its shards have said, with numbers of
    micro-batches; of one that is repeated the last counts.
    """
    if isinstance(rule, LatwinRule):
        return
    found = sum(_given(rule, one) for one in {(batch, one["shard"]): one for batch, one in counts}.values())
    wanted = sum(_roles(rule, one) for one in (*landed.readings, *landed.copies))
    waits = needs_states(rule)  # some may still wait for their view
    if found > wanted or (found < wanted and not waits):
        yield f"{rule.name}: its job got {found} readings, and {wanted} have landed"


def _given(rule: CepRule | CorrelateRule, said: Mapping[str, Any]) -> int:
    """How many readings a shard got in a micro-batch; one of both sides counts twice."""
    count: int = said["readings"]
    if isinstance(rule, CepRule):
        count += said["repeats"] + said["beyond_time"]
    return count


def _roles(rule: CepRule | CorrelateRule, one: LandedReading) -> int:
    """How many of a rule's streams a reading is of, and can matter in."""
    streams = {(one.pattern, one.site, one.gateway): one for one in streams_of(rule)}.values()
    return sum(
        feeds(one, stream) and not (isinstance(rule, CorrelateRule) and is_useless(rule, side, one))
        for side, stream in enumerate(streams)
    )
