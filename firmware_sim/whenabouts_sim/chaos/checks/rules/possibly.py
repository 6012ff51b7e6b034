"""Verdicts of POSSIBLY: each is of states that may have been at once, and none is missing where all certainly were.

States cannot have been at once if one had ended before another began: by the clock of the other, which knows the next
state, or by their stamps. A verdict is told when such a period begins, so one that began before may stand for a later one.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import permutations

from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_protocol.group_state import KIND, PROCESS
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.checks.results import Told
from whenabouts_sim.chaos.checks.together import LONG_US, certain_choices, end_of, some_lost, view_of
from whenabouts_sim.chaos.parts.job_rules import STATE


def broken_possibilities(
    rule: LatwinRule, gateways: Sequence[str], told: Told, landed: Landed, complete_us: int
) -> Iterator[str]:
    """Verdicts of states that were not at once, and missing ones. complete_us: before it, all was told.

    What comes later than DELAY is unknown to a verdict: only with a long one stamps and certain periods bind it.
    """
    states = [one for one in landed.readings if one.kind == KIND]
    of = {one.identity: one for one in states}
    waits = all(stream.delay_us >= LONG_US for stream in rule.streams)
    for verdict in told.results:
        mine = [of[one] for one in verdict]
        if [one.gateway for one in mine] != list(gateways) or len({view_of(one) for one in mine}) > 1:
            yield f"{rule.name}: {verdict} was told, and is not of one state of each gateway in one view"
        for one in mine:
            if _attr(one, STATE) not in (True, "true"):
                yield f"{rule.name}: {verdict} was told, and {one.identity} is no state in which the badge was there"
        for one, other in permutations(mine, 2):
            if _knows_the_end(one, other) or (waits and _ended_before(one, other, states)):
                yield f"{rule.name}: {verdict} was told, and {one.identity} had ended when {other.identity} began"
    if waits and not some_lost(states):
        for choice in certain_choices(gateways, states, complete_us):
            mine = [of[one] for one in choice]
            if not any(_began_by(mine, [of[one] for one in verdict]) for verdict in told.results):
                yield f"{rule.name}: {choice} were certainly at once, and nothing was told by then"


def _knows_the_end(one: LandedReading, other: LandedReading) -> bool:
    """True if the other state knew a later state of the first gateway when it began."""
    return (other.vclock or ())[_attr(one, PROCESS)] > _number(one)


def _ended_before(one: LandedReading, other: LandedReading, states: Sequence[LandedReading]) -> bool:
    """True if the state after the first one certainly began before the other."""
    end = end_of(one, states)
    return end is not None and end.t_max < other.t_min


def _began_by(choice: Sequence[LandedReading], verdict: Sequence[LandedReading]) -> bool:
    """True if the verdict's states may all have begun when those of the choice had."""
    latest_us = max(one.t_max for one in choice)
    return view_of(verdict[0]) == view_of(choice[0]) and max(one.t_min for one in verdict) <= latest_us


def _number(one: LandedReading) -> int:
    return (one.vclock or ())[_attr(one, PROCESS)]


def _attr(one: LandedReading, name: str) -> int:
    found: int = json.loads(one.attrs or "{}").get(name)
    return found
