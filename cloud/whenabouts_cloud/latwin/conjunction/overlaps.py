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

from typing import Any, NamedTuple

from whenabouts_cloud.jit import Array, columns, compiled_noref
from whenabouts_cloud.latwin.model.layout import CLOCK, FOREVER, HEAD, NEVER, NEWEST, ROW, Ring
from whenabouts_cloud.latwin.windows.all_true import OPEN, SEARCH, next_true


class Work(NamedTuple):
    """Rows of working memory: choices of states or runs, an entry for each process. The first are those of `Search`."""

    origin: int
    choice: int
    least: int
    greatest: int
    first: int
    last: int
    begin: int
    begin_hi: int  # the latest start of the selected run
    above: int
    best: int
    overlaps: int  # entry 0: number of overlaps emitted since the last report


WORK = columns(Work)
assert Work._fields[: len(SEARCH)] == SEARCH._fields


@compiled_noref
def entered(ring: Ring, k: int) -> None:
    """Records which run the newest state of process k belongs to."""
    head = ring.heads[k]
    number = head[HEAD.next] - 1
    row = ring.window[k, number % head[HEAD.width]]
    if number == 0:
        given = row[ROW.hi] == FOREVER
        for i in range(len(ring.heads)):
            given = given and (i == k or row[CLOCK + i] == 0)
        head[HEAD.proof] = 0 if given else 1
    if not row[ROW.holds]:
        row[ROW.run] = -1
    elif head[HEAD.newest_run] >= 0 and head[HEAD.newest] == number - 1:
        row[ROW.run], row[ROW.run_hi] = head[HEAD.newest_run], head[HEAD.newest_run_hi]
    else:
        row[ROW.run], row[ROW.run_hi] = number, row[ROW.hi]
    head[HEAD.newest], head[HEAD.newest_run], head[HEAD.newest_run_hi] = number, row[ROW.run], row[ROW.run_hi]


@compiled_noref
def overlap(ring: Ring, work: Array, emitted: Array) -> Any:
    """True if runs with a state in the window certainly overlapped; emits new ones. Each window must have a true state."""
    heads = ring.heads
    for p in range(len(heads)):
        whole_run(ring, work, p, heads[p, HEAD.first])
    if not settle_runs(ring, work):
        return False
    for p in range(len(heads)):
        choose(ring, work, p, previous_true(ring, p, heads[p, HEAD.next] - 1))
    descend_runs(ring, work, False)
    for p in range(len(heads)):
        if first_of(ring, work, p) > heads[p, HEAD.emitted_run]:
            emit(ring, work, emitted)
            break
    return True


@compiled_noref
def whole_run(ring: Ring, work: Array, p: int, number: int) -> Any:
    """Loads the first run of process p from a state on, as far as it is known; False if there is none."""
    number = next_true(ring.heads, ring.window[:, :, ROW.holds], work, p, number)
    if number < 0:
        return False
    head = ring.heads[p]
    row = ring.window[p, number % head[HEAD.width]]
    work[WORK.first, p] = number
    work[WORK.begin, p], work[WORK.begin_hi, p] = max(row[ROW.run], head[HEAD.proof]), row[ROW.run_hi]
    while number + 1 < head[HEAD.next] and ring.window[p, (number + 1) % head[HEAD.width], ROW.holds]:
        number += 1
    work[WORK.last, p] = number if number + 1 < head[HEAD.next] else OPEN
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
                end = work[WORK.last, j]
                if end == OPEN or not whole_run(ring, work, j, end + 1):
                    return False
                moved = True
    return True


@compiled_noref
def outlasts(ring: Ring, work: Array, j: int) -> Any:
    """True if all other runs are known to have begun before the run of process j ended."""
    end = work[WORK.last, j]
    if end == OPEN:
        row = ring.ends[j, NEWEST]
    else:
        row = ring.window[j, (end + 1) % ring.heads[j, HEAD.width]]
    lo = row[ROW.lo]
    own = work[WORK.begin, j]
    work[WORK.begin, j] = NEVER
    failed = 0
    for i in range(len(ring.heads)):
        failed += (row[CLOCK + i] < work[WORK.begin, i]) & (work[WORK.begin_hi, i] >= lo)
    work[WORK.begin, j] = own
    return failed == 0


@compiled_noref
def begins_before_end(ring: Ring, work: Array, i: int, j: int) -> Any:
    """True if the run of process i is known to have begun before the run of j ended."""
    end = work[WORK.last, j]
    row = ring.ends[j, NEWEST] if end == OPEN else ring.window[j, (end + 1) % ring.heads[j, HEAD.width]]
    return row[CLOCK + i] >= work[WORK.begin, i] or work[WORK.begin_hi, i] < row[ROW.lo]


@compiled_noref
def previous_true(ring: Ring, p: int, number: int) -> Any:
    """The last state of the window up to `number` in which the predicate holds, or -1."""
    first, width = ring.heads[p, HEAD.first], ring.heads[p, HEAD.width]
    while number >= first:
        if ring.window[p, number % width, ROW.holds]:
            return number
        number -= 1
    return -1


@compiled_noref
def choose(ring: Ring, work: Array, p: int, number: int) -> None:
    """Selects the run that a true state belongs to."""
    head = ring.heads[p]
    while number > head[HEAD.first] and ring.window[p, (number - 1) % head[HEAD.width], ROW.holds]:
        number -= 1
    whole_run(ring, work, p, number)


@compiled_noref
def first_of(ring: Ring, work: Array, p: int) -> Any:
    """The number of the first state of the selected run of a process."""
    return ring.window[p, work[WORK.first, p] % ring.heads[p, HEAD.width], ROW.run]


@compiled_noref
def back(ring: Ring, work: Array, p: int, new: bool) -> Any:
    """Moves a process to its previous run; False if there is none, or with `new` if it is older than the emitted one."""
    number = previous_true(ring, p, work[WORK.first, p] - 1)
    if number < 0:
        return False
    choose(ring, work, p, number)
    return not new or first_of(ring, work, p) >= ring.heads[p, HEAD.emitted_run]


@compiled_noref
def descend_runs(ring: Ring, work: Array, new: bool) -> Any:
    """Moves the selected runs back to the latest ones, not after them, that overlap; returns False if there are none.

    With `new`, runs before the last emitted overlap do not count. A run that began after another ended cannot overlap
    that run or an earlier one of its process.
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
    begin = end = work[WORK.overlaps, 0]
    while end < len(emitted):
        for p in range(n):
            emitted[end, p] = first_of(ring, work, p)
        end += 1
        if not step_down(ring, work):
            break
    for p in range(n):
        ring.heads[p, HEAD.emitted_run] = emitted[begin, p] if end > begin else ring.heads[p, HEAD.emitted_run]
    work[WORK.overlaps, 0] = end
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
        work[WORK.above, p] = work[WORK.first, p]
    for p in range(n):
        for i in range(n):
            whole_run(ring, work, i, work[WORK.above, i])
        if first_of(ring, work, p) <= heads[p, HEAD.emitted_run] or not back(ring, work, p, True):
            continue
        if not descend_runs(ring, work, True):
            continue
        total, later = 0, False
        for i in range(n):
            total += work[WORK.first, i]
            later = later or first_of(ring, work, i) > heads[i, HEAD.emitted_run]
        if later and total > best:
            best = total
            for i in range(n):
                work[WORK.best, i] = work[WORK.first, i]
    if best < 0:
        return False
    for i in range(n):
        whole_run(ring, work, i, work[WORK.best, i])
    return True
