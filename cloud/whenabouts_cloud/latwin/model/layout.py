"""Where things lie in the arrays of one group: all that is kept between two reports is five int64 arrays.

    heads    (n, HEADS)        per process: its window, what has arrived, how far its time is known; room for the caller
    window   (n, d, ROW + n)   the states held, a row each, at place `number mod w` of the process; d = the largest w
    room     (n, r, ROW + n)   states that wait, at place `number mod r`: for a predecessor, or to be released (patient)
    evidence (n, 2, ROW + n)   what is known of the end of the newest state; the same of a state that still waits
    meta     (META)            modes, what the last step did, counters

A row is the number of a state, bounds of the time it began, a flag of the caller's, a mark, two numbers of the caller's, and
its clock. In `room` the clock is as reported. In `window` and `evidence` it is the effective clock: the reported one with
everything folded in that is known to come before it (`effective`). Entry i is the newest state of process i that began
before; the own entry is the state's number. So a choice G of one state per process is a consistent global state iff
`clock(G[j])[i] <= G[i]` for all i != j: no state knows of the end of another one.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, SupportsIndex

import numpy as np

from whenabouts_cloud.jit import Array

NEVER = -(1 << 62)  # the lower bound of a time of which nothing is known
FOREVER = 1 << 62
NUMBER_LIMIT = 1 << 48  # numbers of states stay below
PROCESSES = 64  # of a group at most
WINDOW = 4096  # states of a process at most
ROOM = 16  # states of a process that may wait: reports overtake by less, and a patient group waits for less

# a row
NUMBER, LO, HI, FLAG, RUN, MARK = 0, 1, 2, 3, 4, 5
RUN_HI = 6  # a second number of the caller's
ROW = 7

# heads
FIRST, NEXT = 0, 1  # the window holds the numbers FIRST .. NEXT - 1
ARRIVED = 2  # NEXT .. ARRIVED - 1 wait in the room to be released, without a gap
AHEAD = 3  # how many states wait behind a gap
WIDTH = 4  # w
WATER = 5  # what comes after the states that arrived did not begin before this time
HEARD = 6  # 1 once a state has come since the beginning or the last renewal
BEGUN = 7  # 1 once one has been released
GONE, GONE_HI = 8, 9  # the state that left the window last, and the upper bound of its begin
MINE = 10  # the caller's from here on
HEADS = 16

# meta
HYBRID, PATIENT = 0, 1  # modes
TOUCHED = 2  # the process that the last report was of
EMPTIED = 3  # the process whose window the last report emptied, or -1
FORCED = 4  # the process that must release a state without waiting, or -1
RAISED = 5  # rows of the window whose clock the last release raised; they are marked
NEWEST_LO = 6  # the latest lower bound of what was released
COUNTERS = 16
ACCEPTED, DUPLICATES, STALE, RELEASED, RENEWED, GIVEN_UP, HASTY, CUTS, CONTRADICTIONS, EVIDENCE, UNUSED, RETRACTED = (
    range(COUNTERS, COUNTERS + 12)
)
CALLER = 30  # a number of the caller's
META = 32

COUNTER_NAMES = {
    "accepted": ACCEPTED,  # states taken in
    "duplicates": DUPLICATES,  # states that had come before: ignored
    "stale": STALE,  # states older than the window's history or given up: ignored
    "released": RELEASED,  # states that entered the window
    "renewed": RENEWED,  # windows begun anew by the caller
    "gaps_given_up": GIVEN_UP,  # windows begun anew because the room was full
    "forced_releases": HASTY,  # states released before their time because the room was full
    "cuts": CUTS,  # clocks in the window that were raised after the fact
    "retracted": RETRACTED,  # global states that were told and taken back for it
    "contradictions": CONTRADICTIONS,  # a state said to know of its own end
    "evidence": EVIDENCE,  # reports without a state that were of use
    "evidence_unused": UNUSED,  # and those that were not
}

# what `accept` and `note` answer
TAKEN, IGNORED, NO_ROOM = 0, 1, 2
BAD_PROCESS, BAD_STATE, BAD_OWN, BAD_ENTRY, BAD_TIME = -1, -2, -3, -4, -5


class Ring(NamedTuple):
    """The arrays of a group, see above."""

    meta: Array
    heads: Array
    window: Array
    room: Array
    evidence: Array


def new_ring(processes: int, window: int | Sequence[int], order: str, patient: bool = False, room: int = ROOM) -> Ring:
    """The arrays of a group of which nothing is known: every process is expected to begin with state 0.

    Raises:
        ValueError: a number of processes, a window, an order or a room that there is not.
    """
    if not isinstance(processes, SupportsIndex) or not 1 <= processes <= PROCESSES:
        raise ValueError(f"processes: found {processes!r}, expected 1 to {PROCESSES}")
    widths = list(window) if isinstance(window, Iterable) else [window] * processes
    if len(widths) != processes or not all(isinstance(w, SupportsIndex) and 1 <= w <= WINDOW for w in widths):
        raise ValueError(f"window: found {window}, expected 1 to {WINDOW} states, or that for each of {processes}")
    if order not in ("causal", "hybrid"):
        raise ValueError(f"order: found {order!r}, expected 'causal' or 'hybrid'")
    if patient and order == "causal":
        raise ValueError("patient: found with order 'causal', expected 'hybrid': without times nothing is withdrawn")
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
