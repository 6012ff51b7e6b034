"""Layout of the arrays of one group: five int64 arrays hold everything that is kept between two reports.

    heads    (n, HEADS)        per process: its window, the states that arrived, the time it has reached; the caller's part
    window   (n, d, ROW + n)   the states held, a row each, at place `number mod w` of the process; d = the largest w
    room     (n, r, ROW + n)   waiting states, at place `number mod r`: for a predecessor, or to be released (patient)
    ends     (n, 2, ROW + n)   knowledge of the end of the newest state; and of the end of a state that still waits
    meta     (META)            modes, effects of the last step, counters

A row is the number of a state, bounds of its start, a flag of the caller's, a mark, two numbers of the caller's, and
its clock. In `room` the clock is as reported. In `window` and `ends` it is the effective clock: the reported one
joined with everything that is known to come before it (`effective`). Entry i is the newest state of process i that
began before; the own entry is the state's number. So a choice G of one state per process is a consistent global state
iff `clock(G[j])[i] <= G[i]` for all i != j: no state knows of the end of another one.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, SupportsIndex

import numpy as np

from whenabouts_cloud.jit import Array

NEVER = -(1 << 62)  # the lower bound of an unknown time
FOREVER = 1 << 62
NUMBER_LIMIT = 1 << 48  # state numbers are below this
PROCESSES = 64  # at most in a group
WINDOW = 4096  # states held of a process, at most
ROOM = 16  # states of a process that may wait: reports overtake by fewer, and a patient group waits for fewer

# a row
NUMBER, LO, HI, FLAG, RUN, MARK = 0, 1, 2, 3, 4, 5
RUN_HI = 6  # a second number of the caller's
ROW = 7

# heads
FIRST, NEXT = 0, 1  # the window holds the numbers FIRST .. NEXT - 1
ARRIVED = 2  # NEXT .. ARRIVED - 1 wait in the room to be released, without a gap
AHEAD = 3  # number of states that wait behind a gap
WIDTH = 4  # w
WATER = 5  # no state after those that arrived began before this time
HEARD = 6  # 1 once a state has arrived since the beginning or the last renewal
BEGUN = 7  # 1 once a state has been released
GONE, GONE_HI = 8, 9  # the state that left the window last, and the upper bound of its start
MINE = 10  # columns of the caller from here on
HEADS = 16

# meta
HYBRID, PATIENT = 0, 1  # modes
TOUCHED = 2  # the process of the last report
EMPTIED = 3  # the process whose window the last report emptied, or -1
FORCED = 4  # the process that must release a state without waiting, or -1
RAISED = 5  # number of window rows whose clock the last release raised; they are marked
NEWEST_LO = 6  # the latest lower bound of the released states
COUNTERS = 16
ACCEPTED, DUPLICATES, STALE, RELEASED, RENEWED, GIVEN_UP, HASTY, CUTS, CONTRADICTIONS, HEARTBEATS, UNUSED, RETRACTED = (
    range(COUNTERS, COUNTERS + 12)
)
CALLER = 30  # a number of the caller's
META = 32

COUNTER_NAMES = {
    "accepted": ACCEPTED,  # states accepted
    "duplicates": DUPLICATES,  # repeated states: ignored
    "stale": STALE,  # states older than the window's history or given up: ignored
    "released": RELEASED,  # states that entered the window
    "renewed": RENEWED,  # windows restarted by the caller
    "gaps_given_up": GIVEN_UP,  # windows restarted because the room was full
    "forced_releases": HASTY,  # states released early because the room was full
    "cuts": CUTS,  # clocks in the window that were raised after their release
    "retracted": RETRACTED,  # emitted global states that this refuted
    "contradictions": CONTRADICTIONS,  # states reported to know of their own end
    "clock_heartbeats": HEARTBEATS,  # clock heartbeats that were used
    "clock_heartbeats_unused": UNUSED,  # clock heartbeats that were not used
}

# return values of `accept` and `note`
TAKEN, IGNORED, NO_ROOM = 0, 1, 2
BAD_PROCESS, BAD_STATE, BAD_OWN, BAD_ENTRY, BAD_TIME = -1, -2, -3, -4, -5


class Ring(NamedTuple):
    """The arrays of a group, see above."""

    meta: Array
    heads: Array
    window: Array
    room: Array
    ends: Array


def new_ring(processes: int, window: int | Sequence[int], order: str, patient: bool = False, room: int = ROOM) -> Ring:
    """The arrays of a group without reports: every process is expected to begin with state 0.

    Raises:
        ValueError: a number of processes, a window, an order or a room out of range, or `patient` with order "causal".
    """
    if not isinstance(processes, SupportsIndex) or not 1 <= processes <= PROCESSES:
        raise ValueError(f"processes: found {processes!r}, expected 1 to {PROCESSES}")
    widths = list(window) if isinstance(window, Iterable) else [window] * processes
    if len(widths) != processes or not all(isinstance(w, SupportsIndex) and 1 <= w <= WINDOW for w in widths):
        raise ValueError(f"window: found {window}, expected 1 to {WINDOW} states, or a number for each of {processes}")
    if order not in ("causal", "hybrid"):
        raise ValueError(f"order: found {order!r}, expected 'causal' or 'hybrid'")
    if patient and order == "causal":
        raise ValueError("patient: found with order 'causal', expected 'hybrid': without times nothing is retracted")
    if not isinstance(room, SupportsIndex) or room < 1:
        raise ValueError(f"room: found {room!r}, expected at least 1 state")
    meta = np.zeros(META, np.int64)
    meta[HYBRID], meta[PATIENT] = order == "hybrid", patient
    meta[[TOUCHED, EMPTIED, FORCED]] = -1
    meta[NEWEST_LO] = NEVER
    heads = np.zeros((processes, HEADS), np.int64)
    heads[:, WIDTH] = widths
    heads[:, WATER], heads[:, GONE], heads[:, GONE_HI] = NEVER, -1, FOREVER
    long = ROW + processes
    rings = [np.zeros((processes, depth, long), np.int64) for depth in (max(widths), room, 2)]
    for rows in rings:
        rows[:, :, NUMBER] = -1
    return Ring(meta, heads, *rings)
