"""Whether a conjunction of local predicates possibly or definitely held, from the windows alone: no lattice is built.

Of a ring (`layout`) per process the states held, with their effective clocks and whether the local predicate holds in them.

possibly            some CGS of the windows has all predicates true. The least such choice is found by moving on each process
                    that another is known to have left (Garg, Waldecker 1994).
definitely          some run per process, each with a state in the window, so that every run began before every other ended.
                    Every observer then sees a moment at which all hold, and it truly was (Garg, Waldecker 1996, over the
                    whole computation). A run is a maximal block of true states; each state remembers the first of its run,
                    which may have left the window long ago. Of a run that is still on, its end is known to come after all
                    that its process is known to have known.
in the window       Yang et al. (2011): every way from the least to the greatest CGS of the windows meets one with all true.
                    Runs are cut at the two. Not sound: what really happened need not pass through the windows' CGSs.

That run i began before run j ended is told by the clock of the end of j, or by time: hi(begin of i) < lo(end of j). An entry
of 0 in a clock says nothing of whether the process was there already. So the begin of a first state is known by an entry of
1 or by time. It is taken as given only where it began with the group: it knew nothing of others, and no time says when.

Cost O(n^2 w) per state, in practice three to five passes over n^2 numbers.
"""

from typing import Any

from whenabouts_cloud.compiled import Array, bare
from whenabouts_cloud.latwin import layout as at
from whenabouts_cloud.latwin.layout import Ring
from whenabouts_cloud.latwin.ring import accept, note, release, renew, wrong

# heads, the detector's part
NEWEST, NEWEST_RUN, NEWEST_RUN_HI = at.MINE, at.MINE + 1, at.MINE + 2  # of the state that entered last
JOINED = at.MINE + 3  # the least entry that tells of the begin of the first state: 0 for all, or 1
WITNESS = at.MINE + 4  # the least CGS of the last verdict in which all held
RUN = at.MINE + 5  # first states of the latest runs that definitely overlapped

# a verdict
POSSIBLY, DEFINITELY, IN_WINDOW, WITHDRAWN = 1, 2, 4, 8

# work
LEAST, CHOICE, GREATEST, FROM, TO, BEGIN, BEGIN_HI, OLD, WORK = 0, 1, 2, 3, 4, 5, 6, 7, 8
OPEN = 1 << 61  # the last state of a run that is still on


@bare
def push(ring: Ring, work: Array, process: int, number: int, clock: Array, lo: int, hi: int, holds: int) -> Any:
    """One report of a state: the verdict over all windows since the last call, or a negative number as `ring.accept`."""
    verdict, judged = 0, False
    while True:
        status = accept(ring, process, number, clock, lo, hi, holds)
        if status < 0:
            return status
        while True:
            k = release(ring)
            if k < 0:
                break
            entered(ring, k)
            verdict |= withdrawn(ring, k)
            verdict |= judge(ring, work)
            judged = True
        if status != at.NO_ROOM:
            break
    if not judged:
        verdict = judge(ring, work)
    ring.meta[at.CALLER] = verdict
    return verdict


@bare
def push_evidence(ring: Ring, work: Array, process: int, number: int, clock: Array, lo: int) -> Any:
    """One report without a state: as `push`, errors as `ring.note`."""
    status = note(ring, process, number, clock, lo)
    return status if status < 0 else settle(ring, work)


@bare
def push_renewal(ring: Ring, work: Array, process: int, number: int) -> Any:
    """A process begins anew: as `push`, errors as `ring.renew`."""
    status = renew(ring, process, number)
    return status if status < 0 else settle(ring, work)


@bare
def settle(ring: Ring, work: Array) -> Any:
    """The verdict over the windows as they are now, and all that releases make of them."""
    verdict = judge(ring, work)
    while True:
        k = release(ring)
        if k < 0:
            break
        entered(ring, k)
        verdict |= withdrawn(ring, k)
        verdict |= judge(ring, work)
    ring.meta[at.CALLER] = verdict
    return verdict


@bare
def push_one(
    meta: Array, heads: Array, window: Array, room: Array, evidence: Array, work: Array, process: int, number: int,
    clock: Array, lo: int, hi: int, holds: int,
) -> Any:  # fmt: skip
    """As `push`, the ring in its parts: handing over the tuple costs 2 us a call more."""
    return push(Ring(meta, heads, window, room, evidence), work, process, number, clock, lo, hi, holds)


@bare
def first_wrong(process: Array, number: Array, clock: Array, lo: Array, hi: Array) -> Any:
    """The first row that is no report of a group, and what is wrong with it; or the number of rows and 0."""
    for i in range(len(process)):
        status = wrong(clock.shape[1], process[i], number[i], clock[i])
        if status == 0 and lo[i] > hi[i]:
            status = at.BAD_TIME
        if status < 0:
            return i, status
    return len(process), 0


