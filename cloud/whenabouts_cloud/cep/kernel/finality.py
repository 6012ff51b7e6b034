"""When a match may be told: what violates it, from when on nothing can, and the matches that wait for that.

A negation forbids events of its class with t_max >= a and t <= b (closed; see `gap`). Nothing that is still to come can
lie there once the frontier has reached the sealing time: the right neighbour's, or one tick past the window for a
trailing negation, plus the longest stamp. A match waits in a heap until the latest sealing time of its negations and is then
checked again: an event that violates it may have come meanwhile, and such events do not go away.
"""

from typing import Any

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel import program as of
from whenabouts_cloud.cep.kernel.conditions import holds
from whenabouts_cloud.cep.kernel.hts import LOW, first_from, reach_back
from whenabouts_cloud.cep.kernel.layout import Scratch, State
from whenabouts_cloud.cep.kernel.program import Program
from whenabouts_cloud.jit import Array, bare


@bare
def gap(left: int, right: int, count: int, window: int, s: Scratch) -> Any:
    """(a, b): an event violates the negation iff its t_max >= a and its t <= b."""
    a, b = at.NEVER, at.FOREVER
    if left == 0:
        for i in range(count):
            a = max(a, s.num[i, at.S_T] - window)
    else:
        for i in range(count):
            if left >> i & 1:
                a = max(a, s.num[i, at.S_T] + 1)
    if right == 0:
        for i in range(count):
            b = min(b, s.num[i, at.S_T_MAX] + window)
    else:
        for i in range(count):
            if right >> i & 1:
                b = min(b, s.num[i, at.S_T_MAX] - 1)
    return a, b


@bare
def seal(p: Program, variant: int, count: int, window: int, longest: int, s: Scratch) -> Any:
    """The frontier from which on nothing can violate the match that is bound."""
    found = at.NEVER
    for k in range(p.variant[variant, of.V_NEGATION], p.variant[variant, of.V_NEGATION_END]):
        _, b = gap(p.negation[k, of.N_LEFT], p.negation[k, of.N_RIGHT], count, window, s)
        if p.negation[k, of.N_RIGHT] != 0 and p.variant[variant, of.V_ORDER] == of.UNORDERED:
            b += 1  # one gateway may have two events in order at one time
        found = max(found, b + 1 + longest)
    return found


@bare
def is_own(count: int, index: int, s: Scratch) -> bool:
    """Whether the event is one of the bound positives."""
    found = False
    for i in range(count):
        found = found or s.num[i, at.S_INDEX] == index
    return found


@bare
def violated(p: Program, state: State, k: int, node: int, count: int, window: int, s: Scratch) -> bool:
    """Whether a stored event violates negation k of what is bound."""
    nodes, pool = state.nodes, state.pool
    a, b = gap(p.negation[k, of.N_LEFT], p.negation[k, of.N_RIGHT], count, window, s)
    if a > b:
        slack = reach_back(state.meta, pool)
        if a > b + slack:
            return False
    field = at.NODE + at.CHAIN_WORDS * p.negation[k, of.N_CLASS] + at.RANGE
    if nodes[node, field - 1] == 0:
        return False
    begin, end = nodes[node, field] >> 32, nodes[node, field] & LOW
    intervals = pool.shape[1] == 3
    place = first_from(pool, begin, end, a - reach_back(state.meta, pool))
    while place < end and pool[place, 0] <= b:
        latest = pool[place, 2] if intervals else pool[place, 0]
        if latest >= a and not is_own(count, pool[place, 1], s):
            first, last = p.negation[k, of.N_FIRST], p.negation[k, of.N_LAST]
            if first == last:
                return True
            s.num[at.NEGATED_PLACE, at.S_T], s.num[at.NEGATED_PLACE, at.S_T_MAX] = pool[place, 0], latest
            for column in range(state.attrs.shape[1]):
                s.attrs[at.NEGATED_PLACE, column] = state.attrs[place, column]
            if holds(p.step, p.step_value, first, last, s):
                return True
        place += 1
    return False


