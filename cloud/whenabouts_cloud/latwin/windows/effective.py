"""Folds order by time into the clocks, in any order of arrival, and decides when a patient group admits a state.

Event e comes before f, e => f, iff e happened before f, or the latest time of e is before the earliest of f
(`hi(e) < lo(f)`), or transitively. Both imply that e truly came first, so => is a strict partial order, total on each
process, and every property of windows under happened-before also holds under => (all proofs use only that).

The effective clock of a start b joins: its own clock, that of its predecessor, for each other process the latest start
a with `hi(a) < lo(b)`, and the effective clocks of all these. An entry 0 names nothing: it may also mean that nothing
is known of a process. By induction over true time its entries are exactly what is before b in =>, as far as it has
arrived and not left the window. The windows' CGSs need no more: a state outside knows less than each state inside.

Messages carry clocks along, time does not: a state c may arrive after b although `hi(c) < lo(b)`. Then b and the
predecessor of c were considered concurrent and are not.

  eager    b is raised when c arrives: CGSs are cut, and a verdict "possible" may be retracted
  patient  b waits until what happened before it has been released and every process is known to be at `lo(b)` or later
           (what it still sends has hi >= true time >= lo(b)). Released by lo; nothing is cut

A process of which no state has arrived holds nothing back. After its first state it holds back like all others. That
state is admitted once the process is known to have reached the time of the released states; before that, the clocks are
raised to what is known of the process (`raise_to_waiting`).
"""

from typing import Any

from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref
from whenabouts_cloud.latwin.model.layout import CLOCK, FOREVER, HEAD, META, NEWEST, ROW, Ring


@compiled_inline
def join(ring: Ring, row: Array, clock: Array, own: int) -> Any:
    """Raises the clock of a row of process `own` to another clock; returns True if it grew."""
    grew = False
    for i in range(len(row) - CLOCK):
        if clock[i] > row[CLOCK + i]:
            if i == own:
                ring.meta[META.contradictions] += 1
            else:
                row[CLOCK + i] = clock[i]
                grew = True
    return grew


@compiled_noref
def raise_to_past(ring: Ring, process: int, row: Array) -> Any:
    """Raises the clock of a row to everything before it in a window; returns True if it grew. O(n w + n^2 steps)."""
    heads, window = ring.heads, ring.window
    if not ring.meta[META.hybrid]:
        return False
    grew = False
    for i in range(len(heads)):
        if i == process:
            continue
        number = heads[i, HEAD.next] - 1
        while number >= heads[i, HEAD.first] and window[i, number % heads[i, HEAD.width], ROW.hi] >= row[ROW.lo]:
            number -= 1
        if number >= heads[i, HEAD.first]:
            grew = join(ring, row, window[i, number % heads[i, HEAD.width], CLOCK:], process) or grew
        else:
            number = heads[i, HEAD.evicted] if heads[i, HEAD.evicted_hi] < row[ROW.lo] else -1
        if number > row[CLOCK + i]:
            row[CLOCK + i] = number
            grew = True
    return join_named(ring, process, row) or grew


@compiled_noref
def join_named(ring: Ring, process: int, row: Array) -> Any:
    """Joins the clocks of the states that a row's clock names, until it stops growing; returns True if it ever grew."""
    heads, window = ring.heads, ring.window
    grew = again = False
    while True:
        again = False
        for i in range(len(heads)):
            named = min(row[CLOCK + i], heads[i, HEAD.next] - 1)
            if i != process and named >= heads[i, HEAD.first] and named > 0:
                known = window[i, named % heads[i, HEAD.width]]
                again = join(ring, row, known[CLOCK:], process) or again
        if not again:
            return grew
        grew = True


@compiled_noref
def raise_future(ring: Ring, process: int, row: Array) -> None:
    """Raises the clocks of all states after one that has just entered its window. O(n w), more when it cuts."""
    changed = False
    for j in range(len(ring.heads)):
        if j == process:
            continue
        head, before, grew = ring.heads[j], 0, False
        for number in range(head[HEAD.first], head[HEAD.next]):
            place = number % head[HEAD.width]
            other = ring.window[j, place]
            grew = grew and join(ring, other, ring.window[j, before, CLOCK:], j)
            grew = raise_if_after(ring, other, j, process, row) or grew
            if grew:
                mark_raised(ring, other)
                changed = True
            before = place
        other = ring.ends[j, NEWEST]
        if other[ROW.number] >= 0:
            grew = grew and join(ring, other, ring.window[j, before, CLOCK:], j)
            changed = raise_if_after(ring, other, j, process, row) or grew or changed
    while changed:
        changed = raise_once(ring)


