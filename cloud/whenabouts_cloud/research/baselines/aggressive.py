"""The aggressive method (Wei, Liu, Li, Golovnya, Rundensteiner and Claypool, SIGMOD 2009): tell at once, correct afterwards.

Stacks and construction are those of the conservative method; a match is told when it is complete and nothing that has come
breaks it. A negated event that comes later takes back the told matches whose gaps it falls into. For that, told matches are
kept, by key, until the frontier has sealed them. The changelog folds to the exact result of what has arrived.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.hts import home
from whenabouts_cloud.cep.kernel.layout import NEVER
from whenabouts_cloud.jit import Array, compiled
from whenabouts_cloud.research.baselines.baseline import Compared, Events
from whenabouts_cloud.research.baselines.sequence import SCRATCH, Chain, construct, gap, sealing_time
from whenabouts_cloud.research.baselines.stacks import Stacks, doubled, empty_stacks, insert, number_of, renewed
from whenabouts_cloud.research.baselines.timer_heap import Guarantee

BUCKETS = 16  # to begin with; as many as there is room for rows


class Told(NamedTuple):
    """Told matches that are not sealed: lists by hashed key, `head` (bucket,), `after` (row,), -1 at the end.

    A row is key, sealing time, times, indices; `size` is the number of rows used, those that are sealed included.
    """

    head: Array
    after: Array
    rows: Array
    size: Array


class Aggressive(Compared):
    """Told on arrival, with retractions; after each call matches less retractions are right for what has arrived."""

    STATE: ClassVar[tuple[type, ...]] = (Stacks, Told, Guarantee)

    def _empty(self, places: int, classes: int) -> tuple[Any, ...]:
        rows = np.zeros((BUCKETS, 2 * places + 2), np.int64)
        told = Told(np.full(BUCKETS, -1, np.int64), np.full(BUCKETS, -1, np.int64), rows, np.zeros(1, np.int64))
        return empty_stacks(classes), told, Guarantee(np.full(1, NEVER, np.int64))

    def _run(self, events: Events) -> tuple[Array, Array, Array]:
        stacks, told, guarantee = self._state
        *state, matches, told_at, retractions = _run(self._chain, stacks, told, guarantee, events)
        self._state = tuple(state)
        return matches, told_at, retractions


@compiled
def _run(chain: Chain, stacks: Stacks, told: Told, guarantee: Guarantee, events: Events) -> Any:
    code, key, t, arrival, frontier = events.code, events.key, events.t, events.arrival, events.frontier
    n, classes, window = len(chain.place), chain.limits[1], chain.limits[0]
    rows, count = np.empty((256, 2 * n), np.int64), 0
    back, back_count = np.empty((64, n), np.int64), 0
    told_at = np.empty(256, np.int64)
    work = np.empty((n, SCRATCH), np.int64)
    done, before = 0, guarantee.frontier[0]  # the frontier before the event
    for e in range(len(code)):
        if code[e] >= 0:
            first, last = chain.first[code[e]], chain.first[code[e] + 1]
            for of in range(first, last):
                c = chain.of[of]
                back, back_count = _take_back(chain, told, c, key[e], t[e], before, back, back_count)
                while insert(stacks, classes, key[e], c, t[e], arrival[e], before - window) < 0:
                    stacks = renewed(stacks, classes, before - window)
            for of in range(first, last):
                c = chain.of[of]
                for place in range(n):
                    if chain.place[place] == c:
                        begun = count
                        number = number_of(stacks, key[e])
                        rows, count = construct(chain, stacks, number, place, (t[e], arrival[e]), rows, count, work)
                        for m in range(begun, count):
                            due = sealing_time(chain, rows[m])
                            if due > frontier[e]:
                                told = _remembered(told, key[e], due, rows[m], frontier[e])
        before = frontier[e]
        if count > done:
            while len(told_at) < len(rows):
                told_at = np.concatenate((told_at, told_at))
            told_at[done:count] = arrival[e]
            done = count
    guarantee.frontier[0] = before
    return stacks, told, guarantee, rows[:count, n:].copy(), told_at[:count].copy(), back[:back_count].copy()


@compiled
def _remembered(told: Told, key: int, due: int, match: Array, frontier: int) -> Told:
    """With one more; where there is no room, sealed ones go first and then the room is doubled if half is still in use."""
    if told.size[0] == len(told.rows):
        live = 0
        for row in range(told.size[0]):
            if told.rows[row, 1] > frontier:
                told.rows[live] = told.rows[row]
                live += 1
        told.size[0] = live
        rows = doubled(told.rows) if 2 * live > len(told.rows) else told.rows
        told = Told(np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int64), rows, told.size)
        for row in range(live):
            _link(told, row)
    row = told.size[0]
    told.size[0] += 1
    told.rows[row, 0], told.rows[row, 1] = key, due
    told.rows[row, 2:] = match
    _link(told, row)
    return told


@compiled
def _link(told: Told, row: int) -> None:
    bucket = home(told.rows[row, 0], len(told.head))
    told.after[row] = told.head[bucket]
    told.head[bucket] = row


@compiled
def _take_back(
    chain: Chain, told: Told, event_class: int, key: int, t: int, frontier: int, back: Array, count: int
) -> tuple[Array, int]:
    """Append the told matches that the event breaks to `back`; they and those that are sealed leave their list."""
    forbidding = False
    for c in chain.negated:
        forbidding |= c == event_class
    if not forbidding:
        return back, count
    n = len(chain.place)
    bucket = home(key, len(told.head))
    row, previous = told.head[bucket], -1
    while row >= 0:
        following = told.after[row]
        broken = False
        if told.rows[row, 0] == key and told.rows[row, 1] > frontier:
            for m in range(len(chain.negated)):
                low, high = gap(chain, m, told.rows[row, 2:])
                broken |= chain.negated[m] == event_class and low <= t < high
        if broken:
            if count == len(back):
                back = doubled(back)
            back[count] = told.rows[row, 2 + n :]
            count += 1
            told.rows[row, 1] = NEVER
        if told.rows[row, 1] <= frontier:
            told.rows[row, 1] = NEVER
            if previous < 0:
                told.head[bucket] = following
            else:
                told.after[previous] = following
        else:
            previous = row
        row = following
    return back, count
