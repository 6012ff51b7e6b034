"""Vector clocks of readings: none knows of a state that certainly began later. Entry 0 says nothing: all begin with it.

States and clock heartbeats name the view of their clock. Other readings do not: theirs is one of the views that the same
start of the agent has told, with as many members as the clock has entries, and a law is broken in all of those only.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from whenabouts_protocol.group_state import HEARTBEAT, KIND, PROCESS, VIEW
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading

States = Mapping[tuple[int, int, int], LandedReading]
"""By view, process and number."""


class _Place(NamedTuple):
    """A view, and the number of a process in it."""

    view: int
    process: int


def broken_clocks(landed: Landed, rotten: Collection[tuple[str, ...]] = ()) -> Iterator[str]:
    """Readings that know of a state of another member which began after them, by both stamps. rotten: gateways that may
    have lost what told their views.
    """
    states: dict[tuple[int, int, int], LandedReading] = {}
    places = defaultdict[tuple[str, str, int, int], set[_Place]](set)
    untold = set(rotten)
    for one in landed.readings:
        if one.kind == KIND:
            attrs, clock = json.loads(one.attrs or "{}"), one.vclock or ()
            places[*_start(one), len(clock)].add(_Place(attrs[VIEW], attrs[PROCESS]))
            if not attrs.get(HEARTBEAT):
                states[attrs[VIEW], attrs[PROCESS], clock[attrs[PROCESS]]] = one
        elif one.kind == "gap":
            untold.add((one.site, one.gateway))
    for one in landed.readings:
        if one.kind == KIND:
            attrs = json.loads(one.attrs or "{}")
            possible = {_Place(attrs[VIEW], attrs[PROCESS])}
        elif (one.site, one.gateway) in untold:
            continue
        else:
            possible = places[*_start(one), len(one.vclock or ())]
        found = [_known_too_early(one, place, states) for place in sorted(possible)]
        if found and all(found):
            yield found[0]


def _start(one: LandedReading) -> tuple[str, str, int]:
    """The start of the agent that read it."""
    return one.site, one.gateway, one.boot


def _known_too_early(one: LandedReading, place: _Place, states: States) -> str:
    """What a reading knows too early if its clock is of this view; empty if nothing."""
    for process, number in enumerate(one.vclock or ()):
        known = states.get((place.view, process, number))
        if number and process != place.process and known is not None and known.t_min > one.t_max:
            return (
                f"{one.identity}, which ended at {one.t_max}, knows of state {number} of {known.gateway}, which began "
                f"{known.t_min - one.t_max} us later"
            )
    return ""
