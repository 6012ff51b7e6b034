"""Runs of true states, one of each process, that certainly overlapped: the sound Def of a conjunction.

A run is a maximal block of states in which the local predicate holds; each state stores the first state of its run,
which may have left the window long ago. Runs certainly overlapped if each is known to have begun before every other
ended: by the clock of the end, or by time, hi(start of i) < lo(end of j). The end of a run that still goes on is known
to come after everything that its process is known to have known. After Garg, Waldecker (1996), over the whole
computation, not over the windows.

An entry of 0 in a clock does not prove that the process had begun. So the start of a first state is known by an entry
of 1 or by time. Without proof it is assumed only for a process that began with the group: its clock has no entries of
others, and its start has no time.

Choices of overlapping runs are closed under taking the earlier or the later run of each process (the end of a later run
knows more). Overlaps at two moments even form a chain, since no process goes backwards. So there is an earliest and a latest
overlap, and those between are found step by step. Cost O(n^2) for a verdict, O(n^3) for each emitted overlap.
"""

from typing import Any

from whenabouts_cloud.jit import Array, compiled_noref
from whenabouts_cloud.latwin.model import layout
from whenabouts_cloud.latwin.model.layout import Ring

# columns of heads that the detector uses
NEWEST, NEWEST_RUN, NEWEST_RUN_HI = layout.MINE, layout.MINE + 1, layout.MINE + 2  # of the newest state in the window
JOINED = layout.MINE + 3  # the least clock entry that proves the start of the first state: 0 (any), or 1
WITNESS = layout.MINE + 4  # the least CGS of the last verdict in which all predicates held
RUN = layout.MINE + 5  # first states of the latest emitted overlap

# rows of work: choices of states or runs; COUNT: number of overlaps emitted since the last report
LEAST, CHOICE, GREATEST, FROM, TO, BEGIN, BEGIN_HI, ABOVE, BEST, COUNT, WORK = range(11)
OPEN = 1 << 61  # the last state of a run that still goes on


@compiled_noref
def entered(ring: Ring, k: int) -> None:
    """Records which run the newest state of process k belongs to."""
    head = ring.heads[k]
    number = head[layout.NEXT] - 1
    row = ring.window[k, number % head[layout.WIDTH]]
    if number == 0:
        given = row[layout.HI] == layout.FOREVER
        for i in range(len(ring.heads)):
            given = given and (i == k or row[layout.ROW + i] == 0)
        head[JOINED] = 0 if given else 1
    if not row[layout.FLAG]:
        row[layout.RUN] = -1
    elif head[NEWEST_RUN] >= 0 and head[NEWEST] == number - 1:
        row[layout.RUN], row[layout.RUN_HI] = head[NEWEST_RUN], head[NEWEST_RUN_HI]
    else:
        row[layout.RUN], row[layout.RUN_HI] = number, row[layout.HI]
    head[NEWEST], head[NEWEST_RUN], head[NEWEST_RUN_HI] = number, row[layout.RUN], row[layout.RUN_HI]


@compiled_noref
def next_true(ring: Ring, p: int, number: int) -> Any:
    """The first state of the window from `number` on in which the predicate holds, or -1."""
    width, end = ring.heads[p, layout.WIDTH], ring.heads[p, layout.NEXT]
    while number < end:
        if ring.window[p, number % width, layout.FLAG]:
            return number
        number += 1
    return -1


@compiled_noref
def overlap(ring: Ring, work: Array, emitted: Array) -> Any:
    """True if runs with a state in the window certainly overlapped; emits new ones. Each window must have a true state."""
    heads = ring.heads
    for p in range(len(heads)):
        whole_run(ring, work, p, heads[p, layout.FIRST])
    if not settle_runs(ring, work):
        return False
    for p in range(len(heads)):
        choose(ring, work, p, previous_true(ring, p, heads[p, layout.NEXT] - 1))
    descend_runs(ring, work, False)
    for p in range(len(heads)):
        if first_of(ring, work, p) > heads[p, RUN]:
            emit(ring, work, emitted)
            break
    return True


@compiled_noref
def whole_run(ring: Ring, work: Array, p: int, number: int) -> Any:
    """Loads the first run of process p from a state on, as far as it is known; False if there is none."""
    number = next_true(ring, p, number)
    if number < 0:
        return False
    head = ring.heads[p]
    row = ring.window[p, number % head[layout.WIDTH]]
    work[FROM, p] = number
    work[BEGIN, p], work[BEGIN_HI, p] = max(row[layout.RUN], head[JOINED]), row[layout.RUN_HI]
    while number + 1 < head[layout.NEXT] and ring.window[p, (number + 1) % head[layout.WIDTH], layout.FLAG]:
        number += 1
    work[TO, p] = number if number + 1 < head[layout.NEXT] else OPEN
    return True


@compiled_noref
def settle_runs(ring: Ring, work: Array) -> Any:
    """Moves each process on to its next run until every run began before every other ended; False if no run is left.

    A run that ended before another began cannot overlap that run or a later one of its process.
    """
    moved = True
    while moved:
        moved = False
        for j in range(len(ring.heads)):
            while not outlasts(ring, work, j):
                end = work[TO, j]
                if end == OPEN or not whole_run(ring, work, j, end + 1):
                    return False
                moved = True
    return True


