"""Finality of matches: the events that violate a match, the frontier from which none can, and the heap of pending matches.

A negation forbids events of its class with t_max >= a and t <= b (closed; see `gap`). No event that is still to come can lie
there once the frontier has reached the negation's due time: the right neighbour's time, or one tick past the window for a
trailing negation, plus the longest stamp. A match is pending in a heap until the latest due time of its negations and is
then checked again: an event that violates it may have arrived meanwhile, and such an event is still stored.
"""

from typing import Any

from whenabouts_cloud.cep.kernel.arguments import Site, alternative_of, negation_of
from whenabouts_cloud.cep.kernel.conditions import holds
from whenabouts_cloud.cep.kernel.hts import chain_of, end_of, first_from, reach_back
from whenabouts_cloud.cep.kernel.layout import (
    BOUND,
    FOREVER,
    META,
    NEGATED_PLACE,
    NEVER,
    NODE,
    PENDING,
    PENDING_EVENTS,
    STORED,
    TIMER,
    Scratch,
    State,
)
from whenabouts_cloud.cep.kernel.program import UNORDERED, AlternativeRow, Negation, Program
from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref


@compiled_inline
def gap(negation: Negation, alternative: AlternativeRow, bound: Array) -> Any:
    """(a, b): an event violates the negation iff its t_max >= a and its t <= b."""
    a, b = NEVER, FOREVER
    for i in range(alternative.width):
        if negation.left == 0:
            a = max(a, bound[i, BOUND.t] - alternative.window)
        elif negation.left >> i & 1:
            a = max(a, bound[i, BOUND.t] + 1)
        if negation.right == 0:
            b = min(b, bound[i, BOUND.t_max] + alternative.window)
        elif negation.right >> i & 1:
            b = min(b, bound[i, BOUND.t_max] - 1)
    return a, b


@compiled_noref
def due_of(program: Program, scratch: Scratch, v: int, longest: int) -> Any:
    """Frontier from which no event still to come can violate the bound match."""
    alternative, due = alternative_of(program.alternatives, v), NEVER
    for k in range(alternative.negation, alternative.negation_end):
        negation = negation_of(program.negations, k)
        _, b = gap(negation, alternative, scratch.bound)
        if negation.right != 0 and alternative.order == UNORDERED:
            b += 1  # two events of one gateway may be in order at the same time
        due = max(due, b + 1 + longest)
    return due


@compiled_noref
def is_own(bound: Array, count: int, arrival: int) -> bool:
    """True if the event is one of the first `count` bound ones."""
    own = False
    for i in range(count):
        own = own or bound[i, BOUND.arrival] == arrival
    return own


@compiled_inline
def violated(program: Program, state: State, scratch: Scratch, site: Site, k: int) -> bool:
    """True if a stored event violates negation k of the bound match."""
    pool, bound = state.pool, scratch.bound
    alternative, negation = alternative_of(program.alternatives, site.alternative), negation_of(program.negations, k)
    a, b = gap(negation, alternative, bound)
    slack = reach_back(state.meta, pool)
    if a > b + slack:
        return False
    begin, end = chain_of(state.nodes, site.node, negation.event_class)
    if begin == end:
        return False
    for place in range(first_from(pool, begin, end, a - slack), end):
        if pool[place, STORED.t] > b:
            break
        t_max = end_of(pool, place)
        if t_max < a or is_own(bound, alternative.width, pool[place, STORED.arrival]):
            continue
        if negation.step == negation.step_end:
            return True
        bound[NEGATED_PLACE, BOUND.t], bound[NEGATED_PLACE, BOUND.t_max] = pool[place, STORED.t], t_max
        for column in range(state.attrs.shape[1]):
            scratch.attrs[NEGATED_PLACE, column] = state.attrs[place, column]
        if holds(program.steps, program.step_values, negation.step, negation.step_end, scratch):
            return True
    return False


