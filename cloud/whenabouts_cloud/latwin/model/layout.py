"""Layout of the arrays of one group: five int64 arrays hold everything that is kept between two reports.

    heads    (n, columns of Head)  per process: its window, the states that arrived, the time it has reached
    window   (n, d, CLOCK + n)     the states held, a `Row` each, at place `number mod w`; d = the largest w
    room     (n, r, CLOCK + n)     waiting states, at place `number mod r`: for a predecessor, or for release (patient)
    ends     (n, 2, CLOCK + n)     what is known of the end of the newest state, and of a state that waits
    meta     (columns of Meta)     modes, effects of the last step, counters

A row ends with the clock of its state. In `room` the clock is as reported. In `window` and `ends` it is the effective
clock: the reported one joined with everything that is known to come before it (`effective`). Entry i is the newest
state of process i that began before; the own entry is the state's number. So a choice G of one state per process is a
consistent global state iff `clock(G[j])[i] <= G[i]` for all i != j: no state knows of the end of another one.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, SupportsIndex

import numpy as np

from whenabouts_cloud.jit import Array, columns

NEVER = -(1 << 62)  # the lower bound of an unknown time
FOREVER = 1 << 62
NUMBER_LIMIT = 1 << 48  # state numbers are below this
PROCESSES = 64  # at most in a group
WINDOW = 4096  # states held of a process, at most
ROOM = 16  # states of a process that may wait: reports overtake by fewer, and a patient group waits for fewer


class Row(NamedTuple):
    """A state, or what is known of the end of one. Its clock follows, from column CLOCK on."""

    number: int  # -1: the place is empty
    lo: int
    hi: int
    holds: int  # detector: 1 if the local predicate is true
    run: int  # detector: the first state of its run, or -1
    mark: int  # 1 if the last release raised its clock
    run_hi: int  # detector: the latest start of its run


class Head(NamedTuple):
    """The window of a process, and the time that the process has reached."""

    first: int  # the window holds the numbers `first` .. `next` - 1
    next: int
    arrived: int  # `next` .. `arrived` - 1 wait in the room to be released, without a gap
    behind_gap: int  # number of states that wait behind a gap
    width: int  # w
    reached: int  # no state after those that arrived began before this time
    heard: int  # 1 once a state has arrived since the beginning or the last renewal
    released_any: int  # 1 once a state has been released
    evicted: int  # the state that left the window last, or -1
    evicted_hi: int
    # The rest is of the detector.
    newest: int  # the newest state in the window, and its run
    newest_run: int
    newest_run_hi: int
    proof: int  # the least clock entry that proves the start of the first state: 0 (any), or 1
    witness: int  # its state in the least CGS of the last verdict in which all predicates held
    emitted_run: int  # first state of its run in the latest emitted overlap


class Meta(NamedTuple):
    """Modes, effects of the last step, counters."""

    hybrid: int
    patient: int
    touched: int  # the process of the last report
    emptied: int  # the process whose window the last report emptied, or -1
    forced: int  # the process that must release a state without waiting, or -1
    raised: int  # number of window rows whose clock the last release raised; they are marked
    newest_lo: int  # the latest lower bound of the released states
    verdict: int  # detector: the verdict of the last report
    # The rest are counters.
    accepted: int  # states accepted
    duplicates: int  # repeated states: ignored
    stale: int  # states older than the window's history or given up: ignored
    released: int  # states that entered the window
    renewed: int  # windows restarted by the caller
    gaps_given_up: int  # windows restarted because the room was full
    forced_releases: int  # states released early because the room was full
    cuts: int  # clocks in the window that were raised after their release
    retracted: int  # emitted global states that this refuted
    contradictions: int  # states reported to know of their own end
    clock_heartbeats: int  # clock heartbeats that were used
    clock_heartbeats_unused: int


ROW, HEAD, META = columns(Row), columns(Head), columns(Meta)
CLOCK = len(ROW)
NEWEST, WAITING = 0, 1  # rows of `ends`: of the newest state of the window; of a state that still waits
COUNTER_NAMES = Meta._fields[META.accepted :]

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
    meta = np.zeros(len(META), np.int64)
    meta[META.hybrid], meta[META.patient] = order == "hybrid", patient
    meta[[META.touched, META.emptied, META.forced]] = -1
    meta[META.newest_lo] = NEVER
    heads = np.zeros((processes, len(HEAD)), np.int64)
    heads[:, HEAD.width] = widths
    heads[:, HEAD.reached], heads[:, HEAD.evicted], heads[:, HEAD.evicted_hi] = NEVER, -1, FOREVER
    long = CLOCK + processes
    rings = [np.zeros((processes, depth, long), np.int64) for depth in (max(widths), room, 2)]
    for rows in rings:
        rows[:, :, ROW.number] = -1
    return Ring(meta, heads, *rings)