@bare
def feed(
    ring: Ring, work: Array, process: Array, number: Array, clock: Array, lo: Array, hi: Array, holds: Array,
    codes: Array, runs: Array,
) -> None:  # fmt: skip
    """Many reports, none of them wrong: `codes` are verdicts, `runs` the first states of runs where one is definite."""
    for i in range(len(process)):
        codes[i] = push(ring, work, process[i], number[i], clock[i], lo[i], hi[i], holds[i])
        if codes[i] & DEFINITELY:
            for p in range(len(ring.heads)):
                runs[i, p] = ring.heads[p, RUN]


@bare
def entered(ring: Ring, k: int) -> None:
    """Notes which run the newest state of process k belongs to."""
    head = ring.heads[k]
    number = head[at.NEXT] - 1
    row = ring.window[k, number % head[at.WIDTH]]
    if number == 0:
        given = row[at.HI] == at.FOREVER
        for i in range(len(ring.heads)):
            given = given and (i == k or row[at.ROW + i] == 0)
        head[JOINED] = 0 if given else 1
    if not row[at.FLAG]:
        row[at.RUN] = -1
    elif head[NEWEST_RUN] >= 0 and head[NEWEST] == number - 1:
        row[at.RUN], row[at.RUN_HI] = head[NEWEST_RUN], head[NEWEST_RUN_HI]
    else:
        row[at.RUN], row[at.RUN_HI] = number, row[at.HI]
    head[NEWEST], head[NEWEST_RUN], head[NEWEST_RUN_HI] = number, row[at.RUN], row[at.RUN_HI]


@bare
def withdrawn(ring: Ring, k: int) -> Any:
    """WITHDRAWN if a release of process k refutes all that the last verdict called possible.

    New order is from states of k to others: it takes away the CGSs with k before it and another process behind. If that
    meets the least one with all true, it meets all that lie above.
    """
    if ring.meta[at.RAISED] == 0 or not ring.meta[at.CALLER] & POSSIBLY:
        return 0
    seen = ring.heads[k, WITNESS]
    for j in range(len(ring.heads)):
        row = ring.window[j, ring.heads[j, WITNESS] % ring.heads[j, at.WIDTH]]
        if j != k and row[at.NUMBER] == ring.heads[j, WITNESS] and row[at.ROW + k] > seen:
            return WITHDRAWN
    return 0


@bare
def judge(ring: Ring, work: Array) -> Any:
    """The verdict over the windows as they are."""
    heads = ring.heads
    for p in range(len(heads)):
        work[CHOICE, p] = next_true(ring, p, heads[p, at.FIRST])
        if work[CHOICE, p] < 0:
            return 0
    verdict = 0
    if climb(ring, work, CHOICE, True):
        verdict = POSSIBLY
        for p in range(len(heads)):
            heads[p, WITNESS] = work[CHOICE, p]
        if every_way(ring, work):
            verdict |= IN_WINDOW
    if overlap(ring, work):
        verdict |= DEFINITELY
    return verdict


@bare
def next_true(ring: Ring, p: int, number: int) -> Any:
    """The first state of the window from `number` on in which the predicate holds, or -1."""
    width, end = ring.heads[p, at.WIDTH], ring.heads[p, at.NEXT]
    while number < end:
        if ring.window[p, number % width, at.FLAG]:
            return number
        number += 1
    return -1


@bare
def climb(ring: Ring, work: Array, line: int, true: bool) -> Any:
    """Moves a choice of states up to the least CGS above it, of true states if asked; False if there is none."""
    heads, window = ring.heads, ring.window
    n = len(heads)
    moved = True
    while moved:
        moved = False
        for j in range(n):
            row = window[j, work[line, j] % heads[j, at.WIDTH]]
            for i in range(n):
                if row[at.ROW + i] > work[line, i]:  # its own entry is the state itself
                    number = row[at.ROW + i]
                    if true:
                        number = next_true(ring, i, number)
                        if number < 0:
                            return False
                    elif number >= heads[i, at.NEXT]:
                        return False
                    work[line, i] = number
                    moved = True
    return True


@bare
def descend(ring: Ring, work: Array, line: int) -> None:
    """Moves a choice of states down to the greatest CGS below it, which there must be."""
    heads, window = ring.heads, ring.window
    n = len(heads)
    moved = True
    while moved:
        moved = False
        for j in range(n):
            fits = False
            while not fits:
                row = window[j, work[line, j] % heads[j, at.WIDTH]]
                fits = True
                for i in range(n):
                    if row[at.ROW + i] > work[line, i]:
                        fits = False
                if not fits:
                    work[line, j] -= 1
                    moved = True


@bare
def every_way(ring: Ring, work: Array) -> Any:
    """The paper's Def, of windows that hold a CGS: runs cut at the least and the greatest."""
    heads = ring.heads
    for p in range(len(heads)):
        work[LEAST, p], work[GREATEST, p] = heads[p, at.FIRST], heads[p, at.NEXT] - 1
    climb(ring, work, LEAST, False)
    descend(ring, work, GREATEST)
    for p in range(len(heads)):
        if not cut_run(ring, work, p, work[LEAST, p]):
            return False
    return settle_runs(ring, work, True)


