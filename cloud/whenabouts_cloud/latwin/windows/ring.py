"""Takes reports of states, releases them one at a time into the windows: order, duplicates, gaps, bounded waiting.

A push is one call of machine code that does

    while True:
        status = accept(ring, process, number, clock, lo, hi, holds)
        (status < 0: the report is wrong and nothing has changed)
        if ring.meta[EMPTIED] >= 0: drop what was built on the window of that process
        while (k := release(ring)) >= 0: the window of process k has received the state numbered ring.heads[k, NEXT] - 1
        if status != NO_ROOM: break

and so does a push of a clock heartbeat, with `note` in place of `accept`. No order across processes is needed: with
dense clocks (entry = number of a reported state) two states can be compared by themselves.

States of a process enter its window in the order of their numbers. A state that arrives before a predecessor waits in
the room; in a patient group, so does a state that is not due (`effective.due`). When a state arrives that does not fit,
the oldest states of its process that wait only to be due are released at once; if there are none, the gap is given up:
the window is emptied and restarts with the oldest waiting state. Both are counted.

Yang et al. (2011) put states into the window as they arrive. Over channels that are not FIFO a state would then seem to
last until the start of a state that is not its successor, and all their theorems presume windows without gaps.
"""

from typing import Any

from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref
from whenabouts_cloud.latwin.model.layout import (
    BAD_ENTRY,
    BAD_OWN,
    BAD_PROCESS,
    BAD_STATE,
    BAD_TIME,
    CLOCK,
    FOREVER,
    HEAD,
    IGNORED,
    META,
    NEVER,
    NEWEST,
    NO_ROOM,
    NUMBER_LIMIT,
    ROW,
    TAKEN,
    WAITING,
    Ring,
)
from whenabouts_cloud.latwin.windows.effective import due, join, raise_future, raise_to_past, raise_to_waiting, unmark


@compiled_inline
def accept(ring: Ring, process: int, number: int, clock: Array, lo: int, hi: int, holds: int) -> Any:
    """Takes the report that `process` began state `number` between `lo` and `hi`. O(n).

    Returns TAKEN, IGNORED (repeated, or given up), NO_ROOM (call again after the releases) or a negative number for a
    wrong report.
    """
    meta, heads, room = ring.meta, ring.heads, ring.room
    meta[META.emptied] = -1
    n = len(heads)
    status = wrong(n, process, number, clock)
    if status == 0 and not NEVER <= lo <= hi <= FOREVER:
        status = BAD_TIME
    if status < 0:
        return status
    meta[META.touched] = process
    head = heads[process]
    places = room.shape[1]
    row = room[process, number % places]
    if number < head[HEAD.first]:
        meta[META.stale] += 1
        return IGNORED
    if number < head[HEAD.arrived] or row[ROW.number] == number:
        meta[META.duplicates] += 1
        return IGNORED
    if number >= head[HEAD.next] + places:
        make_room(ring, process, number)
        return NO_ROOM
    row[ROW.number], row[ROW.lo], row[ROW.hi], row[ROW.holds], row[ROW.run], row[ROW.mark] = (
        number,
        lo,
        hi,
        holds,
        -1,
        0,
    )
    for i in range(n):
        row[CLOCK + i] = clock[i]
    meta[META.accepted] += 1
    head[HEAD.behind_gap] += 1
    advance(ring, process)
    return TAKEN


@compiled_inline
def wrong(n: int, process: int, number: int, clock: Array) -> Any:
    """0, or the error status of a process, a number and a clock."""
    if not 0 <= process < n:
        return BAD_PROCESS
    if not 0 <= number < NUMBER_LIMIT:
        return BAD_STATE
    if clock[process] != number:
        return BAD_OWN
    for i in range(n):
        if not 0 <= clock[i] < NUMBER_LIMIT:
            return BAD_ENTRY
    return 0


@compiled_inline
def advance(ring: Ring, process: int) -> None:
    """Extends the states that have arrived without a gap, and the time that the process is known to have reached."""
    head, room = ring.heads[process], ring.room[process]
    places = len(room)
    while True:
        number = head[HEAD.arrived]
        row = room[number % places]
        if row[ROW.number] != number:
            break
        head[HEAD.arrived] += 1
        head[HEAD.behind_gap] -= 1
        head[HEAD.heard] = 1
        head[HEAD.reached] = max(head[HEAD.reached], row[ROW.lo])
        pending = ring.ends[process, WAITING]
        if pending[ROW.number] == number:
            head[HEAD.reached] = max(head[HEAD.reached], pending[ROW.lo])


@compiled_noref
def make_room(ring: Ring, process: int, number: int) -> None:
    """Makes progress towards room for state `number` of a process."""
    meta, head, room = ring.meta, ring.heads[process], ring.room[process]
    if head[HEAD.arrived] > head[HEAD.next]:
        meta[META.forced] = process
        return
    oldest = number
    for place in range(len(room)):
        if room[place, ROW.number] >= 0:
            oldest = min(oldest, room[place, ROW.number])
    begin_at(ring, process, oldest)
    meta[META.gaps_given_up] += 1


