"""A block of events through the engine, in one call of machine code.

Each event: late or not, into the chains of its classes, search where it completes something, matches that it violates (on
arrival), then the waiting matches that are sealed now. When an array is full the kernel returns what it wants more of and
is called again: it goes on where it was, the search for that event from its beginning.
"""

from typing import Any

from whenabouts_cloud.cep.compiled import Array, bare
from whenabouts_cloud.cep.hts import find, find_or_add, insert, sweep
from whenabouts_cloud.cep.sealing import (
    bind_pending, enter, free_pending, leave, pop, raise_source, violated,
)  # fmt: skip
from whenabouts_cloud.cep.search import ADD, AGAIN, FIRST, REMOVE, TELL, breaks, offer, search, tell
from whenabouts_cloud.cep.infa import chain_completes
from whenabouts_cloud.cep.search_plain import search_plain
from whenabouts_cloud.cep.layout import (
    ADDED, AT, BEGUN_CANDIDATES, BEGUN_NEGATED, CANDIDATES, CHAIN, CHAIN_WORDS, DONE, EMPTY_NODE, EVENT_PLACE, FED,
    FRONTIER, GROUP, HEAP, LAST, LATE, LATE_TOTAL, LONGEST, MATCHES, MORE_LATE, MORE_NODES, MORE_POOL, MORE_RETRACTED,
    NEGATED_EVENTS, NEVER, NEWEST, NODE, P_NEXT, P_NODE, P_SERIAL, P_VARIANT, REMOVED, RETRACTED, RETRACTED_GROUP,
    STAGE, STAGED, SWEPT, S_INDEX, TOLD, Block, Results, Scratch, State,
)  # fmt: skip
from whenabouts_cloud.cep.program import (
    E_CLASS, E_COLUMN, K_FORBID, K_KEYED, K_TRUE, K_USE, K_USE_END, N_CLASS, U_POSITION, U_VARIANT, V_ELEMENT,
    V_NEGATION, V_NEGATION_END, V_OFFERED, V_PLAIN, V_PLAN, V_REFINED, V_WIDTH, V_WINDOW, Program,
)  # fmt: skip

ARRIVED, SEARCHING, SEALING = 0, 1, 2  # stages of an event
KBOUND, SOURCE = 0, 1