@bare
def push(heap: Array, meta: Array, when: int, place: int) -> None:
    """Enters a pending match into the heap."""
    i = meta[at.HEAP]
    meta[at.HEAP] += 1
    while i > 0 and heap[(i - 1) >> 1, 0] > when:
        up = (i - 1) >> 1
        heap[i, 0], heap[i, 1] = heap[up, 0], heap[up, 1]
        i = up
    heap[i, 0], heap[i, 1] = when, place


@bare
def pop(heap: Array, meta: Array) -> Any:
    """Takes the match with the earliest sealing time out of the heap."""
    place = heap[0, 1]
    meta[at.HEAP] -= 1
    count = meta[at.HEAP]
    when, moved = heap[count, 0], heap[count, 1]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= count:
            break
        if down + 1 < count and heap[down + 1, 0] < heap[down, 0]:
            down += 1
        if heap[down, 0] >= when:
            break
        heap[i, 0], heap[i, 1] = heap[down, 0], heap[down, 1]
        i = down
    heap[i, 0], heap[i, 1] = when, moved
    return place


@bare
def take_pending(state: State) -> Any:
    """A free place for a match that waits, or -1."""
    meta, pending = state.meta, state.pending
    if meta[at.PENDING_FREE] >= 0:
        place = meta[at.PENDING_FREE]
        meta[at.PENDING_FREE] = pending[place, at.P_NEXT]
    elif meta[at.PENDING_TOP] < len(pending):
        place = meta[at.PENDING_TOP]
        meta[at.PENDING_TOP] += 1
    else:
        return -1
    return place


@bare
def free_pending(state: State, place: int) -> None:
    """Returns a place."""
    state.pending[place, at.P_NEXT] = state.meta[at.PENDING_FREE]
    state.pending[place, at.P_NODE] = -1
    state.meta[at.PENDING_FREE] = place


@bare
def enter(state: State, place: int) -> None:
    """Lets a match wait: into the heap, and into the list of its main node (whose places are counted from 1)."""
    nodes, pending, meta = state.nodes, state.pending, state.meta
    node = pending[place, at.P_NODE]
    after = nodes[node, at.MATCHES]
    pending[place, at.P_BEFORE], pending[place, at.P_NEXT] = 0, after
    if after != 0:
        pending[after - 1, at.P_BEFORE] = place + 1
    nodes[node, at.MATCHES] = place + 1
    push(state.heap, meta, pending[place, at.P_SEAL], place)
    meta[at.PENDING] += 1


@bare
def leave(state: State, place: int) -> None:
    """Takes a match out of the list of its main node; its place in the heap is the caller's affair."""
    nodes, pending = state.nodes, state.pending
    before, after = pending[place, at.P_BEFORE], pending[place, at.P_NEXT]
    if before != 0:
        pending[before - 1, at.P_NEXT] = after
    else:
        nodes[pending[place, at.P_NODE], at.MATCHES] = after
    if after != 0:
        pending[after - 1, at.P_BEFORE] = before
    state.meta[at.PENDING] -= 1


@bare
def bind_pending(state: State, place: int, count: int, s: Scratch) -> None:
    """Binds the events of a waiting match."""
    extra = state.attrs.shape[1]
    for i in range(count):
        s.num[i, at.S_T] = state.pending[place, at.P_EVENTS + 3 * i]
        s.num[i, at.S_T_MAX] = state.pending[place, at.P_EVENTS + 3 * i + 1]
        s.num[i, at.S_INDEX] = state.pending[place, at.P_EVENTS + 3 * i + 2]
        for column in range(extra):
            s.attrs[i, column] = state.pending_attrs[place, i * extra + column]


@bare
def raise_source(tree: Array, source: int, t_max: int) -> int:
    """The least frontier of all sources after one has come to t_max; leaves are in the second half of the tree."""
    leaf = len(tree) // 2 + source
    if tree[leaf] == at.FOREVER or tree[leaf] < t_max:
        tree[leaf] = t_max
        while leaf > 1:
            leaf >>= 1
            least = min(tree[2 * leaf], tree[2 * leaf + 1])
            if tree[leaf] == least:
                break
            tree[leaf] = least
    return int(tree[1])