@compiled_noref
def begin_at(ring: Ring, process: int, number: int) -> None:
    """Empties the window of a process; it restarts with state `number`. Waiting states from there on are kept."""
    head, room, window = ring.heads[process], ring.room[process], ring.window[process]
    for place in range(len(window)):
        window[place, ROW.number] = -1
    for place in range(len(room)):
        if 0 <= room[place, ROW.number] < number:
            if room[place, ROW.number] >= head[HEAD.arrived]:
                head[HEAD.behind_gap] -= 1
            room[place, ROW.number] = -1
    ring.ends[process, NEWEST, ROW.number] = -1
    if ring.ends[process, WAITING, ROW.number] < number:
        ring.ends[process, WAITING, ROW.number] = -1
    if head[HEAD.arrived] <= number:
        head[HEAD.arrived], head[HEAD.heard], head[HEAD.reached] = number, 0, NEVER
    head[HEAD.first], head[HEAD.next], head[HEAD.released_any] = number, number, 0
    head[HEAD.evicted], head[HEAD.evicted_hi] = -1, FOREVER
    ring.meta[META.emptied], ring.meta[META.touched] = process, process
    advance(ring, process)


@compiled_noref
def renew(ring: Ring, process: int, number: int) -> Any:
    """Restarts a process at a state that has not yet entered its window: TAKEN, or an error status. Releases may follow."""
    if not 0 <= process < len(ring.heads):
        return BAD_PROCESS
    if not ring.heads[process, HEAD.next] <= number < NUMBER_LIMIT:
        return BAD_STATE
    begin_at(ring, process, number)
    ring.meta[META.renewed] += 1
    return TAKEN


@compiled_inline
def release(ring: Ring) -> Any:
    """Moves the next state that is due from the room into its window; returns its process, or -1 if none is due.

    The window then has its effective clock; other states whose clocks it raised are marked, `meta[RAISED]` of them. A
    causal group checks only the process of the last report: O(n). A patient one checks all: O(n^2).
    """
    meta, heads = ring.meta, ring.heads
    if meta[META.forced] >= 0:
        chosen = meta[META.forced]
        meta[META.forced] = -1
        meta[META.forced_releases] += 1
    elif meta[META.patient]:
        chosen = due(ring)
    else:
        chosen = meta[META.touched]
        if chosen >= 0 and heads[chosen, HEAD.next] == heads[chosen, HEAD.arrived]:
            chosen = -1
    if chosen >= 0:
        slide(ring, chosen)
    return chosen


@compiled_inline
def slide(ring: Ring, process: int) -> None:
    """Moves the oldest waiting state of a process into its window, in place of the one that leaves it."""
    meta, head = ring.meta, ring.heads[process]
    number, width = head[HEAD.next], head[HEAD.width]
    waiting = ring.room[process, number % ring.room.shape[1]]
    row = ring.window[process, number % width]
    unmark(ring)
    if meta[META.hybrid] and (head[HEAD.arrived] > number + 1 and not (meta[META.patient] and head[HEAD.released_any])):
        raise_to_waiting(ring, process)
    head[HEAD.released_any] = 1
    if row[ROW.number] >= 0:
        head[HEAD.evicted], head[HEAD.evicted_hi] = row[ROW.number], row[ROW.hi]
        head[HEAD.first] = row[ROW.number] + 1
    for i in range(len(row)):
        row[i] = waiting[i]
    waiting[ROW.number] = -1
    meta[META.released] += 1
    end, pending = ring.ends[process, NEWEST], ring.ends[process, WAITING]
    if end[ROW.number] >= 0:
        row[ROW.lo] = max(row[ROW.lo], end[ROW.lo])
        join(ring, row, end[CLOCK:], process)
    meta[META.newest_lo] = max(meta[META.newest_lo], row[ROW.lo])
    raise_to_past(ring, process, row)
    head[HEAD.next] = number + 1
    for i in range(len(row)):
        end[i] = row[i]
    if pending[ROW.number] == number:
        end[ROW.lo] = max(end[ROW.lo], pending[ROW.lo])
        join(ring, end, pending[CLOCK:], process)
        raise_to_past(ring, process, end)
        pending[ROW.number] = -1
    if meta[META.hybrid]:
        raise_future(ring, process, row)


@compiled_noref
def note(ring: Ring, process: int, number: int, clock: Array, lo: int) -> Any:
    """Takes a clock heartbeat: `process` was still in state `number` when it knew `clock`, at `lo` or later.

    Returns TAKEN, IGNORED or an error. A `number` of -1 means the newest that has arrived, if nothing waits behind a
    gap; the clock is then not read. Only the knowledge of the end of the state is raised. For a waiting state, the
    latest heartbeat is kept. O(n^2 w).
    """
    meta, heads = ring.meta, ring.heads
    meta[META.emptied] = -1
    n = len(heads)
    if number >= 0:
        status = wrong(n, process, number, clock)
        if status < 0:
            return status
    elif not 0 <= process < n:
        return BAD_PROCESS
    head, ends = heads[process], ring.ends[process]
    meta[META.touched] = process
    with_clock = number >= 0
    if not with_clock:
        number = head[HEAD.arrived] - 1 if head[HEAD.heard] and head[HEAD.behind_gap] == 0 else -1
    beyond = number >= head[HEAD.next] + ring.room.shape[1]
    if number < head[HEAD.arrived] - 1 or number < 0 or beyond or number < ends[WAITING, ROW.number]:
        meta[META.clock_heartbeats_unused] += 1
        return IGNORED
    meta[META.clock_heartbeats] += 1
    if number < head[HEAD.arrived]:
        head[HEAD.reached] = max(head[HEAD.reached], lo)
    row = ends[NEWEST] if number == head[HEAD.next] - 1 and ends[NEWEST, ROW.number] == number else ends[WAITING]
    if row[ROW.number] != number:
        row[ROW.number], row[ROW.lo] = number, lo
        for i in range(n):
            row[CLOCK + i] = 0
        row[CLOCK + process] = number
    row[ROW.lo] = max(row[ROW.lo], lo)
    if with_clock:
        join(ring, row, clock, process)
    if row[ROW.number] == head[HEAD.next] - 1:
        raise_to_past(ring, process, row)
    return TAKEN