@bare
def feed_block(
    p: Program, state: State, block: Block, out: Results, s: Scratch, eager: bool, by_source: bool, k: int,
    window: int, longest: int,
) -> Any:  # fmt: skip
    """Takes in the events of the block from meta[AT] on; DONE, or what there must be more of."""
    meta, nodes, pool, slots, attrs = state.meta, state.nodes, state.pool, state.slots, state.attrs
    intervals, extra = len(block.t_max) > 0, attrs.shape[1]
    span = max(1, (window + longest + k) >> 2)
    points = pool.shape[1] == 2
    count = len(block.t)
    i = meta[AT]
    while i < count:
        t, index = block.t[i], meta[FED] + i
        t_max = block.t_max[i] if intervals else t
        kind = block.type_code[i]
        first, last = p.type_start[kind], p.type_start[kind + 1]
        if meta[STAGE] == ARRIVED:
            frontier = meta[FRONTIER]
            if t_max < frontier or t < frontier - longest:
                status = _late(p, state, block, out, s, i, t, t_max, index, longest, window)
                if status != DONE:
                    return status
                _promise(state, block, by_source, k, i, t_max)
            else:
                if first < last:
                    past = frontier - 2 * longest - window
                    status = _store(p, nodes, pool, attrs, slots, meta, block, i, t, t_max, index, first, last, past)
                    if status != DONE:
                        return status
                    if t_max - t > meta[LONGEST]:
                        meta[LONGEST] = t_max - t
                _promise(state, block, by_source, k, i, t_max)
                if first < last:
                    meta[STAGE] = SEARCHING
                    meta[GROUP], meta[RETRACTED_GROUP] = meta[TOLD], meta[RETRACTED]
                    meta[BEGUN_CANDIDATES], meta[BEGUN_NEGATED] = meta[CANDIDATES], meta[NEGATED_EVENTS]
                    meta[STAGED] = -1
            if meta[STAGE] == ARRIVED:
                meta[STAGE] = SEALING
                meta[GROUP], meta[RETRACTED_GROUP] = meta[TOLD], meta[RETRACTED]
        if meta[STAGE] == SEARCHING:
            for column in range(extra):
                s.attrs[EVENT_PLACE, column] = block.attrs[i, column]
            for place in range(first, last):
                c = p.type_class[place]
                if p.klass[c, K_TRUE] >= 0 and not block.true[p.klass[c, K_TRUE], i]:
                    continue
                node = find(slots, nodes, block.key[i]) if p.klass[c, K_KEYED] else 0
                for use in range(p.klass[c, K_USE], p.klass[c, K_USE_END]):
                    variant, position = p.use[use, U_VARIANT], p.use[use, U_POSITION]
                    if points and p.variant[variant, V_PLAIN]:
                        first_element, width = p.variant[variant, V_ELEMENT], p.variant[variant, V_WIDTH]
                        if position + 1 < width and nodes[node, NODE + CHAIN_WORDS * p.element[first_element + position + 1, E_CLASS] + LAST] <= t:
                            continue
                        if not chain_completes(
                            nodes, pool, p.element, node, first_element, width, position, t, p.variant[variant, V_WINDOW], s.num
                        ):
                            continue
                        status = search_plain(
                            p.variant, p.element, p.negation, nodes, pool, meta, state.pending, out.told, out.told_which, s.num,
                            variant, position, node, t, index, eager, longest,
                        )  # fmt: skip
                    else:
                        status = search(p, state, out, s, variant, position, node, t, t_max, index, TELL, NEVER, eager, longest, index)
                    if status != DONE:
                        _undo(state)
                        return status
                if eager and p.klass[c, K_FORBID] and nodes[node, MATCHES] != 0:
                    status = _retract(p, state, out, s, node, c, t, t_max, index)
                    if status != DONE:
                        _undo(state)
                        return status
            if meta[STAGED] >= 0 or meta[RETRACTED] > meta[RETRACTED_GROUP]:
                _commit(p, state, block, out, s, i, first, last, t, t_max, index)
            meta[STAGE] = SEALING
        if meta[HEAP] > 0 and state.heap[0, 0] <= meta[FRONTIER]:
            status = seal_due(p, state, out, s, eager, index)
            if status != DONE:
                return status
        if meta[TOLD] > meta[GROUP]:
            for row in range(meta[GROUP], meta[TOLD]):
                out.told_at[row] = index
            sort_rows(out.told, out.told_which, meta[GROUP], meta[TOLD])
        if meta[RETRACTED] > meta[RETRACTED_GROUP]:
            for row in range(meta[RETRACTED_GROUP], meta[RETRACTED]):
                out.retracted_at[row] = index
            sort_rows(out.retracted, out.retracted_which, meta[RETRACTED_GROUP], meta[RETRACTED])
        if len(block.frontier):
            block.frontier[i] = meta[FRONTIER]
        meta[STAGE] = ARRIVED
        if meta[FRONTIER] - meta[SWEPT] >= span:
            clean(state, window, longest)
        i += 1
        meta[AT] = i
    return DONE


@bare
def advance(p: Program, state: State, out: Results, s: Scratch, eager: bool, window: int, longest: int) -> Any:
    """Tells what is sealed at the frontier as it stands, with no event; DONE, or what there must be more of."""
    meta = state.meta
    if meta[STAGE] == ARRIVED:
        meta[STAGE] = SEALING
        meta[GROUP] = meta[TOLD]
    status = seal_due(p, state, out, s, eager, -1)
    if status != DONE:
        return status
    for row in range(meta[GROUP], meta[TOLD]):
        out.told_at[row] = -1
    sort_rows(out.told, out.told_which, meta[GROUP], meta[TOLD])
    meta[STAGE] = ARRIVED
    clean(state, window, longest)
    return DONE


@bare
def clean(state: State, window: int, longest: int) -> None:
    """Drops from all main nodes what nothing can join any more."""
    meta = state.meta
    past = meta[FRONTIER] - 2 * longest - window
    sweep(state.slots, state.nodes, state.pool, meta, past, past)
    meta[SWEPT] = meta[FRONTIER]


@bare
def _promise(state: State, block: Block, by_source: bool, k: int, i: int, t_max: int) -> None:
    """What the event says about those to come."""
    meta = state.meta
    frontier = meta[FRONTIER]
    if by_source:
        frontier = raise_source(state.tree, block.source[i], t_max)
    elif t_max > meta[NEWEST]:
        meta[NEWEST] = t_max
        frontier = t_max - k
    if frontier > meta[FRONTIER]:
        meta[FRONTIER] = frontier


