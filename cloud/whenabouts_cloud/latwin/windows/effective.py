"""Order by time folded into the clocks, when states come in any order; and when a patient group lets a state in.

Event e comes before f, e => f, iff e happened before f, or the latest time of e is before the earliest of f
(`hi(e) < lo(f)`), or transitively. Both imply that e truly came first, so => is a strict partial order, total on each
process, and everything that holds of the windows of happened-before holds of those of => (all proofs use only that).

The effective clock of a begin b joins: its own clock, that of its predecessor, of each other process the latest begin a
with `hi(a) < lo(b)`, and the effective clocks of all so named. An entry 0 names nothing: it may also mean that nothing is
known of a process. By induction over true time its entries are exactly what is before b in =>, as far as it has come and
not left the window: the windows' CGSs need no more, a state outside knows less than each that is inside.

Messages carry clocks along, time does not: a state c may come after b although `hi(c) < lo(b)`. Then b and the predecessor
of c were taken for concurrent and are not.
  eager    b is raised when c comes: CGSs are cut, and a verdict "possible" may be withdrawn
  patient  b waits until what happened before it has been released and every process is known to be at `lo(b)` or later
           (what still comes of it has hi >= true time >= lo(b)). Released by lo; nothing is cut
A process of which no state has come holds nothing back. When the first comes, it holds back as all do, and is itself let in
once its time is known as far as that of what was released; what is then known of it is told to the clocks first.
"""

from typing import Any

from whenabouts_cloud.jit import Array, bare
from whenabouts_cloud.latwin.model import layout
from whenabouts_cloud.latwin.model.layout import Ring


@bare
def join(ring: Ring, row: Array, clock: Array, own: int) -> Any:
    """Raises the clock of a row of process `own` to another one; whether it grew."""
    grew = False
    for i in range(len(row) - layout.ROW):
        if clock[i] > row[layout.ROW + i]:
            if i == own:
                ring.meta[layout.CONTRADICTIONS] += 1
            else:
                row[layout.ROW + i] = clock[i]
                grew = True
    return grew


@bare
def fold(ring: Ring, process: int, row: Array) -> Any:
    """Raises the clock of a row to all that is before it and held in a window; whether it grew. O(n w + n^2 steps)."""
    heads, window = ring.heads, ring.window
    if not ring.meta[layout.HYBRID]:
        return False
    grew = False
    for i in range(len(heads)):
        if i == process:
            continue
        number = heads[i, layout.NEXT] - 1
        while (
            number >= heads[i, layout.FIRST] and window[i, number % heads[i, layout.WIDTH], layout.HI] >= row[layout.LO]
        ):
            number -= 1
        if number >= heads[i, layout.FIRST]:
            grew = join(ring, row, window[i, number % heads[i, layout.WIDTH], layout.ROW :], process) or grew
        else:
            number = heads[i, layout.GONE] if heads[i, layout.GONE_HI] < row[layout.LO] else -1
        if number > row[layout.ROW + i]:
            row[layout.ROW + i] = number
            grew = True
    return join_named(ring, process, row) or grew


@bare
def join_named(ring: Ring, process: int, row: Array) -> Any:
    """Joins the clocks of the states that a row's clock names, again until it does not grow; whether it ever did."""
    heads, window = ring.heads, ring.window
    grew = again = False
    while True:
        again = False
        for i in range(len(heads)):
            named = min(row[layout.ROW + i], heads[i, layout.NEXT] - 1)
            if i != process and named >= heads[i, layout.FIRST] and named > 0:
                known = window[i, named % heads[i, layout.WIDTH]]
                again = join(ring, row, known[layout.ROW :], process) or again
        if not again:
            return grew
        grew = True


@bare
def spread(ring: Ring, process: int, row: Array) -> None:
    """Raises the clocks of all that comes after a state that has just entered its window. O(n w), more when it cuts."""
    changed = False
    for j in range(len(ring.heads)):
        if j == process:
            continue
        head, before, grew = ring.heads[j], 0, False
        for number in range(head[layout.FIRST], head[layout.NEXT]):
            place = number % head[layout.WIDTH]
            other = ring.window[j, place]
            grew = grew and join(ring, other, ring.window[j, before, layout.ROW :], j)
            grew = emitted(ring, other, j, process, row) or grew
            if grew:
                raised(ring, other)
                changed = True
            before = place
        other = ring.evidence[j, 0]
        if other[layout.NUMBER] >= 0:
            grew = grew and join(ring, other, ring.window[j, before, layout.ROW :], j)
            changed = emitted(ring, other, j, process, row) or grew or changed
    while changed:
        changed = settle(ring)


