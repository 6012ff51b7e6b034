"""The aggressive method (Wei, Liu, Li, Golovnya, Rundensteiner and Claypool, SIGMOD 2009): emit at once, correct later.

Stacks and construction are those of the conservative method. A match is emitted when it is complete and no event so far
violates it. A negated event that arrives later retracts the emitted matches whose gaps it falls into. For this, emitted
matches are kept by key until they are final. The changelog folds to the exact result of the events that have arrived.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.hts import home
from whenabouts_cloud.cep.kernel.layout import NEVER
from whenabouts_cloud.jit import Array, columns, compiled
from whenabouts_cloud.research.baselines.baseline import Baseline, Events
from whenabouts_cloud.research.baselines.sequence import LIMIT, SCRATCH, Chain, construct, finality_time, gap
from whenabouts_cloud.research.baselines.stacks import Stacks, doubled, empty_stacks, insert, number_of, renewed
from whenabouts_cloud.research.baselines.timer_heap import Guarantee

BUCKETS = 16  # initially; always as many as rows fit


class EmittedMatch(NamedTuple):
    """An emitted match that is not final, followed by the times of its events, then their indices."""

    key: int
    due: int  # the frontier at which it is final; NEVER once it is final or retracted


MATCH = columns(EmittedMatch)
TIMES = len(MATCH)  # first column of the times


class Emitted(NamedTuple):
    """Emitted matches that are not final: lists by hashed key, `head` (bucket,), `after` (row,), -1 at the end.

    `rows` are those of `EmittedMatch`; `size` is the number of rows used, including final matches.
    """

    head: Array
    after: Array
    rows: Array
    size: Array


class Aggressive(Baseline):
    """Emits on arrival, with retractions; after each call matches minus retractions are right for all arrived events."""

    STATE: ClassVar[tuple[type, ...]] = (Stacks, Emitted, Guarantee)

    def _empty(self, places: int, classes: int) -> tuple[Any, ...]:
        rows = np.zeros((BUCKETS, TIMES + 2 * places), np.int64)
        emitted = Emitted(np.full(BUCKETS, -1, np.int64), np.full(BUCKETS, -1, np.int64), rows, np.zeros(1, np.int64))
        return empty_stacks(classes), emitted, Guarantee(np.full(1, NEVER, np.int64))

    def _run(self, events: Events) -> tuple[Array, Array, Array]:
        stacks, emitted, guarantee = self._state
        *state, matches, emitted_at, retractions = _run(self._chain, stacks, emitted, guarantee, events)
        self._state = tuple(state)
        return matches, emitted_at, retractions


@compiled
def _run(chain: Chain, stacks: Stacks, emitted: Emitted, guarantee: Guarantee, events: Events) -> Any:
    code, key, t, arrival, frontier = events.code, events.key, events.t, events.arrival, events.frontier
    n, classes, window = len(chain.place), chain.limits[LIMIT.classes], chain.limits[LIMIT.window]
    rows, count = np.empty((256, 2 * n), np.int64), 0
    retractions, retraction_count = np.empty((64, n), np.int64), 0
    emitted_at = np.empty(256, np.int64)
    work = np.empty((n, SCRATCH), np.int64)
    done, before = 0, guarantee.frontier[0]  # the frontier before the event
    for e in range(len(code)):
        if code[e] >= 0:
            first, last = chain.first[code[e]], chain.first[code[e] + 1]
            for place_of_class in range(first, last):
                c = chain.type_class[place_of_class]
                retractions, retraction_count = _retract(
                    chain, emitted, c, key[e], t[e], before, retractions, retraction_count
                )
                while insert(stacks, classes, key[e], c, t[e], arrival[e], before - window) < 0:
                    stacks = renewed(stacks, classes, before - window)
            for place_of_class in range(first, last):
                c = chain.type_class[place_of_class]
                for place in range(n):
                    if chain.place[place] == c:
                        begun = count
                        number = number_of(stacks, key[e])
                        rows, count = construct(chain, stacks, number, place, (t[e], arrival[e]), rows, count, work)
                        for m in range(begun, count):
                            due = finality_time(chain, rows[m])
                            if due > frontier[e]:
                                emitted = _remembered(emitted, key[e], due, rows[m], frontier[e])
        before = frontier[e]
        if count > done:
            while len(emitted_at) < len(rows):
                emitted_at = np.concatenate((emitted_at, emitted_at))
            emitted_at[done:count] = arrival[e]
            done = count
    guarantee.frontier[0] = before
    return (
        stacks,
        emitted,
        guarantee,
        rows[:count, n:].copy(),
        emitted_at[:count].copy(),
        retractions[:retraction_count].copy(),
    )


@compiled
def _remembered(emitted: Emitted, key: int, due: int, match: Array, frontier: int) -> Emitted:
    """Add a match; if there is no room, remove final matches, then double the room if more than half is still in use."""
    if emitted.size[0] == len(emitted.rows):
        live = 0
        for row in range(emitted.size[0]):
            if emitted.rows[row, MATCH.due] > frontier:
                emitted.rows[live] = emitted.rows[row]
                live += 1
        emitted.size[0] = live
        rows = doubled(emitted.rows) if 2 * live > len(emitted.rows) else emitted.rows
        emitted = Emitted(np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int64), rows, emitted.size)
        for row in range(live):
            _link(emitted, row)
    row = emitted.size[0]
    emitted.size[0] += 1
    emitted.rows[row, MATCH.key], emitted.rows[row, MATCH.due] = key, due
    emitted.rows[row, TIMES:] = match
    _link(emitted, row)
    return emitted


@compiled
def _link(emitted: Emitted, row: int) -> None:
    bucket = home(emitted.rows[row, MATCH.key], len(emitted.head))
    emitted.after[row] = emitted.head[bucket]
    emitted.head[bucket] = row


@compiled
def _retract(
    chain: Chain, emitted: Emitted, event_class: int, key: int, t: int, frontier: int, retractions: Array, count: int
) -> tuple[Array, int]:
    """Append the emitted matches that the event violates to `retractions`, and unlist these and final matches."""
    forbidding = False
    for c in chain.negated:
        forbidding |= c == event_class
    if not forbidding:
        return retractions, count
    n = len(chain.place)
    bucket = home(key, len(emitted.head))
    row, previous = emitted.head[bucket], -1
    while row >= 0:
        following = emitted.after[row]
        broken = False
        if emitted.rows[row, MATCH.key] == key and emitted.rows[row, MATCH.due] > frontier:
            for m in range(len(chain.negated)):
                low, high = gap(chain, m, emitted.rows[row, TIMES:])
                broken |= chain.negated[m] == event_class and low <= t < high
        if broken:
            if count == len(retractions):
                retractions = doubled(retractions)
            retractions[count] = emitted.rows[row, TIMES + n :]
            count += 1
            emitted.rows[row, MATCH.due] = NEVER
        if emitted.rows[row, MATCH.due] <= frontier:
            emitted.rows[row, MATCH.due] = NEVER
            if previous < 0:
                emitted.head[bucket] = following
            else:
                emitted.after[previous] = following
        else:
            previous = row
        row = following
    return retractions, count
