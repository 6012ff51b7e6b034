"""The law of what watermarks say of states: each says that the last state that was published before it lasted until then.

So no badge has come since a state without it began, and none has surely left since one with it did. Of a state that a full
spool refused, a gap reading or the numbers of clock heartbeats tell.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from whenabouts_protocol.group_state import EARLIER, PROCESS, VIEW
from whenabouts_sim.chaos.checks.gateways.states import states_of
from whenabouts_sim.chaos.checks.gateways.visits import SURELY_US, begins_of, pauses
from whenabouts_sim.chaos.checks.landed import Id, Landed, LandedReading
from whenabouts_sim.chaos.checks.well import Spans
from whenabouts_sim.chaos.network.overheard import Said
from whenabouts_sim.chaos.parts.gateway_part import badge_of
from whenabouts_sim.chaos.parts.job_rules import state_stream
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting


def broken_lasting(
    gateways: Sequence[tuple[str, str]],
    reported: Sequence[Sighting],
    landed: Landed,
    heartbeats: Iterable[Said],
    shut: Mapping[str, Spans],
) -> Iterator[str]:
    """For each gateway the first watermark beyond the end of the last state that it covers. Parameters as in `visits`."""
    said_by: dict[tuple[str, str], list[Said]] = {}
    for said in heartbeats:
        said_by.setdefault((said.beat.site, said.beat.gateway), []).append(said)
    for site, gateway in gateways:
        reader = badge_of(gateway)
        times = sorted(EPOCH_US + one.true_us for one in reported if one.reader == reader)
        reads = [one for one in landed.readings if one.stream == f"{reader}/tags"]
        came = [*times[:1], *begins_of(times)]
        is_told = not any(one.kind == "gap" for one in reads)  # else the stamps of some reads are not known
        left = [one + SURELY_US for one, _ in pauses(times, reads, shut.get(reader, ()))] if is_told else []
        states = {one.identity: is_there for _, _, one, is_there in states_of(landed, site, gateway)}
        told = [
            one
            for one in landed.readings
            if (one.site, one.gateway, one.stream) == (site, gateway, state_stream(gateway))
        ]
        for said in said_by.get((site, gateway), ()):
            if text := _ended(said, told, states, came, left):
                yield f"{site}/{gateway} {text}"
                break


def _ended(
    said: Said,
    told: Iterable[LandedReading],
    states: Mapping[Id, bool | None],
    came: Sequence[int],
    left: Sequence[int],
) -> str:
    """The end of the last published state, if it was before the watermark. told: in the stream of states."""
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
    ends = () if is_there is None else left if is_there else came
    at = bisect_right(ends, state.t_max)
    if at == len(ends) or ends[at] >= until_us:
        return ""
    what = "left" if is_there else "come"
    return f"said that its state {state.identity} lasted until {until_us}, and its badge had {what} by {ends[at]}"


def _place(one: LandedReading) -> tuple[int, int]:
    """The view of a state or clock heartbeat, and the number of its gateway's state in it."""
    attrs = json.loads(one.attrs or "{}")
    return attrs[VIEW], (one.vclock or ())[attrs[PROCESS]]
