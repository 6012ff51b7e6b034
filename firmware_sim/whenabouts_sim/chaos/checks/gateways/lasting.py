"""The law of what watermarks say of states: each says that the last state that was published before it lasted until then.

So no badge has come since a state without it began, also none that a closed port hid, and none that was not read for long
enough is said to be there. Of a state that a full spool refused, a gap reading or the numbers of clock heartbeats tell.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from whenabouts_protocol.group_state import EARLIER, PROCESS, VIEW
from whenabouts_sim.chaos.checks.gateways.states import State, states_of
from whenabouts_sim.chaos.checks.gateways.visits import LEAVE_US, SURELY_US, begins_of, pauses
from whenabouts_sim.chaos.checks.landed import Id, Landed, LandedReading
from whenabouts_sim.chaos.network.overheard import Said
from whenabouts_sim.chaos.parts.gateway_part import badge_of
from whenabouts_sim.chaos.parts.job_rules import state_stream
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

STAYS_US = LEAVE_US * 5 // 6  # for so long a badge is surely there after a sighting: clocks may be slewed by a twelfth


def broken_lasting(
    gateways: Sequence[tuple[str, str]],
    reported: Sequence[Sighting],
    hidden: Sequence[Sighting],
    landed: Landed,
    heartbeats: Iterable[Said],
) -> Iterator[str]:
    """For each gateway the states in which its badge was away and was hidden, and the first watermark beyond the end of the
    last state that it covers. hidden: sightings of which the bytes were lost with their port; others as in `visits`.
    """
    said_by: dict[tuple[str, str], list[Said]] = {}
    for said in heartbeats:
        said_by.setdefault((said.beat.site, said.beat.gateway), []).append(said)
    for site, gateway in gateways:
        reader = badge_of(gateway)
        times = sorted(EPOCH_US + one.true_us for one in reported if one.reader == reader)
        reads = [one for one in landed.readings if one.stream == f"{reader}/tags"]
        came = [*times[:1], *begins_of(times)]
        missed = sorted(EPOCH_US + one.true_us for one in hidden if one.reader == reader)
        is_told = not any(one.kind == "gap" for one in reads)  # else the stamps of some reads are not known
        left = [one + SURELY_US for one, _ in pauses(times, reads)] if is_told else []
        found = sorted(states_of(landed, site, gateway))
        for before, after in pairwise(found):
            if before[:2] == (after[0], after[1] - 1) and (at_us := _within(before, after, missed)):
                yield f"{site}/{gateway} began {after[2].identity} when its badge had been there by {at_us}"
        states = {one.identity: is_there for _, _, one, is_there in found}
        told = [
            one
            for one in landed.readings
            if (one.site, one.gateway, one.stream) == (site, gateway, state_stream(gateway))
        ]
        for said in said_by.get((site, gateway), ()):
            if text := _ended(said, told, states, came, left, missed):
                yield f"{site}/{gateway} {text}"
                break


def _ended(
    said: Said,
    told: Iterable[LandedReading],
    states: Mapping[Id, bool | None],
    came: Sequence[int],
    left: Sequence[int],
    missed: Sequence[int],
) -> str:
    """The end of the last published state, if it was before the watermark. told: in the stream of states. missed: moments of
    sightings that a port hid.
    """
    boot, until_us = said.beat.boot, said.beat.frontier_us
    _, last = said.beat.published.get(boot, (0, -1))
    published = {one.seq: one for one in told if one.boot == boot and one.seq <= last}
    numbers = [seq for seq, one in published.items() if one.identity in states]
    if until_us is None or not numbers:
        return ""
    state = published[max(numbers)]
    if any(one.seq > state.seq and (one.kind == "gap" or _place(one) != _place(state)) for one in published.values()):
        return ""
    # What an earlier start has found may have ended before this one.
    is_there = None if EARLIER in json.loads(state.attrs or "{}") else states[state.identity]
    if is_there is None:
        return ""
    text = f"said that its state {state.identity} lasted until {until_us}, and its badge"
    if at_us := _between(left if is_there else came, state.t_max, until_us):
        return f"{text} had {'left' if is_there else 'come'} by {at_us}"
    at_us = 0 if is_there else _between(missed, state.t_max - STAYS_US, until_us)
    return f"{text} had been there by {at_us}" if at_us else ""


def _within(before: State, after: State, missed: Sequence[int]) -> int:
    """The first sighting that a port hid in the time of a state before another, if its badge was away; else 0."""
    was_away = before[3] is False and EARLIER not in json.loads(before[2].attrs or "{}")
    return _between(missed, before[2].t_max - STAYS_US, after[2].t_min) if was_away else 0


def _between(moments: Sequence[int], since_us: int, until_us: int) -> int:
    """The first of these moments between two others; 0 if there is none."""
    at = bisect_right(moments, since_us)
    return moments[at] if at < len(moments) and moments[at] < until_us else 0


def _place(one: LandedReading) -> tuple[int, int]:
    """The view of a state or clock heartbeat, and the number of its gateway's state in it."""
    attrs = json.loads(one.attrs or "{}")
    return attrs[VIEW], (one.vclock or ())[attrs[PROCESS]]