@bare
def _store(
    p: Program, nodes: Array, pool: Array, attrs: Array, slots: Array, meta: Array, block: Block, i: int, t: int,
    t_max: int, index: int, first: int, last: int, past: int,
) -> Any:  # fmt: skip
    """Puts the event into the chains of its classes; meta[CHAIN] counts those that are done."""
    for place in range(first + meta[CHAIN], last):
        c = p.type_class[place]
        if p.klass[c, K_TRUE] < 0 or block.true[p.klass[c, K_TRUE], i]:
            node = 0
            if p.klass[c, K_KEYED]:
                node = find_or_add(slots, nodes, meta, block.key[i])
                if node == 0:
                    return MORE_NODES
            if not insert(nodes, pool, attrs, meta, node, c, t, t_max, index, i, block.attrs, past):
                return MORE_POOL
        meta[CHAIN] += 1
    meta[CHAIN] = 0
    return DONE


@bare
def _undo(state: State) -> None:
    """Takes back what the search for this event has found, for it will begin anew."""
    meta = state.meta
    meta[TOLD], meta[RETRACTED] = meta[GROUP], meta[RETRACTED_GROUP]
    meta[CANDIDATES], meta[NEGATED_EVENTS] = meta[BEGUN_CANDIDATES], meta[BEGUN_NEGATED]
    while meta[STAGED] >= 0:
        place = meta[STAGED]
        meta[STAGED] = state.pending[place, P_NEXT]
        free_pending(state, place)


@bare
def _retract(p: Program, state: State, out: Results, s: Scratch, node: int, c: int, t: int, t_max: int, index: int) -> Any:
    """Told matches of the node that an event of a class violates: they are taken back, their places marked by serial 0."""
    meta, pending = state.meta, state.pending
    place = state.nodes[node, MATCHES]
    while place != 0:
        one = place - 1
        place = pending[one, P_NEXT]
        variant = pending[one, P_VARIANT]
        count = p.variant[variant, V_WIDTH]
        if p.variant[variant, V_REFINED]:
            if not _negates(p, variant, c):
                continue
            bind_pending(state, one, count, s)
            status = offer(p, state, out, s, variant, node, AGAIN, pending[one, P_SERIAL], index, NEVER)
            if status != DONE:
                return status
            continue
        bind_pending(state, one, count, s)
        own = False
        for i in range(count):
            own = own or s.num[i, S_INDEX] == index
        if own or not breaks(p, s, variant, t, t_max, c, state.attrs.shape[1]):
            continue
        row = meta[RETRACTED]
        seen = False  # by another class of the same event
        for other in range(meta[RETRACTED_GROUP], row):
            seen = seen or out.retracted_at[other] == -one - 2
        if seen:
            continue
        if row >= len(out.retracted):
            return MORE_RETRACTED
        for column in range(out.retracted.shape[1]):
            out.retracted[row, column] = -1
        for i in range(count):
            out.retracted[row, p.element[p.variant[variant, V_ELEMENT] + i, E_COLUMN]] = s.num[i, S_INDEX]
        out.retracted_which[row] = p.variant[variant, V_PLAN]
        out.retracted_at[row] = -one - 2
        meta[RETRACTED] = row + 1
    return DONE


@bare
def _negates(p: Program, variant: int, c: int) -> bool:
    for k in range(p.variant[variant, V_NEGATION], p.variant[variant, V_NEGATION_END]):
        if p.negation[k, N_CLASS] == c:
            return True
    return False


@bare
def _commit(
    p: Program, state: State, block: Block, out: Results, s: Scratch, i: int, first: int, last: int, t: int, t_max: int,
    index: int,
) -> None:  # fmt: skip
    """The search is through: what was found waits from now on, what was taken back no longer does."""
    meta, pending = state.meta, state.pending
    for row in range(meta[RETRACTED_GROUP], meta[RETRACTED]):
        place = -out.retracted_at[row] - 2
        leave(state, place)
        pending[place, P_NODE] = -1  # its entry in the heap is dropped when its time comes
        pending[place, P_NEXT] = 0
    while meta[STAGED] >= 0:
        place = meta[STAGED]
        meta[STAGED] = pending[place, P_NEXT]
        enter(state, place)