@bare
def emitted(ring: Ring, other: Array, own: int, process: int, row: Array) -> Any:
    """Raises a row of process `own` to a state of `process` and its clock, if it comes after it; whether it grew."""
    if other[layout.LO] <= row[layout.HI] and not 0 < row[layout.NUMBER] <= other[layout.ROW + process]:
        return False
    return join(ring, other, row[layout.ROW :], own)


@bare
def settle(ring: Ring) -> Any:
    """One pass over all rows that joins what they name; whether any grew."""
    changed = False
    for j in range(len(ring.heads)):
        head, before = ring.heads[j], -1
        for number in range(head[layout.FIRST], head[layout.NEXT]):
            place = number % head[layout.WIDTH]
            other = ring.window[j, place]
            grew = before >= 0 and join(ring, other, ring.window[j, before, layout.ROW :], j)
            grew = join_named(ring, j, other) or grew
            if grew:
                raised(ring, other)
                changed = True
            before = place
        other = ring.evidence[j, 0]
        if other[layout.NUMBER] >= 0 and before >= 0:
            grew = join(ring, other, ring.window[j, before, layout.ROW :], j)
            changed = join_named(ring, j, other) or grew or changed
    return changed


@bare
def raised(ring: Ring, row: Array) -> None:
    """Marks a row of the window whose clock grew after it was let in."""
    if not row[layout.MARK]:
        row[layout.MARK] = 1
        ring.meta[layout.RAISED] += 1
        ring.meta[layout.CUTS] += 1


@bare
def unmark(ring: Ring) -> None:
    """Forgets which rows the release before has raised."""
    if ring.meta[layout.RAISED] == 0:
        return
    for j in range(len(ring.heads)):
        for place in range(ring.heads[j, layout.WIDTH]):
            ring.window[j, place, layout.MARK] = 0
    ring.meta[layout.RAISED] = 0


@bare
def announce(ring: Ring, process: int) -> None:
    """Raises the others' entries of a process to those of its states that wait to be let in and are before them by time.

    So no CGS is told that the next release would cut.
    """
    heads = ring.heads
    places = ring.room.shape[1]
    for j in range(len(heads)):
        if j == process:
            continue
        for number in range(heads[process, layout.NEXT], heads[process, layout.ARRIVED]):
            waiting = ring.room[process, number % places]
            for held in range(heads[j, layout.FIRST], heads[j, layout.NEXT]):
                other = ring.window[j, held % heads[j, layout.WIDTH]]
                if waiting[layout.HI] < other[layout.LO] and other[layout.ROW + process] < number:
                    other[layout.ROW + process] = number
                    raised(ring, other)


@bare
def due(ring: Ring) -> Any:
    """The process whose oldest waiting state a patient group may let in now, the one with the least lo; or -1. O(n^2)."""
    heads = ring.heads
    best, least = -1, layout.FOREVER
    for j in range(len(heads)):
        if heads[j, layout.NEXT] == heads[j, layout.ARRIVED]:
            continue
        row = ring.room[j, heads[j, layout.NEXT] % ring.room.shape[1]]
        end = ring.evidence[j, 0]
        lo = max(row[layout.LO], end[layout.LO]) if end[layout.NUMBER] >= 0 else row[layout.LO]
        if (best < 0 or lo < least) and may_enter(ring, j, row, lo):
            best, least = j, lo
    return best


@bare
def may_enter(ring: Ring, process: int, row: Array, lo: int) -> Any:
    """Whether all that may come before a state that began at `lo` or later has been let in."""
    heads = ring.heads
    if not heads[process, layout.BEGUN] and heads[process, layout.WATER] < ring.meta[layout.NEWEST_LO]:
        return False
    for i in range(len(heads)):
        if i != process and heads[i, layout.HEARD]:
            known = row[layout.ROW + i]  # 0 says nothing: every process begins there
            if heads[i, layout.WATER] < lo or heads[i, layout.NEXT] <= known > 0:
                return False
    return True
