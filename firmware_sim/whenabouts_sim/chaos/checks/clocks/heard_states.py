"""Vector clocks know what came, and nothing else.

What begins after a peer's state has arrived in its view counts that state, and what has happened before does not. A state
counts as far as a peer is believed: of itself all that it says, of third gateways only a little beyond what is known
already. Stamps decide, and the moments at which tags were truly seen.
"""

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from whenabouts_edge.group.peers import MAX_JUMP, MAX_STATES
from whenabouts_protocol import WireError, decode_batch, parse_topic
from whenabouts_protocol.group_state import HEARTBEAT, KIND, PROCESS, VIEW, LocalState, state_of
from whenabouts_protocol.messages.compiled_rule import DERIVED_PREFIX
from whenabouts_sim.chaos.checks.landed import Id, Landed, LandedReading
from whenabouts_sim.chaos.network.overheard import Arrived
from whenabouts_sim.chaos.schedule.schedule import stream_of
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

ROUNDED_US = 10  # host times are whole microseconds, and so is each correction of them
Counts = Mapping[int, int]
"""Numbers of states by process."""


class _Known(NamedTuple):
    """From a moment on, at least and at most these states are known."""

    since_us: int
    least: Counts
    most: Counts


NOTHING = _Known(0, {}, {})


def broken_knowledge(
    landed: Landed,
    heard: Iterable[Arrived],
    sightings: Sequence[Sighting] = (),
    liars: frozenset[str] = frozenset(),
    rotten: Collection[tuple[str, ...]] = (),
    begins: Mapping[Id, int] = {},
) -> Iterator[str]:
    """Readings that do not know what had arrived before them, or know what had not. liars: names of gateways of which
    nothing must be believed. rotten: gateways that may have lost what told their views. begins: of some states the latest
    moment at which they began.
    """
    seen = defaultdict[tuple[str, str | None], list[int]](list)
    for sighting in sightings:
        seen[stream_of(sighting.reader), sighting.key].append(EPOCH_US + sighting.true_us)
    known = _known(heard, liars)
    begun = defaultdict[tuple[str, str, int], int](int)  # the number of the last own state by view
    places = defaultdict[tuple[str, str, int], set[tuple[int, int, int]]](set)  # boot, view and process
    for one in landed.readings:
        if one.kind == KIND:
            attrs = json.loads(one.attrs or "{}")
            places[one.site, one.gateway, len(one.vclock or ())].add((one.boot, attrs[VIEW], attrs[PROCESS]))
            if not attrs.get(HEARTBEAT):
                own = one.site, one.gateway, attrs[VIEW]
                begun[own] = max(begun[own], (one.vclock or ())[attrs[PROCESS]])
    untold = {*rotten, *((one.site, one.gateway) for one in landed.readings if one.kind == "gap")}
    for one in landed.readings:
        is_told = (one.site, one.gateway) not in untold
        if one.kind != KIND and not is_told:
            continue
        if one.gateway in liars or not one.vclock or one.kind == "gap" or one.stream.startswith(DERIVED_PREFIX):
            continue  # the clock of a pair is that of its sources, of which one may be older than the view
        # A reading that waited for UTC is sent by a later start, with the clock of its own.
        starts = places[one.site, one.gateway, len(one.vclock)]
        possible, is_first = {(view, own) for boot, view, own in starts if boot <= one.boot}, False
        if one.kind == KIND:
            attrs = json.loads(one.attrs or "{}")
            possible = {(attrs[VIEW], attrs[PROCESS])}
            is_first = not attrs.get(HEARTBEAT) and not one.vclock[attrs[PROCESS]]
        times = seen[one.stream, one.key] if one.is_seen else []
        latest_us = begins.get(one.identity, one.t_max)
        happened_us = max((at_us for at_us in times if one.t_min <= at_us <= one.t_max), default=latest_us)
        found = [
            (is_told and _counts_unbegun(one, own, begun[one.site, one.gateway, view]))
            or _unlike(one, own, known.get((one.site, one.gateway, view), []), happened_us, is_first)
            for view, own in sorted(possible)
        ]
        if found and all(found):
            yield found[0]


def _known(heard: Iterable[Arrived], liars: frozenset[str]) -> Mapping[tuple[str, str, int], list[_Known]]:
    """What each receiver knows in each view, and since when."""
    known = defaultdict[tuple[str, str, int], list[_Known]](list)
    for arrived in heard:
        place = parse_topic(arrived.message.topic)
        try:
            state = state_of(decode_batch(arrived.message.payload)[0])
        except WireError:
            continue
        if place is not None and state is not None and state.number < MAX_STATES:
            site, _, gateway = arrived.client.partition("/")
            steps = known[site, gateway, state.view]
            steps.append(_after(steps[-1] if steps else NOTHING, arrived.at_us, state, place[1] in liars))
    return known


def _after(before: _Known, at_us: int, state: LocalState, is_lie: bool) -> _Known:
    least, most = dict(before.least), dict(before.most)
    for process, count in enumerate(state.clock):
        is_own = process == state.process
        if not is_lie:
            least[process] = max(count if is_own else min(count, MAX_JUMP), least.get(process, 0))
        so_far = most.get(process, 0)
        most[process] = max(so_far, count if is_own else min(count, so_far + MAX_JUMP))
    return _Known(at_us, least, most)


def _counts_unbegun(one: LandedReading, own: int, most: int) -> str:
    """What a reading counts of its own gateway that never began: a peer's word must not raise that."""
    count = (one.vclock or ())[own]
    return f"{one.kind} {one.identity} counts {count} states of its own gateway, of {most}" if count > most else ""


def _unlike(one: LandedReading, own: int, steps: Sequence[_Known], happened_us: int, is_first: bool) -> str:
    """What a reading knows too little or too much as process `own` of a view; empty if nothing.

    is_first: it is the first state of the view, which knows of nobody.
    """
    times = [step.since_us for step in steps]
    before = bisect_left(times, one.t_min - ROUNDED_US)
    until = bisect_right(times, happened_us + ROUNDED_US)
    least = steps[before - 1].least if before and not is_first else {}
    most = steps[until - 1].most if until else {}
    for process, count in enumerate(one.vclock or ()):
        if process == own:
            continue
        few, many = least.get(process, 0), most.get(process, 0)
        if not few <= count <= many:
            expected = f"{few} to {many} had arrived before {happened_us}"
            return f"{one.kind} {one.identity} knows {count} states of process {process}, {expected}"
    return ""
