"""The laws of local states: each has a number of its own in its view, and one in which a badge has left a stamp that holds
the moment at which it had.

A badge has left LEAVE_MS after its last read. First states of a view begin where their gateway is certain, and have no
such moment.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from whenabouts_protocol.group_state import HEARTBEAT, KIND, PROCESS, VIEW
from whenabouts_sim.chaos.checks.gateways.visits import LEAVE_US, SURELY_US, begins_of, ends_of
from whenabouts_sim.chaos.checks.landed import Id, Landed, LandedReading
from whenabouts_sim.chaos.parts.gateway_part import badge_of
from whenabouts_sim.chaos.parts.job_rules import STATE, state_stream
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

SLEWED_US = SURELY_US - LEAVE_US  # a gateway's clock may be slewed by a twelfth
State = tuple[int, int, LandedReading, bool | None]
"""View, number, reading, and whether the badge was there."""


def broken_states(
    gateways: Sequence[tuple[str, str]],
    reported: Sequence[Sighting],
    landed: Landed,
    rotten: Collection[tuple[str, ...]],
) -> Iterator[str]:
    """States with one number in a view, and those that end a presence at another time. gateways: site and name, each with a
    badge on a reader of its own. reported: what readers could tell. rotten: gateways that may have forgotten what they sent.
    """
    for site, gateway in gateways:
        if (site, gateway) in rotten:
            continue
        for (view, number), count in Counter(one[:2] for one in states_of(landed, site, gateway)).items():
            if count > 1:
                yield f"{count} states of {site}/{gateway} have the number {number} in view {view}"
        ends = ends_of(sorted(EPOCH_US + one.true_us for one in reported if one.reader == badge_of(gateway)))
        for one, is_there in changes(site, gateway, landed):
            moments = (end_us + LEAVE_US for end_us in ends)
            if not is_there and not any(one.t_min - SLEWED_US <= at_us <= one.t_max + SLEWED_US for at_us in moments):
                yield f"the state {one.identity} in [{one.t_min}, {one.t_max}] begins when no badge had left"


def latest_begins(
    gateways: Sequence[tuple[str, str]], reported: Sequence[Sighting], landed: Landed
) -> Iterator[tuple[Id, int]]:
    """The latest moments at which changes of presence happened, by what readers could tell, with the states' identities.

    A badge comes with a sighting that follows a pause, and has left LEAVE_MS after one before a pause.
    """
    for site, gateway in gateways:
        times = sorted(EPOCH_US + one.true_us for one in reported if one.reader == badge_of(gateway))
        came = begins_of(times)
        left = [one + LEAVE_US for one in ends_of(times)]
        for one, is_there in changes(site, gateway, landed):
            moments, unsure_us = (came, 0) if is_there else (left, SLEWED_US)
            within = [us + unsure_us for us in moments if one.t_min - unsure_us <= us <= one.t_max + unsure_us]
            if within:
                yield one.identity, max(within)


def changes(site: str, gateway: str, landed: Landed) -> Iterator[tuple[LandedReading, bool]]:
    """The states of a gateway in which its badge has come or left since the state before, and whether it has come."""
    for before, after in pairwise(sorted(states_of(landed, site, gateway))):
        follows = before[:2] == (after[0], after[1] - 1)
        if follows and None not in (before[3], after[3]) and before[3] is not after[3]:
            yield after[2], bool(after[3])


def states_of(landed: Landed, site: str, gateway: str) -> Iterator[State]:
    """The states that a gateway has told, without clock heartbeats."""
    for one in landed.readings:
        is_own = (one.site, one.gateway) == (site, gateway)
        if is_own and one.kind == KIND and one.stream == state_stream(gateway):
            attrs = json.loads(one.attrs or "{}")
            if not attrs.get(HEARTBEAT):
                yield attrs[VIEW], (one.vclock or [])[attrs[PROCESS]], one, attrs.get(STATE)
