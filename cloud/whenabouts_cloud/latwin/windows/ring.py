"""Reports of states in, one state at a time out into the windows: order per process, duplicates, gaps, bounded waiting.

A push is one call of machine code that goes

    while True:
        status = accept(ring, process, number, clock, lo, hi, flag)
        (status < 0: the report is wrong and nothing has changed)
        if ring.meta[EMPTIED] >= 0: forget what was built on the window of that process
        while (k := release(ring)) >= 0: the window of process k has got the state numbered ring.heads[k, NEXT] - 1
        if status != NO_ROOM: break

and so does one with evidence, with `note` in place of `accept`. No order across processes is needed: with dense clocks
(entry = number of a reported state) two states are compared by themselves.

States of a process enter its window in the order of their numbers. One that comes before a predecessor waits in the
room; so does, in a patient group, one that is not due (`effective.due`). When a state comes that does not fit, the oldest
of its process that only wait to be due are released at once; if there are none, the gap is given up: the window is emptied
and begins anew with the oldest that waits. Both are counted.

Yang et al. (2011) put states into the window as they arrive. Over channels that are not FIFO a state would then seem to
last until the begin of one that is not its successor, and every theorem of theirs presumes windows without gaps.
"""

from typing import Any

from whenabouts_cloud.jit import Array, bare
from whenabouts_cloud.latwin.model import layout as at
from whenabouts_cloud.latwin.model.layout import Ring
from whenabouts_cloud.latwin.windows.effective import announce, due, fold, join, spread, unmark


@bare
def accept(ring: Ring, process: int, number: int, clock: Array, lo: int, hi: int, flag: int) -> Any:
    """Takes in the report that `process` began state `number` between `lo` and `hi`: TAKEN, IGNORED (had come, or is given
    up), NO_ROOM (call again after the releases) or a negative number for a wrong report. O(n)."""
    meta, heads, room = ring.meta, ring.heads, ring.room
    meta[at.EMPTIED] = -1
    n = len(heads)
    status = wrong(n, process, number, clock)
    if status == 0 and lo > hi:
        status = at.BAD_TIME
    if status < 0:
        return status
    meta[at.TOUCHED] = process
    head = heads[process]
    places = room.shape[1]
    row = room[process, number % places]
    if number < head[at.FIRST]:
        meta[at.STALE] += 1
        return at.IGNORED
    if number < head[at.ARRIVED] or row[at.NUMBER] == number:
        meta[at.DUPLICATES] += 1
        return at.IGNORED
    if number >= head[at.NEXT] + places:
        make_room(ring, process, number)
        return at.NO_ROOM
    row[at.NUMBER], row[at.LO], row[at.HI], row[at.FLAG], row[at.RUN], row[at.MARK] = number, lo, hi, flag, -1, 0
    for i in range(n):
        row[at.ROW + i] = clock[i]
    meta[at.ACCEPTED] += 1
    head[at.AHEAD] += 1
    advance(ring, process)
    return at.TAKEN


@bare
def wrong(n: int, process: int, number: int, clock: Array) -> Any:
    """0, or what is wrong about a process, a number and a clock."""
    if not 0 <= process < n:
        return at.BAD_PROCESS
    if not 0 <= number < at.NUMBER_LIMIT:
        return at.BAD_STATE
    if clock[process] != number:
        return at.BAD_OWN
    for i in range(n):
        if not 0 <= clock[i] < at.NUMBER_LIMIT:
            return at.BAD_ENTRY
    return 0


@bare
def advance(ring: Ring, process: int) -> None:
    """What has arrived without a gap, as far as it goes now; it says how far the time of the process is known."""
    head, room = ring.heads[process], ring.room[process]
    places = len(room)
    while True:
        number = head[at.ARRIVED]
        row = room[number % places]
        if row[at.NUMBER] != number:
            break
        head[at.ARRIVED] += 1
        head[at.AHEAD] -= 1
        head[at.HEARD] = 1
        head[at.WATER] = max(head[at.WATER], row[at.LO])
        pending = ring.evidence[process, 1]
        if pending[at.NUMBER] == number:
            head[at.WATER] = max(head[at.WATER], pending[at.LO])


@bare
def make_room(ring: Ring, process: int, number: int) -> None:
    """Brings the time nearer when state `number` fits into the room of its process."""
    meta, head, room = ring.meta, ring.heads[process], ring.room[process]
    if head[at.ARRIVED] > head[at.NEXT]:
        meta[at.FORCED] = process
        return
    oldest = number
    for place in range(len(room)):
        if room[place, at.NUMBER] >= 0:
            oldest = min(oldest, room[place, at.NUMBER])
    begin_at(ring, process, oldest)
    meta[at.GIVEN_UP] += 1


@bare
def begin_at(ring: Ring, process: int, number: int) -> None:
    """Empties the window of a process; it begins anew with state `number`. What waits from there on is kept."""
    head, room, window = ring.heads[process], ring.room[process], ring.window[process]
    for place in range(len(window)):
        window[place, at.NUMBER] = -1
    for place in range(len(room)):
        if 0 <= room[place, at.NUMBER] < number:
            if room[place, at.NUMBER] >= head[at.ARRIVED]:
                head[at.AHEAD] -= 1
            room[place, at.NUMBER] = -1
    ring.evidence[process, 0, at.NUMBER] = -1
    if ring.evidence[process, 1, at.NUMBER] < number:
        ring.evidence[process, 1, at.NUMBER] = -1
    if head[at.ARRIVED] <= number:
        head[at.ARRIVED], head[at.HEARD], head[at.WATER] = number, 0, at.NEVER
    head[at.FIRST], head[at.NEXT], head[at.BEGUN] = number, number, 0
    head[at.GONE], head[at.GONE_HI] = -1, at.FOREVER
    ring.meta[at.EMPTIED], ring.meta[at.TOUCHED] = process, process
    advance(ring, process)


