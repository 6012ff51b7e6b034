"""Vector clocks of readings: none knows of a state that certainly began later. Entry 0 says nothing: all begin with it.

By their stamps, and where it is known by what happened: a reading of a tag is as old as its sighting, and a badge is present
from a sighting on. States and clock heartbeats name the view of their clock. Other readings do not: theirs is one of the
views that the same start of the agent has told, with as many members as the clock has entries, or an earlier one if it comes
before the first state of its start: it waited for UTC. A law is broken in all of those only.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from whenabouts_protocol.group_state import HEARTBEAT, KIND, PROCESS, VIEW
from whenabouts_sim.chaos.checks.landed import Id, Landed, LandedReading
from whenabouts_sim.chaos.parts.gateway_part import badge_key, badge_of
from whenabouts_sim.chaos.parts.job_rules import STATE
from whenabouts_sim.chaos.schedule.schedule import stream_of
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting


class _Place(NamedTuple):
    """A view, and the number of a process in it."""

    view: int
    process: int


class _State(NamedTuple):
    """A state of a gateway, and a moment that its begin is not before."""

    gateway: str
    begun_us: int


States = Mapping[tuple[int, int, int], _State]
"""By view, process and number."""


def broken_clocks(
    landed: Landed,
    rotten: Collection[tuple[str, ...]] = (),
    sightings: Sequence[Sighting] = (),
    begins: Mapping[Id, int] = {},
    many: Collection[tuple[str, ...]] = (),
) -> Iterator[str]:
    """Readings that know of a state of another member which began after them. rotten: gateways that may have lost what told
    their views. begins: of some states the latest moment at which they began. many: gateways with further
    values in their states.
    """
    seen = defaultdict[tuple[str, str | None], list[int]](list)
    for sighting in sightings:
        seen[stream_of(sighting.reader), sighting.key].append(EPOCH_US + sighting.true_us)
    states: dict[tuple[int, int, int], _State] = {}
    places = defaultdict[tuple[str, str, int, int], set[_Place]](set)
    first: dict[tuple[str, str, int], int] = {}  # number of the first state of a start
    untold = set(rotten)
    for one in landed.readings:
        if one.kind == KIND:
            attrs, clock = json.loads(one.attrs or "{}"), one.vclock or ()
            places[*_start(one), len(clock)].add(_Place(attrs[VIEW], attrs[PROCESS]))
            first[_start(one)] = min(one.seq, first.get(_start(one), one.seq))
            if not attrs.get(HEARTBEAT):
                states[attrs[VIEW], attrs[PROCESS], clock[attrs[PROCESS]]] = _state(
                    one, attrs, {} if (one.site, one.gateway) in many else seen
                )
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
            if one.seq < first.get(_start(one), -1):
                earlier = (
                    boot for site, gateway, boot in first if (site, gateway) == _start(one)[:2] and boot < one.boot
                )
                possible = possible.union(
                    *(places[one.site, one.gateway, boot, len(one.vclock or ())] for boot in earlier)
                )
        times = seen[one.stream, one.key] if one.is_seen else []
        ended_us = max(_within(one, times), default=begins.get(one.identity, one.t_max))
        found = [_known_too_early(one, ended_us, place, states) for place in sorted(possible)]
        if found and all(found):
            yield found[0]


def _state(one: LandedReading, attrs: Mapping[str, Any], seen: Mapping[tuple[str, str | None], list[int]]) -> _State:
    """A state, and its begin: a badge that is present has been seen."""
    begun_us = one.t_min
    if attrs.get(STATE, one.value) in (True, "true"):
        badge = stream_of(badge_of(one.gateway)), badge_key(one.gateway)
        begun_us = min(_within(one, seen.get(badge, [])), default=begun_us)
    return _State(one.gateway, begun_us)


def _within(one: LandedReading, times: Iterable[int]) -> list[int]:
    return [at_us for at_us in times if one.t_min <= at_us <= one.t_max]


def _start(one: LandedReading) -> tuple[str, str, int]:
    """The start of the agent that read it."""
    return one.site, one.gateway, one.boot


def _known_too_early(one: LandedReading, ended_us: int, place: _Place, states: States) -> str:
    """What a reading knows too early if its clock is of this view; empty if nothing. ended_us: it had happened by then."""
    for process, number in enumerate(one.vclock or ()):
        known = states.get((place.view, process, number))
        if number and process != place.process and known is not None and known.begun_us > ended_us:
            return (
                f"{one.identity}, which ended at {ended_us}, knows of state {number} of {known.gateway}, which began "
                f"{known.begun_us - ended_us} us later"
            )
    return ""
