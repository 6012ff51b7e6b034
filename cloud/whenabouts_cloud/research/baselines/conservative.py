"""The conservative method (Liu et al., ICDE 2009): construct at arrival, emit when punctuations allow it.

Events are inserted into sorted stacks as they arrive, and sequences are constructed through each. A match without a
negation is emitted at once. A match with a negation is held until a punctuation (POG) guarantees that no event can fall
into its gaps any more. A punctuation with the frontier comes with every pog_every-th event and with each advance; it also
moves the purge bound.
"""

from typing import Any, ClassVar

import numpy as np

from whenabouts_cloud.cep.kernel.layout import NEVER
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
from whenabouts_cloud.research.baselines.stacks import Stacks, doubled, empty_stacks, insert, number_of, renewed
from whenabouts_cloud.research.baselines.timer_heap import Guarantee, TimerHeap, empty_held, hold, take


class Conservative(Baseline):
    """Emits every match once, never retracts, quantised by the punctuations."""

    STATE: ClassVar[tuple[type, ...]] = (Stacks, TimerHeap, Guarantee)

    def _empty(self, places: int, classes: int) -> tuple[Any, ...]:
        return empty_stacks(classes), empty_held(2 * places + 1), Guarantee(np.full(1, NEVER, np.int64))

    def _run(self, events: Events) -> tuple[Array, Array, Array]:
        stacks, pending, guarantee = self._state
        *state, matches, emitted_at = _run(self._chain, stacks, pending, guarantee, events)
        self._state = tuple(state)
        return matches, emitted_at, matches[:0]


@compiled
def _run(chain: Chain, stacks: Stacks, pending: TimerHeap, guarantee: Guarantee, events: Events) -> Any:
    code, key, t, arrival, frontier, punctuated = events
    n, classes, window = len(chain.place), chain.limits[LIMIT.classes], chain.limits[LIMIT.window]
    rows, count = np.empty((256, 2 * n), np.int64), 0
    emitted_at = np.empty(256, np.int64)
    work, match = np.empty((n, SCRATCH), np.int64), np.empty(2 * n + 1, np.int64)
    done, final = 0, guarantee.frontier[0]
    bound = final - window  # no pending or future match needs an older event
    for e in range(len(code)):
        if code[e] >= 0:
            first, last = chain.first[code[e]], chain.first[code[e] + 1]
            for place_of_class in range(first, last):
                c = chain.type_class[place_of_class]
                while insert(stacks, classes, key[e], c, t[e], arrival[e], bound) < 0:
                    stacks = renewed(stacks, classes, bound)
            for place_of_class in range(first, last):
                c = chain.type_class[place_of_class]
                for place in range(n):
                    if chain.place[place] == c:
                        begun = count
                        number = number_of(stacks, key[e])
                        rows, count = construct(chain, stacks, number, place, (t[e], arrival[e]), rows, count, work)
                        kept = begun
                        for m in range(begun, count):
                            due = finality_time(chain, rows[m])
                            if due > final:
                                match[0] = key[e]
                                match[1:] = rows[m]
                                pending = hold(pending, due, match)
                            else:
                                rows[kept] = rows[m]
                                kept += 1
                        count = kept
        if punctuated[e]:
            final = frontier[e]
            while pending.size[0] > 0 and pending.order[0, 0] <= final:
                match[:] = pending.rows[take(pending)]
                if not any_violated(chain, stacks, match[0], match[1:]):
                    if count + 1 == len(rows):
                        rows = doubled(rows)
                    rows[count] = match[1:]
                    count += 1
            bound = final - window
        if count > done:
            while len(emitted_at) < len(rows):
                emitted_at = np.concatenate((emitted_at, emitted_at))
            emitted_at[done:count] = arrival[e]
            done = count
    guarantee.frontier[0] = final
    return stacks, pending, guarantee, rows[:count, n:].copy(), emitted_at[:count].copy()