@bare
def renew(ring: Ring, process: int, number: int) -> Any:
    """Begins a process anew at a state that has not yet entered its window: TAKEN, or what is wrong. Releases may follow."""
    if not 0 <= process < len(ring.heads):
        return at.BAD_PROCESS
    if not ring.heads[process, at.NEXT] <= number < at.NUMBER_LIMIT:
        return at.BAD_STATE
    begin_at(ring, process, number)
    ring.meta[at.RENEWED] += 1
    return at.TAKEN


@bare
def release(ring: Ring) -> Any:
    """Moves the next state that is due from the room into its window; its process, or -1 if none is.

    Its effective clock stands in the window then, and those of other states that it raised are marked (`meta[RAISED]` of
    them). A causal group looks at the process of the last report alone: O(n). A patient one at all: O(n^2).
    """
    meta, heads = ring.meta, ring.heads
    if meta[at.FORCED] >= 0:
        chosen = meta[at.FORCED]
        meta[at.FORCED] = -1
        meta[at.HASTY] += 1
    elif meta[at.PATIENT]:
        chosen = due(ring)
    else:
        chosen = meta[at.TOUCHED]
        if chosen >= 0 and heads[chosen, at.NEXT] == heads[chosen, at.ARRIVED]:
            chosen = -1
    if chosen >= 0:
        slide(ring, chosen)
    return chosen


@bare
def slide(ring: Ring, process: int) -> None:
    """The oldest waiting state of a process into its window, in place of the one that leaves it."""
    meta, head = ring.meta, ring.heads[process]
    number, width = head[at.NEXT], head[at.WIDTH]
    waiting = ring.room[process, number % ring.room.shape[1]]
    row = ring.window[process, number % width]
    unmark(ring)
    if meta[at.HYBRID] and (head[at.ARRIVED] > number + 1 and not (meta[at.PATIENT] and head[at.BEGUN])):
        announce(ring, process)
    head[at.BEGUN] = 1
    if row[at.NUMBER] >= 0:
        head[at.GONE], head[at.GONE_HI] = row[at.NUMBER], row[at.HI]
        head[at.FIRST] = row[at.NUMBER] + 1
    for i in range(len(row)):
        row[i] = waiting[i]
    waiting[at.NUMBER] = -1
    meta[at.RELEASED] += 1
    end, pending = ring.evidence[process, 0], ring.evidence[process, 1]
    if end[at.NUMBER] >= 0:
        row[at.LO] = max(row[at.LO], end[at.LO])
        join(ring, row, end[at.ROW :], process)
    meta[at.NEWEST_LO] = max(meta[at.NEWEST_LO], row[at.LO])
    fold(ring, process, row)
    head[at.NEXT] = number + 1
    for i in range(len(row)):
        end[i] = row[i]
    if pending[at.NUMBER] == number:
        end[at.LO] = max(end[at.LO], pending[at.LO])
        join(ring, end, pending[at.ROW :], process)
        fold(ring, process, end)
        pending[at.NUMBER] = -1
    if meta[at.HYBRID]:
        spread(ring, process, row)


@bare
def note(ring: Ring, process: int, number: int, clock: Array, lo: int) -> Any:
    """Takes in that `process` was still in state `number` when it knew `clock`, at `lo` or later: TAKEN, IGNORED or wrong.

    A `number` of -1 means the newest that has arrived, with nothing waiting behind a gap; the clock is not read then.
    Only what is known of the end of the state is raised. Of a state that waits, the latest evidence is kept. O(n^2 w).
    """
    meta, heads = ring.meta, ring.heads
    meta[at.EMPTIED] = -1
    n = len(heads)
    if number >= 0:
        status = wrong(n, process, number, clock)
        if status < 0:
            return status
    elif not 0 <= process < n:
        return at.BAD_PROCESS
    head, evidence = heads[process], ring.evidence[process]
    meta[at.TOUCHED] = process
    with_clock = number >= 0
    if not with_clock:
        number = head[at.ARRIVED] - 1 if head[at.HEARD] and head[at.AHEAD] == 0 else -1
    beyond = number >= head[at.NEXT] + ring.room.shape[1]
    if number < head[at.ARRIVED] - 1 or number < 0 or beyond or number < evidence[1, at.NUMBER]:
        meta[at.UNUSED] += 1
        return at.IGNORED
    meta[at.EVIDENCE] += 1
    if number < head[at.ARRIVED]:
        head[at.WATER] = max(head[at.WATER], lo)
    row = evidence[0] if number == head[at.NEXT] - 1 and evidence[0, at.NUMBER] == number else evidence[1]
    if row[at.NUMBER] != number:
        row[at.NUMBER], row[at.LO] = number, lo
        for i in range(n):
            row[at.ROW + i] = 0
        row[at.ROW + process] = number
    row[at.LO] = max(row[at.LO], lo)
    if with_clock:
        join(ring, row, clock, process)
    if row[at.NUMBER] == head[at.NEXT] - 1:
        fold(ring, process, row)
    return at.TAKEN