@compiled_noref
def push(heap: Array, meta: Array, when: int, place: int) -> None:
    """Adds a pending match to the heap."""
    i = meta[META.heap]
    meta[META.heap] += 1
    while i > 0 and heap[(i - 1) >> 1, TIMER.due] > when:
        up = (i - 1) >> 1
        heap[i, TIMER.due], heap[i, TIMER.place] = heap[up, TIMER.due], heap[up, TIMER.place]
        i = up
    heap[i, TIMER.due], heap[i, TIMER.place] = when, place


@compiled_noref
def pop(heap: Array, meta: Array) -> Any:
    """Removes the match with the earliest due time from the heap and returns its place in `pending`."""
    place = heap[0, TIMER.place]
    meta[META.heap] -= 1
    count = meta[META.heap]
    when, moved = heap[count, TIMER.due], heap[count, TIMER.place]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= count:
            break
        if down + 1 < count and heap[down + 1, TIMER.due] < heap[down, TIMER.due]:
            down += 1
        if heap[down, TIMER.due] >= when:
            break
        heap[i, TIMER.due], heap[i, TIMER.place] = heap[down, TIMER.due], heap[down, TIMER.place]
        i = down
    heap[i, TIMER.due], heap[i, TIMER.place] = when, moved
    return place


@compiled_noref
def take_pending(meta: Array, pending: Array) -> Any:
    """Takes a free place for a pending match; returns -1 if there is none."""
    if meta[META.pending_free] >= 0:
        place = meta[META.pending_free]
        meta[META.pending_free] = pending[place, PENDING.next]
    elif meta[META.pending_top] < len(pending):
        place = meta[META.pending_top]
        meta[META.pending_top] += 1
    else:
        return -1
    return place


@compiled_inline
def free_pending(state: State, place: int) -> None:
    """Frees the place of a pending match."""
    state.pending[place, PENDING.next] = state.meta[META.pending_free]
    state.pending[place, PENDING.node] = -1
    state.meta[META.pending_free] = place


@compiled_inline
def enter(state: State, place: int) -> None:
    """Makes a match pending: adds it to the heap and to the list of its key's matches (whose places are counted from 1)."""
    nodes, pending, meta = state.nodes, state.pending, state.meta
    node = pending[place, PENDING.node]
    after = nodes[node, NODE.matches]
    pending[place, PENDING.before], pending[place, PENDING.next] = 0, after
    if after != 0:
        pending[after - 1, PENDING.before] = place + 1
    nodes[node, NODE.matches] = place + 1
    push(state.heap, meta, pending[place, PENDING.due], place)
    meta[META.pending] += 1


@compiled_inline
def leave(state: State, place: int) -> None:
    """Removes a match from the list of its key's matches; the caller removes it from the heap."""
    nodes, pending = state.nodes, state.pending
    before, after = pending[place, PENDING.before], pending[place, PENDING.next]
    if before != 0:
        pending[before - 1, PENDING.next] = after
    else:
        nodes[pending[place, PENDING.node], NODE.matches] = after
    if after != 0:
        pending[after - 1, PENDING.before] = before
    state.meta[META.pending] -= 1


@compiled_inline
def bind_pending(state: State, place: int, count: int, scratch: Scratch) -> None:
    """Binds the events of a pending match."""
    extra = state.attrs.shape[1]
    for i in range(count):
        scratch.bound[i, BOUND.t] = state.pending[place, PENDING_EVENTS + 3 * i]
        scratch.bound[i, BOUND.t_max] = state.pending[place, PENDING_EVENTS + 3 * i + 1]
        scratch.bound[i, BOUND.arrival] = state.pending[place, PENDING_EVENTS + 3 * i + 2]
        for column in range(extra):
            scratch.attrs[i, column] = state.pending_attrs[place, i * extra + column]


@compiled_noref
def raise_source(tree: Array, source: int, t_max: int) -> int:
    """Raises a source to t_max and returns the least of all sources; leaves are in the second half of the tree."""
    leaf = len(tree) // 2 + source
    if tree[leaf] == FOREVER or tree[leaf] < t_max:
        tree[leaf] = t_max
        while leaf > 1:
            leaf >>= 1
            least = min(tree[2 * leaf], tree[2 * leaf + 1])
            if tree[leaf] == least:
                break
            tree[leaf] = least
    return int(tree[1])