@compiled_noref
def outlasts(ring: Ring, work: Array, j: int) -> Any:
    """True if all other runs are known to have begun before the run of process j ended."""
    end = work[TO, j]
    if end == OPEN:
        row = ring.ends[j, 0]
    else:
        row = ring.window[j, (end + 1) % ring.heads[j, layout.WIDTH]]
    lo = row[layout.LO]
    own = work[BEGIN, j]
    work[BEGIN, j] = layout.NEVER
    failed = 0
    for i in range(len(ring.heads)):
        failed += (row[layout.ROW + i] < work[BEGIN, i]) & (work[BEGIN_HI, i] >= lo)
    work[BEGIN, j] = own
    return failed == 0


@compiled_noref
def begins_before_end(ring: Ring, work: Array, i: int, j: int) -> Any:
    """True if the run of process i is known to have begun before the run of j ended."""
    end = work[TO, j]
    row = ring.ends[j, 0] if end == OPEN else ring.window[j, (end + 1) % ring.heads[j, layout.WIDTH]]
    return row[layout.ROW + i] >= work[BEGIN, i] or work[BEGIN_HI, i] < row[layout.LO]


@compiled_noref
def previous_true(ring: Ring, p: int, number: int) -> Any:
    """The last state of the window up to `number` in which the predicate holds, or -1."""
    first, width = ring.heads[p, layout.FIRST], ring.heads[p, layout.WIDTH]
    while number >= first:
        if ring.window[p, number % width, layout.FLAG]:
            return number
        number -= 1
    return -1


@compiled_noref
def choose(ring: Ring, work: Array, p: int, number: int) -> None:
    """Selects the run that a true state belongs to."""
    head = ring.heads[p]
    while number > head[layout.FIRST] and ring.window[p, (number - 1) % head[layout.WIDTH], layout.FLAG]:
        number -= 1
    whole_run(ring, work, p, number)


@compiled_noref
def first_of(ring: Ring, work: Array, p: int) -> Any:
    """The number of the first state of the selected run of a process."""
    return ring.window[p, work[FROM, p] % ring.heads[p, layout.WIDTH], layout.RUN]


@compiled_noref
def back(ring: Ring, work: Array, p: int, new: bool) -> Any:
    """Moves a process to its previous run; False if there is none, or with `new` if it is older than the emitted one."""
    number = previous_true(ring, p, work[FROM, p] - 1)
    if number < 0:
        return False
    choose(ring, work, p, number)
    return not new or first_of(ring, work, p) >= ring.heads[p, RUN]


@compiled_noref
def descend_runs(ring: Ring, work: Array, new: bool) -> Any:
    """Moves a choice of runs down to the latest overlap not later than it; False if there is none, or with `new` no new one.

    A run that began after another ended cannot overlap that run or an earlier one of its process.
    """
    n = len(ring.heads)
    moved = True
    while moved:
        moved = False
        for i in range(n):
            j = 0
            while j < n:
                if j == i or begins_before_end(ring, work, i, j):
                    j += 1
                    continue
                if not back(ring, work, i, new):
                    return False
                moved, j = True, 0
    return True


@compiled_noref
def emit(ring: Ring, work: Array, emitted: Array) -> None:
    """Appends all overlaps later than the last emitted one, the earliest first, down from the latest, which is selected."""
    n = len(ring.heads)
    begin = end = work[COUNT, 0]
    while end < len(emitted):
        for p in range(n):
            emitted[end, p] = first_of(ring, work, p)
        end += 1
        if not step_down(ring, work):
            break
    for p in range(n):
        ring.heads[p, RUN] = emitted[begin, p] if end > begin else ring.heads[p, RUN]
    work[COUNT, 0] = end
    end -= 1
    while begin < end:
        for p in range(n):
            emitted[begin, p], emitted[end, p] = emitted[end, p], emitted[begin, p]
        begin, end = begin + 1, end - 1


@compiled_noref
def step_down(ring: Ring, work: Array) -> Any:
    """Moves from the selected overlap to the next earlier one that has not been emitted; False if there is none."""
    heads = ring.heads
    n = len(heads)
    best = -1
    for p in range(n):
        work[ABOVE, p] = work[FROM, p]
    for p in range(n):
        for i in range(n):
            whole_run(ring, work, i, work[ABOVE, i])
        if first_of(ring, work, p) <= heads[p, RUN] or not back(ring, work, p, True):
            continue
        if not descend_runs(ring, work, True):
            continue
        total, later = 0, False
        for i in range(n):
            total += work[FROM, i]
            later = later or first_of(ring, work, i) > heads[i, RUN]
        if later and total > best:
            best = total
            for i in range(n):
                work[BEST, i] = work[FROM, i]
    if best < 0:
        return False
    for i in range(n):
        whole_run(ring, work, i, work[BEST, i])
    return True
