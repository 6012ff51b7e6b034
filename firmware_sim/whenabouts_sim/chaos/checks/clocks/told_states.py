"""A state of a gateway is soon known to its peers: while both ends run well and are connected, each peer tells of it.

It does so in its next state or clock heartbeat.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from whenabouts_protocol.group_state import HEARTBEAT, KIND, PROCESS, VIEW
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.checks.well import Spans
from whenabouts_sim.chaos.schedule.schedule import Schedule
from whenabouts_sim.world.clocks import EPOCH_US

BEFORE_US = 2_000_000  # both ends have been connected and well for so long before the state
WITHIN_US = 4_000_000  # after the end of its stamp each peer's report of it has begun
AFTER_US = 2_000_000  # from then until that report has landed
HINDERS = ("slow", "refuses")  # the network, for as long


class _Told(NamedTuple):
    """A state or clock heartbeat: its view, the process that told it, its clock."""

    reading: LandedReading
    view: int
    process: int
    clock: Sequence[int]
    begins: bool


def broken_reports(
    schedule: Schedule, landed: Landed, lives: Mapping[str, Spans], links: Mapping[str, Spans], end_us: int
) -> Iterator[str]:
    """States that a peer did not tell of in time. lives: by reader, when its agent surely could store. links: when the
    broker and a gateway could reach each other. end_us: of the schedule, UTC.
    """
    well = dict[str, tuple[Spans, Spans, Spans]]()
    for one in schedule.gateways if schedule.gateways[0].group else ():
        name = f"{one.site}/{one.name}"
        well[name] = lives[one.readers[0][0]], links.get(name, ()), _known(one.clock.known)
    # Gateways of different versions do not understand each other.
    upgraded = {fault.target for fault in schedule.faults if fault.kind == "upgrade"}
    slow = [(EPOCH_US + one.at_us, EPOCH_US + one.end_us) for one in schedule.faults if one.kind in HINDERS]
    told = _told(landed, well.keys() - upgraded)
    for sender, states in told.items():
        for state in states:
            begin_us, until_us = state.reading.t_min - BEFORE_US, state.reading.t_max + WITHIN_US
            if not state.begins or not state.clock[state.process] or until_us + AFTER_US > end_us:
                continue
            if any(begin_us <= end and begin <= until_us for begin, end in slow):
                continue
            if not all(_within(spans, begin_us, until_us + AFTER_US) for spans in well[sender]):
                continue
            for peer, reports in told.items():
                calm = all(_within(spans, begin_us, until_us + AFTER_US) for spans in well[peer][:2])
                if peer != sender and calm and not _knows(reports, state, until_us):
                    yield (
                        f"{peer} did not tell of state {state.clock[state.process]} of {sender} in "
                        f"[{state.reading.t_min}, {state.reading.t_max}] until {WITHIN_US // 1_000_000} s later"
                    )


def _told(landed: Landed, gateways: Collection[str]) -> dict[str, list[_Told]]:
    """What each gateway told, in its order; of those of which nothing was refused."""
    found: dict[str, list[_Told]] = {one: [] for one in gateways}
    refusing = set[str]()
    for one in sorted(landed.readings, key=lambda one: (one.boot, one.seq)):
        gateway = f"{one.site}/{one.gateway}"
        if one.kind == "gap":
            refusing.add(gateway)
        elif one.kind == KIND and gateway in found:
            attrs = json.loads(one.attrs or "{}")
            found[gateway].append(_Told(one, attrs[VIEW], attrs[PROCESS], one.vclock or (), not attrs.get(HEARTBEAT)))
    return {one: told for one, told in found.items() if one not in refusing}


def _knows(reports: Sequence[_Told], state: _Told, until_us: int) -> bool:
    """True if a peer told of it in time, or if it was in another view for a part of that time."""
    same = [number for number, one in enumerate(reports) if one.view == state.view]
    if not same or reports[same[0]].reading.t_max > state.reading.t_max:
        return True
    later = reports[same[-1] + 1 :]
    if later and later[0].reading.t_min <= until_us:
        return True
    number = state.clock[state.process]
    return any(reports[at].clock[state.process] >= number and reports[at].reading.t_min <= until_us for at in same)


def _known(spans: Sequence[tuple[int, int, int]]) -> Spans:
    """When UTC is known: else a state waits before it is published."""
    return [(EPOCH_US + begin, EPOCH_US + end) for begin, end, _ in spans]


def _within(spans: Spans, begin_us: int, end_us: int) -> bool:
    return any(begin <= begin_us and end_us <= end for begin, end in spans)