@bare
def cut_run(ring: Ring, work: Array, p: int, number: int) -> Any:
    """The first run of process p from a state on, between the least and the greatest CGS; False if there is none."""
    number = next_true(ring, p, number)
    if number < 0 or number > work[GREATEST, p]:
        return False
    work[FROM, p] = number
    work[BEGIN, p] = number if number > work[LEAST, p] else at.NEVER
    work[BEGIN_HI, p] = at.FOREVER
    width = ring.heads[p, at.WIDTH]
    while number < work[GREATEST, p] and ring.window[p, (number + 1) % width, at.FLAG]:
        number += 1
    work[TO, p] = number if number < work[GREATEST, p] else OPEN
    return True


@bare
def whole_run(ring: Ring, work: Array, p: int, number: int) -> Any:
    """The first run of process p from a state on, as it is known; False if there is none."""
    number = next_true(ring, p, number)
    if number < 0:
        return False
    head = ring.heads[p]
    row = ring.window[p, number % head[at.WIDTH]]
    work[FROM, p] = number
    work[BEGIN, p], work[BEGIN_HI, p] = max(row[at.RUN], head[JOINED]), row[at.RUN_HI]
    while number + 1 < head[at.NEXT] and ring.window[p, (number + 1) % head[at.WIDTH], at.FLAG]:
        number += 1
    work[TO, p] = number if number + 1 < head[at.NEXT] else OPEN
    return True


@bare
def overlap(ring: Ring, work: Array) -> Any:
    """The sound Def, of windows with a true state each. The latest runs that overlap are noted."""
    heads = ring.heads
    for p in range(len(heads)):
        whole_run(ring, work, p, heads[p, at.FIRST])
    if not settle_runs(ring, work, False):
        return False
    latest_runs(ring, work)
    return True


@bare
def settle_runs(ring: Ring, work: Array, cut: bool) -> Any:
    """Moves each process on to its next run until every run began before every other ended; False if runs give out.

    A run that ended before another began can be in no choice with it, nor with a later one.
    """
    moved = True
    while moved:
        moved = False
        for j in range(len(ring.heads)):
            while not outlasts(ring, work, j, cut):
                end = work[TO, j]
                if end == OPEN:
                    return False
                if not (cut_run(ring, work, j, end + 1) if cut else whole_run(ring, work, j, end + 1)):
                    return False
                moved = True
    return True


@bare
def outlasts(ring: Ring, work: Array, j: int, cut: bool) -> Any:
    """Whether all other runs are known to have begun before that of process j ended."""
    end = work[TO, j]
    if end == OPEN:
        if cut:
            return True  # nothing between the CGSs ends it
        row = ring.evidence[j, 0]
    else:
        row = ring.window[j, (end + 1) % ring.heads[j, at.WIDTH]]
    lo = row[at.LO]
    own = work[BEGIN, j]
    work[BEGIN, j] = at.NEVER
    failed = 0
    for i in range(len(ring.heads)):
        failed += (row[at.ROW + i] < work[BEGIN, i]) & (work[BEGIN_HI, i] >= lo)
    work[BEGIN, j] = own
    return failed == 0


@bare
def latest_runs(ring: Ring, work: Array) -> None:
    """From the earliest choice of runs that overlap to the latest: each process tries its later runs from the newest down.

    Choices are closed under taking the later run of each process, so there is one latest. A run is too late if another
    ended before it began.
    """
    heads = ring.heads
    n = len(heads)
    for p in range(n):
        heads[p, RUN] = -1
        work[OLD, p] = work[FROM, p]
        number = heads[p, at.NEXT] - 1
        while not ring.window[p, number % heads[p, at.WIDTH], at.FLAG]:
            number -= 1
        back_to_run(ring, work, p, number)
    moved = True
    while moved:
        moved = False
        for i in range(n):
            j = 0
            while j < n:
                if j != i and not begins_before_end(ring, work, i, j):
                    before = work[FROM, i] - 1
                    while not ring.window[i, before % heads[i, at.WIDTH], at.FLAG]:
                        before -= 1
                    back_to_run(ring, work, i, before)
                    moved = True
                    j = 0
                else:
                    j += 1
    for p in range(n):
        heads[p, RUN] = ring.window[p, work[FROM, p] % heads[p, at.WIDTH], at.RUN]


@bare
def back_to_run(ring: Ring, work: Array, p: int, number: int) -> None:
    """Chooses the run that a true state belongs to."""
    head = ring.heads[p]
    while number > head[at.FIRST] and ring.window[p, (number - 1) % head[at.WIDTH], at.FLAG]:
        number -= 1
    whole_run(ring, work, p, number)


@bare
def begins_before_end(ring: Ring, work: Array, i: int, j: int) -> Any:
    """Whether the run of process i is known to have begun before that of j ended."""
    end = work[TO, j]
    row = ring.evidence[j, 0] if end == OPEN else ring.window[j, (end + 1) % ring.heads[j, at.WIDTH]]
    return row[at.ROW + i] >= work[BEGIN, i] or work[BEGIN_HI, i] < row[at.LO]
