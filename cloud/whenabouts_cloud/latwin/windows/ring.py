"""Takes reports of states, releases them one at a time into the windows: order, duplicates, gaps, bounded waiting.

A push is one call of machine code that does

    while True:
        status = accept(ring, process, number, clock, lo, hi, flag)
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

from whenabouts_cloud.jit import Array, compiled_noref
from whenabouts_cloud.latwin.model import layout
from whenabouts_cloud.latwin.model.layout import Ring
from whenabouts_cloud.latwin.windows.effective import announce, due, fold, join, spread, unmark


@compiled_noref
def accept(ring: Ring, process: int, number: int, clock: Array, lo: int, hi: int, flag: int) -> Any:
    """Takes the report that `process` began state `number` between `lo` and `hi`. O(n).

    Returns TAKEN, IGNORED (repeated, or given up), NO_ROOM (call again after the releases) or a negative number for a
    wrong report.
    """
    meta, heads, room = ring.meta, ring.heads, ring.room
    meta[layout.EMPTIED] = -1
    n = len(heads)
    status = wrong(n, process, number, clock)
    if status == 0 and lo > hi:
        status = layout.BAD_TIME
    if status < 0:
        return status
    meta[layout.TOUCHED] = process
    head = heads[process]
    places = room.shape[1]
    row = room[process, number % places]
    if number < head[layout.FIRST]:
        meta[layout.STALE] += 1
        return layout.IGNORED
    if number < head[layout.ARRIVED] or row[layout.NUMBER] == number:
        meta[layout.DUPLICATES] += 1
        return layout.IGNORED
    if number >= head[layout.NEXT] + places:
        make_room(ring, process, number)
        return layout.NO_ROOM
    row[layout.NUMBER], row[layout.LO], row[layout.HI], row[layout.FLAG], row[layout.RUN], row[layout.MARK] = (
        number,
        lo,
        hi,
        flag,
        -1,
        0,
    )
    for i in range(n):
        row[layout.ROW + i] = clock[i]
    meta[layout.ACCEPTED] += 1
    head[layout.AHEAD] += 1
    advance(ring, process)
    return layout.TAKEN


@compiled_noref
def wrong(n: int, process: int, number: int, clock: Array) -> Any:
    """0, or the error status of a process, a number and a clock."""
    if not 0 <= process < n:
        return layout.BAD_PROCESS
    if not 0 <= number < layout.NUMBER_LIMIT:
        return layout.BAD_STATE
    if clock[process] != number:
        return layout.BAD_OWN
    for i in range(n):
        if not 0 <= clock[i] < layout.NUMBER_LIMIT:
            return layout.BAD_ENTRY
    return 0


@compiled_noref
def advance(ring: Ring, process: int) -> None:
    """Extends the states that have arrived without a gap, and the time that the process is known to have reached."""
    head, room = ring.heads[process], ring.room[process]
    places = len(room)
    while True:
        number = head[layout.ARRIVED]
        row = room[number % places]
        if row[layout.NUMBER] != number:
            break
        head[layout.ARRIVED] += 1
        head[layout.AHEAD] -= 1
        head[layout.HEARD] = 1
        head[layout.WATER] = max(head[layout.WATER], row[layout.LO])
        pending = ring.ends[process, 1]
        if pending[layout.NUMBER] == number:
            head[layout.WATER] = max(head[layout.WATER], pending[layout.LO])


@compiled_noref
def make_room(ring: Ring, process: int, number: int) -> None:
    """Makes progress towards room for state `number` of a process."""
    meta, head, room = ring.meta, ring.heads[process], ring.room[process]
    if head[layout.ARRIVED] > head[layout.NEXT]:
        meta[layout.FORCED] = process
        return
    oldest = number
    for place in range(len(room)):
        if room[place, layout.NUMBER] >= 0:
            oldest = min(oldest, room[place, layout.NUMBER])
    begin_at(ring, process, oldest)
    meta[layout.GIVEN_UP] += 1


@compiled_noref
def begin_at(ring: Ring, process: int, number: int) -> None:
    """Empties the window of a process; it restarts with state `number`. Waiting states from there on are kept."""
    head, room, window = ring.heads[process], ring.room[process], ring.window[process]
    for place in range(len(window)):
        window[place, layout.NUMBER] = -1
    for place in range(len(room)):
        if 0 <= room[place, layout.NUMBER] < number:
            if room[place, layout.NUMBER] >= head[layout.ARRIVED]:
                head[layout.AHEAD] -= 1
            room[place, layout.NUMBER] = -1
    ring.ends[process, 0, layout.NUMBER] = -1
    if ring.ends[process, 1, layout.NUMBER] < number:
        ring.ends[process, 1, layout.NUMBER] = -1
    if head[layout.ARRIVED] <= number:
        head[layout.ARRIVED], head[layout.HEARD], head[layout.WATER] = number, 0, layout.NEVER
    head[layout.FIRST], head[layout.NEXT], head[layout.BEGUN] = number, number, 0
    head[layout.GONE], head[layout.GONE_HI] = -1, layout.FOREVER
    ring.meta[layout.EMPTIED], ring.meta[layout.TOUCHED] = process, process
    advance(ring, process)


@compiled_noref
def renew(ring: Ring, process: int, number: int) -> Any:
    """Restarts a process at a state that has not yet entered its window: TAKEN, or an error status. Releases may follow."""
    if not 0 <= process < len(ring.heads):
        return layout.BAD_PROCESS
    if not ring.heads[process, layout.NEXT] <= number < layout.NUMBER_LIMIT:
        return layout.BAD_STATE
    begin_at(ring, process, number)
    ring.meta[layout.RENEWED] += 1
    return layout.TAKEN


@compiled_noref
def release(ring: Ring) -> Any:
    """Moves the next state that is due from the room into its window; returns its process, or -1 if none is due.

    The window then has its effective clock; other states whose clocks it raised are marked, `meta[RAISED]` of them. A
    causal group checks only the process of the last report: O(n). A patient one checks all: O(n^2).
    """
    meta, heads = ring.meta, ring.heads
    if meta[layout.FORCED] >= 0:
        chosen = meta[layout.FORCED]
        meta[layout.FORCED] = -1
        meta[layout.HASTY] += 1
    elif meta[layout.PATIENT]:
        chosen = due(ring)
    else:
        chosen = meta[layout.TOUCHED]
        if chosen >= 0 and heads[chosen, layout.NEXT] == heads[chosen, layout.ARRIVED]:
            chosen = -1
    if chosen >= 0:
        slide(ring, chosen)
    return chosen


@compiled_noref
def slide(ring: Ring, process: int) -> None:
    """Moves the oldest waiting state of a process into its window, in place of the one that leaves it."""
    meta, head = ring.meta, ring.heads[process]
    number, width = head[layout.NEXT], head[layout.WIDTH]
    waiting = ring.room[process, number % ring.room.shape[1]]
    row = ring.window[process, number % width]
    unmark(ring)
    if meta[layout.HYBRID] and (
        head[layout.ARRIVED] > number + 1 and not (meta[layout.PATIENT] and head[layout.BEGUN])
    ):
        announce(ring, process)
    head[layout.BEGUN] = 1
    if row[layout.NUMBER] >= 0:
        head[layout.GONE], head[layout.GONE_HI] = row[layout.NUMBER], row[layout.HI]
        head[layout.FIRST] = row[layout.NUMBER] + 1
    for i in range(len(row)):
        row[i] = waiting[i]
    waiting[layout.NUMBER] = -1
    meta[layout.RELEASED] += 1
    end, pending = ring.ends[process, 0], ring.ends[process, 1]
    if end[layout.NUMBER] >= 0:
        row[layout.LO] = max(row[layout.LO], end[layout.LO])
        join(ring, row, end[layout.ROW :], process)
    meta[layout.NEWEST_LO] = max(meta[layout.NEWEST_LO], row[layout.LO])
    fold(ring, process, row)
    head[layout.NEXT] = number + 1
    for i in range(len(row)):
        end[i] = row[i]
    if pending[layout.NUMBER] == number:
        end[layout.LO] = max(end[layout.LO], pending[layout.LO])
        join(ring, end, pending[layout.ROW :], process)
        fold(ring, process, end)
        pending[layout.NUMBER] = -1
    if meta[layout.HYBRID]:
        spread(ring, process, row)


@compiled_noref
def note(ring: Ring, process: int, number: int, clock: Array, lo: int) -> Any:
    """Takes a clock heartbeat: `process` was still in state `number` when it knew `clock`, at `lo` or later.

    Returns TAKEN, IGNORED or an error. A `number` of -1 means the newest that has arrived, if nothing waits behind a
    gap; the clock is then not read. Only the knowledge of the end of the state is raised. For a waiting state, the
    latest heartbeat is kept. O(n^2 w).
    """
    meta, heads = ring.meta, ring.heads
    meta[layout.EMPTIED] = -1
    n = len(heads)
    if number >= 0:
        status = wrong(n, process, number, clock)
        if status < 0:
            return status
    elif not 0 <= process < n:
        return layout.BAD_PROCESS
    head, ends = heads[process], ring.ends[process]
    meta[layout.TOUCHED] = process
    with_clock = number >= 0
    if not with_clock:
        number = head[layout.ARRIVED] - 1 if head[layout.HEARD] and head[layout.AHEAD] == 0 else -1
    beyond = number >= head[layout.NEXT] + ring.room.shape[1]
    if number < head[layout.ARRIVED] - 1 or number < 0 or beyond or number < ends[1, layout.NUMBER]:
        meta[layout.UNUSED] += 1
        return layout.IGNORED
    meta[layout.HEARTBEATS] += 1
    if number < head[layout.ARRIVED]:
        head[layout.WATER] = max(head[layout.WATER], lo)
    row = ends[0] if number == head[layout.NEXT] - 1 and ends[0, layout.NUMBER] == number else ends[1]
    if row[layout.NUMBER] != number:
        row[layout.NUMBER], row[layout.LO] = number, lo
        for i in range(n):
            row[layout.ROW + i] = 0
        row[layout.ROW + process] = number
    row[layout.LO] = max(row[layout.LO], lo)
    if with_clock:
        join(ring, row, clock, process)
    if row[layout.NUMBER] == head[layout.NEXT] - 1:
        fold(ring, process, row)
    return layout.TAKEN