@compiled_noref
def raise_if_after(ring: Ring, other: Array, own: int, process: int, row: Array) -> Any:
    """Raises a row of process `own` to a state of `process` and its clock if it comes after; returns True if it grew."""
    if other[ROW.lo] <= row[ROW.hi] and not 0 < row[ROW.number] <= other[CLOCK + process]:
        return False
    return join(ring, other, row[CLOCK:], own)


@compiled_noref
def raise_once(ring: Ring) -> Any:
    """Raises each row once to its predecessor and to the states that its clock names; returns True if any grew."""
    changed = False
    for j in range(len(ring.heads)):
        head, before = ring.heads[j], -1
        for number in range(head[HEAD.first], head[HEAD.next]):
            place = number % head[HEAD.width]
            other = ring.window[j, place]
            grew = before >= 0 and join(ring, other, ring.window[j, before, CLOCK:], j)
            grew = join_named(ring, j, other) or grew
            if grew:
                mark_raised(ring, other)
                changed = True
            before = place
        other = ring.ends[j, NEWEST]
        if other[ROW.number] >= 0 and before >= 0:
            grew = join(ring, other, ring.window[j, before, CLOCK:], j)
            changed = join_named(ring, j, other) or grew or changed
    return changed


@compiled_noref
def mark_raised(ring: Ring, row: Array) -> None:
    """Marks a row of the window whose clock grew after its admission."""
    if not row[ROW.mark]:
        row[ROW.mark] = 1
        ring.meta[META.raised] += 1
        ring.meta[META.cuts] += 1


@compiled_inline
def unmark(ring: Ring) -> None:
    """Clears the marks of the rows that the previous release raised."""
    if ring.meta[META.raised] == 0:
        return
    for j in range(len(ring.heads)):
        for place in range(ring.heads[j, HEAD.width]):
            ring.window[j, place, ROW.mark] = 0
    ring.meta[META.raised] = 0


@compiled_noref
def raise_to_waiting(ring: Ring, process: int) -> None:
    """Raises the others' entries of a process to its states that wait to be admitted and are before them by time.

    So no CGS is emitted that the next release would cut.
    """
    heads = ring.heads
    places = ring.room.shape[1]
    for j in range(len(heads)):
        if j == process:
            continue
        for number in range(heads[process, HEAD.next], heads[process, HEAD.arrived]):
            waiting = ring.room[process, number % places]
            for held in range(heads[j, HEAD.first], heads[j, HEAD.next]):
                other = ring.window[j, held % heads[j, HEAD.width]]
                if waiting[ROW.hi] < other[ROW.lo] and other[CLOCK + process] < number:
                    other[CLOCK + process] = number
                    mark_raised(ring, other)


@compiled_noref
def due(ring: Ring) -> Any:
    """The process whose oldest waiting state a patient group may admit now, the one with the least lo; or -1. O(n^2)."""
    heads = ring.heads
    best, least = -1, FOREVER
    for j in range(len(heads)):
        if heads[j, HEAD.next] == heads[j, HEAD.arrived]:
            continue
        row = ring.room[j, heads[j, HEAD.next] % ring.room.shape[1]]
        end = ring.ends[j, NEWEST]
        lo = max(row[ROW.lo], end[ROW.lo]) if end[ROW.number] >= 0 else row[ROW.lo]
        if (best < 0 or lo < least) and may_enter(ring, j, row, lo):
            best, least = j, lo
    return best


@compiled_noref
def may_enter(ring: Ring, process: int, row: Array, lo: int) -> Any:
    """True if all states that may come before one that began at `lo` or later have been admitted."""
    heads = ring.heads
    if not heads[process, HEAD.released_any] and heads[process, HEAD.reached] < ring.meta[META.newest_lo]:
        return False
    for i in range(len(heads)):
        if i != process and heads[i, HEAD.heard]:
            known = row[CLOCK + i]  # 0 proves nothing: every process begins there
            if heads[i, HEAD.reached] < lo or heads[i, HEAD.next] <= known > 0:
                return False
    return True
