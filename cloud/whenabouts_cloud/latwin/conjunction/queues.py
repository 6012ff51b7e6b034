"""Decides whether a conjunction of local predicates possibly or definitely held, from the windows only: no lattice is built.

Of a ring (`layout`) it uses, per process, the states held, their effective clocks and the values of the local
predicate.

possibly            some CGS of the windows satisfies all predicates (`all_true`).
definitely          some run of true states per process, each with a state in the window, such that all certainly overlapped
                    (`overlaps`). Every observer then sees a moment at which all hold, and there was such a moment.
in the window       Yang et al. (2011): every path from the least to the greatest CGS of the windows meets one with all true
                    (`all_true`). Not sound: the actual execution need not pass through the windows' CGSs.

Cost O(n^2 w) per state, in practice three to five passes over n^2 numbers.
"""

from typing import Any, NamedTuple

from whenabouts_cloud.jit import Array, compiled_noref
from whenabouts_cloud.latwin.conjunction.overlaps import WORK, entered, overlap
from whenabouts_cloud.latwin.model.layout import BAD_TIME, CLOCK, FOREVER, HEAD, META, NEVER, NO_ROOM, ROW, Ring
from whenabouts_cloud.latwin.windows.all_true import begin, choose_true, climb, descend, every_way
from whenabouts_cloud.latwin.windows.ring import accept, note, release, renew, wrong


class Detection(NamedTuple):
    """The arrays of a detector: its ring, working memory, and the overlaps that the last report made certain."""

    ring: Ring
    work: Array
    emitted: Array


class Reports(NamedTuple):
    """Reports as columns."""

    process: Array
    number: Array
    clock: Array
    lo: Array
    hi: Array
    holds: Array


class Answers(NamedTuple):
    """A verdict for each report; overlaps, and the row of the report that made each certain."""

    codes: Array
    overlaps: Array
    rows: Array


# bits of a verdict
POSSIBLY, DEFINITELY, IN_WINDOW, RETRACTED = 1, 2, 4, 8


@compiled_noref
def push(detection: Detection, process: int, number: int, clock: Array, lo: int, hi: int, holds: int) -> Any:
    """Processes a report of a state: the verdict over all windows since the last call, or an error of `ring.accept`."""
    ring, work, emitted = detection
    verdict, judged = 0, False
    while True:
        status = accept(ring, process, number, clock, lo, hi, holds)
        if status < 0:
            return status
        if not judged:
            work[WORK.overlaps, 0] = 0
        while True:
            k = release(ring)
            if k < 0:
                break
            entered(ring, k)
            verdict |= retracted(ring, k)
            verdict |= judge(ring, work, emitted)
            judged = True
        if status != NO_ROOM:
            break
    if not judged:
        verdict = judge(ring, work, emitted)
    ring.meta[META.verdict] = verdict
    return verdict


@compiled_noref
def push_heartbeat(detection: Detection, process: int, number: int, clock: Array, lo: int) -> Any:
    """Processes a clock heartbeat: result as `push`, errors as `ring.note`."""
    status = note(detection.ring, process, number, clock, lo)
    return status if status < 0 else settle(detection)


@compiled_noref
def push_renewal(detection: Detection, process: int, number: int) -> Any:
    """Restarts a process: result as `push`, errors as `ring.renew`."""
    status = renew(detection.ring, process, number)
    return status if status < 0 else settle(detection)


@compiled_noref
def settle(detection: Detection) -> Any:
    """The verdict over the current windows and over all windows that the releases produce."""
    ring, work, emitted = detection
    work[WORK.overlaps, 0] = 0
    verdict = judge(ring, work, emitted)
    while True:
        k = release(ring)
        if k < 0:
            break
        entered(ring, k)
        verdict |= retracted(ring, k)
        verdict |= judge(ring, work, emitted)
    ring.meta[META.verdict] = verdict
    return verdict


@compiled_noref
def first_wrong(reports: Reports) -> Any:
    """The first row that is not a report of a group, and its status; or the number of rows and 0."""
    for i in range(len(reports.process)):
        status = wrong(reports.clock.shape[1], reports.process[i], reports.number[i], reports.clock[i])
        if status == 0 and not NEVER <= reports.lo[i] <= reports.hi[i] <= FOREVER:
            status = BAD_TIME
        if status < 0:
            return i, status
    return len(reports.process), 0


@compiled_noref
def feed(detection: Detection, reports: Reports, begin: int, answers: Answers, filled: int) -> Any:
    """Processes many reports from row `begin` on, all of them valid: writes verdicts, and overlaps from row `filled` on.

    Returns the number of rows done, less than all if there may be too little room for the overlaps of the next one, and
    the number of overlaps written.
    """
    emitted = detection.emitted
    process, number, clock, lo, hi, holds = reports
    for i in range(begin, len(process)):
        if len(answers.rows) - filled < len(emitted):
            return i, filled
        answers.codes[i] = push(detection, process[i], number[i], clock[i], lo[i], hi[i], holds[i])
        for one in range(detection.work[WORK.overlaps, 0]):
            for p in range(len(detection.ring.heads)):
                answers.overlaps[filled, p] = emitted[one, p]
            answers.rows[filled] = i
            filled += 1
    return len(process), filled


@compiled_noref
def retracted(ring: Ring, k: int) -> Any:
    """RETRACTED if a release of process k refutes all CGSs that the last verdict called possible.

    New order leads from states of k to states of others: it removes the CGSs with k before the first and another
    process not before the second. If it removes the least CGS with all true, it removes all that lie above.
    """
    if ring.meta[META.raised] == 0 or not ring.meta[META.verdict] & POSSIBLY:
        return 0
    seen = ring.heads[k, HEAD.witness]
    for j in range(len(ring.heads)):
        row = ring.window[j, ring.heads[j, HEAD.witness] % ring.heads[j, HEAD.width]]
        if j != k and row[ROW.number] == ring.heads[j, HEAD.witness] and row[CLOCK + k] > seen:
            return RETRACTED
    return 0


@compiled_noref
def judge(ring: Ring, work: Array, emitted: Array) -> Any:
    """The verdict over the current windows."""
    heads, window = ring.heads, ring.window
    true = window[:, :, ROW.holds]
    if not begin(heads, work) or not choose_true(heads, true, work):
        return 0
    verdict = 0
    if climb(heads, window, true, work, WORK.choice, True):
        verdict = POSSIBLY
        for p in range(len(heads)):
            heads[p, HEAD.witness] = work[WORK.choice, p]
        climb(heads, window, true, work, WORK.least, False)
        descend(heads, window, work)
        if every_way(heads, window, true, work):
            verdict |= IN_WINDOW
    if overlap(ring, work, emitted):
        verdict |= DEFINITELY
    return verdict
