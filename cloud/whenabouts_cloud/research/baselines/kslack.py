"""K-slack (Babu, Srivastava and Widom, TODS 29(3) 2004): hold each event until no earlier one can arrive.

A heap holds the events until f >= t. The in-order engine behind it only appends to its stacks and searches only when an
event of the last place comes; a match with a trailing negation waits until the clock has left the window. Exact as long
as no event is late; every match waits for the whole slack. Events of types that the pattern does not use are not held.
"""

from typing import Any, ClassVar

import numpy as np

from whenabouts_cloud.jit import Array, compiled
from whenabouts_cloud.research.baselines.baseline import Baseline, Events
from whenabouts_cloud.research.baselines.sequence import (
    LIMIT,
    SCRATCH,
    Chain,
    any_violated,
    construct,
    finality_time,
)
from whenabouts_cloud.research.baselines.stacks import Stacks, doubled, empty_stacks, insert, renewed
from whenabouts_cloud.research.baselines.timer_heap import TimerHeap, empty_held, hold, take


class KSlack(Baseline):
    """Emits matches in time order, each when the frontier reaches its last event."""

    STATE: ClassVar[tuple[type, ...]] = (Stacks, TimerHeap, TimerHeap)

    def _empty(self, places: int, classes: int) -> tuple[Any, ...]:
        return empty_stacks(classes), empty_held(4), empty_held(2 * places + 1)

    def _run(self, events: Events) -> tuple[Array, Array, Array]:
        stacks, buffer, pending = self._state
        *state, matches, emitted_at = _run(self._chain, stacks, buffer, pending, events)
        self._state = tuple(state)
        return matches, emitted_at, matches[:0]


@compiled
def _run(chain: Chain, stacks: Stacks, buffer: TimerHeap, pending: TimerHeap, events: Events) -> Any:
    code, key, t, arrival, frontier = events.code, events.key, events.t, events.arrival, events.frontier
    n, classes, window = len(chain.place), chain.limits[LIMIT.classes], chain.limits[LIMIT.window]
    rows, count = np.empty((256, 2 * n), np.int64), 0
    emitted_at = np.empty(256, np.int64)
    work, event, match = np.empty((n, SCRATCH), np.int64), np.empty(4, np.int64), np.empty(2 * n + 1, np.int64)
    done = 0  # rows whose emitted_at is written
    for e in range(len(code)):
        if code[e] >= 0 and chain.first[code[e]] < chain.first[code[e] + 1]:
            event[0], event[1], event[2], event[3] = code[e], key[e], t[e], arrival[e]
            buffer = hold(buffer, t[e], event)
        while buffer.size[0] > 0 and buffer.order[0, 0] <= frontier[e]:
            event[:] = buffer.rows[take(buffer)]
            now = event[2]
            while pending.size[0] > 0 and pending.order[0, 0] <= now:
                rows, count = _settled(chain, stacks, pending, rows, count)
            for place_of_class in range(chain.first[event[0]], chain.first[event[0] + 1]):
                c = chain.type_class[place_of_class]
                number = insert(stacks, classes, event[1], c, now, event[3], now - window)
                while number < 0:
                    stacks = renewed(stacks, classes, now - window)
                    number = insert(stacks, classes, event[1], c, now, event[3], now - window)
                if c == chain.place[n - 1]:
                    begun = count
                    rows, count = construct(chain, stacks, number, n - 1, (now, event[3]), rows, count, work)
                    kept = begun
                    for m in range(begun, count):
                        due = finality_time(chain, rows[m])
                        if due > now:
                            match[0] = event[1]
                            match[1:] = rows[m]
                            pending = hold(pending, due, match)
                        else:
                            rows[kept] = rows[m]
                            kept += 1
                    count = kept
        while pending.size[0] > 0 and pending.order[0, 0] <= frontier[e]:
            rows, count = _settled(chain, stacks, pending, rows, count)
        if count > done:
            while len(emitted_at) < len(rows):
                emitted_at = np.concatenate((emitted_at, emitted_at))
            emitted_at[done:count] = arrival[e]
            done = count
    return stacks, buffer, pending, rows[:count, n:].copy(), emitted_at[:count].copy()


@compiled
def _settled(chain: Chain, stacks: Stacks, pending: TimerHeap, rows: Array, count: int) -> tuple[Array, int]:
    """Take the pending match that is due; emit it unless a trailing negation has been violated meanwhile."""
    match = pending.rows[take(pending)]
    if not any_violated(chain, stacks, match[0], match[1:]):
        if count + 1 == len(rows):
            rows = doubled(rows)
        rows[count] = match[1:]
        count += 1
    return rows, count