@bare
def seal_due(p: Program, state: State, out: Results, s: Scratch, eager: bool, moment: int) -> Any:
    """Tells, or lets go, the matches whose sealing time the frontier has reached."""
    meta, pending, heap = state.meta, state.pending, state.heap
    while meta[HEAP] > 0 and heap[0, 0] <= meta[FRONTIER]:
        place = heap[0, 1]
        node = pending[place, P_NODE]
        if node >= 0 and not eager:
            variant = pending[place, P_VARIANT]
            count = p.variant[variant, V_WIDTH]
            bind_pending(state, place, count, s)
            kept = True
            if not p.variant[variant, V_REFINED]:
                for k in range(p.variant[variant, V_NEGATION], p.variant[variant, V_NEGATION_END]):
                    if violated(p, state, k, node, count, p.variant[variant, V_WINDOW], NEVER, s):
                        kept = False
                        break
            if kept and p.variant[variant, V_OFFERED]:
                status = offer(p, state, out, s, variant, node, FIRST, 0, moment, NEVER)
                if status != DONE:
                    return status
            elif kept:
                status = tell(p, out, s, meta, variant)
                if status != DONE:
                    return status
        pop(heap, meta)
        if node >= 0:
            leave(state, place)
        free_pending(state, place)
    return DONE


@bare
def _late(
    p: Program, state: State, block: Block, out: Results, s: Scratch, i: int, t: int, t_max: int, index: int,
    longest: int, window: int,
) -> Any:  # fmt: skip
    """Notes an event that came too late, with the matches it would have added or removed among what is held."""
    meta, nodes = state.meta, state.nodes
    begun = (meta[LATE], meta[ADDED], meta[REMOVED], meta[CANDIDATES], meta[NEGATED_EVENTS])
    if begun[0] >= len(out.late):
        return MORE_LATE
    for column in range(state.attrs.shape[1]):
        s.attrs[EVENT_PLACE, column] = block.attrs[i, column]
    oldest = meta[FRONTIER] - longest - window
    kind = block.type_code[i]
    for place in range(p.type_start[kind], p.type_start[kind + 1]):
        c = p.type_class[place]
        if p.klass[c, K_TRUE] >= 0 and not block.true[p.klass[c, K_TRUE], i]:
            continue
        node = 0
        if p.klass[c, K_KEYED]:
            node = find(state.slots, nodes, block.key[i])
            if node == 0:
                node = EMPTY_NODE
        for use in range(p.klass[c, K_USE], p.klass[c, K_USE_END]):
            status = search(p, state, out, s, p.use[use, U_VARIANT], p.use[use, U_POSITION], node, t, t_max, index, ADD, oldest, False, longest, index)
            if status != DONE:
                _forget_late(meta, begun)
                return status
        for v in range(len(p.variant)):
            if p.klass[c, K_FORBID] and _negates(p, v, c):
                status = search(p, state, out, s, v, -1, node, t, t_max, c, REMOVE, oldest, False, longest, index)
                if status != DONE:
                    _forget_late(meta, begun)
                    return status
    out.late[begun[0]] = index
    meta[LATE] = begun[0] + 1
    meta[LATE_TOTAL] += 1
    return DONE


@bare
def _forget_late(meta: Array, begun: Any) -> None:
    """Takes back what was noted for a late event, for it will be noted anew."""
    meta[ADDED], meta[REMOVED], meta[CANDIDATES], meta[NEGATED_EVENTS] = begun[1], begun[2], begun[3], begun[4]


@bare
def sort_rows(rows: Array, which: Array, first: int, last: int) -> None:
    """Rows [first, last) in lexicographic order, then by pattern: Shell's sort, for they are nearly in order."""
    width, tagged = rows.shape[1], len(which) > 0
    step = 1
    while step * 3 < last - first:
        step = step * 3 + 1
    if _in_order(rows, which, first, last):
        return
    while step > 0:
        for i in range(first + step, last):
            j = i
            while j - step >= first and _later(rows, which, j - step, j):
                for column in range(width):
                    kept = rows[j, column]
                    rows[j, column] = rows[j - step, column]
                    rows[j - step, column] = kept
                if tagged:
                    own = which[j]
                    which[j] = which[j - step]
                    which[j - step] = own
                j -= step
        step //= 3


@bare
def _in_order(rows: Array, which: Array, first: int, last: int) -> bool:
    for i in range(first + 1, last):
        if _later(rows, which, i - 1, i):
            return False
    return True


@bare
def _later(rows: Array, which: Array, a: int, b: int) -> bool:
    """Whether row a belongs behind row b."""
    for column in range(rows.shape[1]):
        if rows[a, column] != rows[b, column]:
            return rows[a, column] > rows[b, column]
    return len(which) > 0 and which[a] > which[b]
