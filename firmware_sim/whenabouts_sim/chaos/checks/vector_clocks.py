"""Vector clocks of states: none knows of a state that certainly began later. Entry 0 says nothing: all begin with it."""

import json
from collections.abc import Iterator

from whenabouts_protocol.group_state import HEARTBEAT, KIND, PROCESS, VIEW
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading


def broken_clocks(landed: Landed) -> Iterator[str]:
    """States and clock heartbeats that know of a state of another member which began after them, by both stamps."""
    reports = [(one, json.loads(one.attrs or "{}")) for one in landed.readings if one.kind == KIND]
    states: dict[tuple[int, int, int], LandedReading] = {}
    for one, attrs in reports:
        if not attrs.get(HEARTBEAT):
            states[attrs[VIEW], attrs[PROCESS], (one.vclock or ())[attrs[PROCESS]]] = one
    for one, attrs in reports:
        for process, number in enumerate(one.vclock or ()):
            known = states.get((attrs[VIEW], process, number))
            if number and process != attrs[PROCESS] and known is not None and known.t_min > one.t_max:
                yield (
                    f"{one.identity}, which ended at {one.t_max}, knows of state {number} of {known.gateway}, which began "
                    f"{known.t_min - one.t_max} us later"
                )
