"""A block of events through the engine, in one call of machine code.

Each event: late or not, into the chains of its classes, search where it completes something, matches that it violates (on
arrival), then the waiting matches that are sealed now. When an array is full the kernel returns what it wants more of and
is called again: it goes on where it was, the search for that event from its beginning.
"""

from typing import Any

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel import program as of
from whenabouts_cloud.cep.kernel.emit import FIRST, NO_MOMENT, NONE, TELL, offer, tell
from whenabouts_cloud.cep.kernel.finality import bind_pending, free_pending, leave, pop, raise_source, violated
from whenabouts_cloud.cep.kernel.hts import find, find_or_add, insert, sweep
from whenabouts_cloud.cep.kernel.infa import absent, chain_completes
from whenabouts_cloud.cep.kernel.late_events import note_late
from whenabouts_cloud.cep.kernel.layout import Block, Results, Scratch, State
from whenabouts_cloud.cep.kernel.program import Program
from whenabouts_cloud.cep.kernel.row_order import sort_rows
from whenabouts_cloud.cep.kernel.search import search
from whenabouts_cloud.cep.kernel.search_plain import search_plain
from whenabouts_cloud.cep.kernel.staged import begin_stage, commit, retract, undo
from whenabouts_cloud.jit import Array, bare, woven

ARRIVED, SEARCHING, SEALING = 0, 1, 2  # stages of an event
KBOUND, SOURCE = 0, 1


@bare
def feed_block(
    p: Program, state: State, block: Block, out: Results, s: Scratch, eager: bool, by_source: bool, k: int,
    hold: int, longest: int,
) -> Any:  # fmt: skip
    """Takes in the events of the block from meta[AT] on; DONE, or what there must be more of."""
    meta = state.meta
    intervals = len(block.t_max) > 0
    span = max(1, (hold + longest + k) >> 2)
    i = meta[at.AT]
    while i < len(block.t):
        t, index = block.t[i], meta[at.FED] + i
        t_max = block.t_max[i] if intervals else t
        kind = block.type_code[i]
        first, last = p.type_start[kind], p.type_start[kind + 1]
        if meta[at.STAGE] == ARRIVED:
            status = _arrive(p, state, block, out, s, i, first, last, t, t_max, index, by_source, k, hold, longest)
            if status != at.DONE:
                return status
        if meta[at.STAGE] == SEARCHING:
            status = _complete(p, state, block, out, s, i, first, last, t, t_max, index, eager, longest)
            if status != at.DONE:
                undo(state)
                return status
            meta[at.STAGE] = SEALING
        if meta[at.HEAP] > 0 and state.heap[0, 0] <= meta[at.FRONTIER]:
            status = seal_due(p, state, out, s, eager, index)
            if status != at.DONE:
                return status
        _number(meta, out, s, index)
        if len(block.frontier):
            block.frontier[i] = meta[at.FRONTIER]
        meta[at.STAGE] = ARRIVED
        if meta[at.FRONTIER] - meta[at.SWEPT] >= span:
            clean(state, hold, longest)
        i += 1
        meta[at.AT] = i
        if meta[at.STOP] != 0:
            return at.STOPPED
    return at.DONE


@bare
def advance(p: Program, state: State, out: Results, s: Scratch, eager: bool, hold: int, longest: int) -> Any:
    """Tells what is sealed at the frontier as it stands, with no event; DONE, or what there must be more of."""
    meta = state.meta
    if meta[at.STAGE] == ARRIVED:
        meta[at.STAGE] = SEALING
        meta[at.GROUP] = meta[at.TOLD]
    status = seal_due(p, state, out, s, eager, NO_MOMENT)
    if status != at.DONE:
        return status
    for row in range(meta[at.GROUP], meta[at.TOLD]):
        out.told_at[row] = -1
    sort_rows(out.told, out.told_which, meta[at.GROUP], meta[at.TOLD], s.row)
    meta[at.STAGE] = ARRIVED
    clean(state, hold, longest)
    return at.DONE


@bare
def clean(state: State, hold: int, longest: int) -> None:
    """Drops from all main nodes what nothing can join any more."""
    meta = state.meta
    past = meta[at.FRONTIER] - 2 * longest - hold
    sweep(state.slots, state.nodes, state.pool, meta, past, past)
    meta[at.SWEPT] = meta[at.FRONTIER]


@woven
def _arrive(
    p: Program, state: State, block: Block, out: Results, s: Scratch, i: int, first: int, last: int, t: int, t_max: int,
    index: int, by_source: bool, k: int, hold: int, longest: int,
) -> Any:  # fmt: skip
    """Notes the event as late, or puts it into the chains of its classes; then raises the frontier."""
    meta = state.meta
    frontier = meta[at.FRONTIER]
    late = t_max < frontier or t < frontier - longest
    if late:
        status = note_late(p, state, block, out, s, i, t, t_max, index, longest, hold)
        if status != at.DONE:
            return status
    elif first < last:
        past = frontier - 2 * longest - hold
        status = _store(p, state, block, i, t, t_max, index, first, last, past)
        if status != at.DONE:
            return status
        if t_max - t > meta[at.LONGEST]:
            meta[at.LONGEST] = t_max - t
    _promise(state, block, by_source, k, i, t_max)
    if late or first == last:
        meta[at.STAGE] = SEALING
        meta[at.GROUP], meta[at.RETRACTED_GROUP] = meta[at.TOLD], meta[at.RETRACTED]
    else:
        meta[at.STAGE] = SEARCHING
        begin_stage(meta)
    return at.DONE


@woven
def _complete(
    p: Program, state: State, block: Block, out: Results, s: Scratch, i: int, first: int, last: int, t: int, t_max: int,
    index: int, eager: bool, longest: int,
) -> Any:  # fmt: skip
    """Searches what the event completes in each of its classes, and what it takes back."""
    meta, nodes = state.meta, state.nodes
    for column in range(state.attrs.shape[1]):
        s.attrs[at.EVENT_PLACE, column] = block.attrs[i, column]
    for place in range(first, last):
        c = p.type_class[place]
        if p.klass[c, of.K_TRUE] >= 0 and not block.true[p.klass[c, of.K_TRUE], i]:
            continue
        node = find(state.slots, nodes, block.key[i]) if p.klass[c, of.K_KEYED] else 0
        status = _complete_class(p, state, out, s, c, node, t, t_max, index, eager, longest)
        if status != at.DONE:
            return status
        if eager and p.klass[c, of.K_FORBID] and nodes[node, at.MATCHES] != 0:
            status = retract(p, state, out, s, node, c, t, t_max, index)
            if status != at.DONE:
                return status
    if meta[at.STAGED] >= 0 or meta[at.RETRACTED] > meta[at.RETRACTED_GROUP]:
        commit(state, out)
    return at.DONE


@woven
def _complete_class(
    p: Program, state: State, out: Results, s: Scratch, c: int, node: int, t: int, t_max: int, index: int, eager: bool,
    longest: int,
) -> Any:  # fmt: skip
    """Searches each variant at each position that the class has in it, if the automaton says that it may be complete."""
    nodes, pool = state.nodes, state.pool
    points = pool.shape[1] == 2
    many = points and p.klass[c, of.K_MANY] != 0
    use_end, none_before, none_after = p.klass[c, of.K_USE_END], 0, 0
    if many:
        none_before, none_after = absent(nodes, pool, node, t, p.klass[c, of.K_WINDOW])
        if none_after == -1:
            use_end = p.klass[c, of.K_USE_LAST]
    for use in range(p.klass[c, of.K_USE], use_end):
        if many:
            if (p.need[use, 0] & none_before) | (p.need[use, 1] & none_after) != 0:
                continue
        elif points and _lacks_neighbour(p, nodes, node, use, t):
            continue
        variant, position = p.use[use, of.U_VARIANT], p.use[use, of.U_POSITION]
        if points and p.variant[variant, of.V_PLAIN]:
            first, width = p.variant[variant, of.V_ELEMENT], p.variant[variant, of.V_WIDTH]
            window = p.variant[variant, of.V_WINDOW]
            if not chain_completes(nodes, pool, p.element, node, first, width, position, t, window, s.num):
                continue
            status = search_plain(
                p.variant, p.element, p.negation, nodes, pool, state.meta, state.pending, out.told, out.told_which,
                s.num, variant, position, node, t, index, eager, longest,
            )  # fmt: skip
        else:
            status = search(
                p, state, out, s, variant, position, node, t, t_max, index, TELL, at.NEVER, eager, longest, index
            )  # fmt: skip
        if status != at.DONE:
            return status
    return at.DONE


@woven
def _lacks_neighbour(p: Program, nodes: Array, node: int, use: int, t: int) -> bool:
    """Whether the positive next to the event's position, on either side, has no event on that side of it."""
    after, before = p.use[use, of.U_AFTER], p.use[use, of.U_BEFORE]
    if after >= 0 and nodes[node, at.NODE + at.CHAIN_WORDS * after + at.LAST] <= t:
        return True
    if before >= 0:
        latest = nodes[node, at.NODE + at.CHAIN_WORDS * before + at.LAST]
        return bool(latest < t - p.use[use, of.U_WINDOW])
    return False


@woven
def _number(meta: Array, out: Results, s: Scratch, index: int) -> None:
    """Gives what was told and taken back at this event its index, in lexicographic order."""
    if meta[at.TOLD] > meta[at.GROUP]:
        for row in range(meta[at.GROUP], meta[at.TOLD]):
            out.told_at[row] = index
        sort_rows(out.told, out.told_which, meta[at.GROUP], meta[at.TOLD], s.row)
    if meta[at.RETRACTED] > meta[at.RETRACTED_GROUP]:
        for row in range(meta[at.RETRACTED_GROUP], meta[at.RETRACTED]):
            out.retracted_at[row] = index
        sort_rows(out.retracted, out.retracted_which, meta[at.RETRACTED_GROUP], meta[at.RETRACTED], s.row)


@woven
def _promise(state: State, block: Block, by_source: bool, k: int, i: int, t_max: int) -> None:
    """What the event says about those to come."""
    meta = state.meta
    if by_source:
        reached = raise_source(state.tree, block.source[i], t_max)
    else:  # without a branch: half the guesses would be wrong
        meta[at.NEWEST] = max(meta[at.NEWEST], t_max)
        reached = meta[at.NEWEST] - k
    meta[at.FRONTIER] = max(meta[at.FRONTIER], reached)


@woven
def _store(
    p: Program, state: State, block: Block, i: int, t: int, t_max: int, index: int, first: int, last: int, past: int
) -> Any:
    """Puts the event into the chains of its classes; meta[CHAIN] counts those that are done."""
    nodes, pool, attrs, slots, meta = state.nodes, state.pool, state.attrs, state.slots, state.meta
    for place in range(first + meta[at.CHAIN], last):
        c = p.type_class[place]
        if p.klass[c, of.K_TRUE] < 0 or block.true[p.klass[c, of.K_TRUE], i]:
            node = 0
            if p.klass[c, of.K_KEYED]:
                node = find_or_add(slots, nodes, meta, block.key[i])
                if node == 0:
                    return at.MORE_NODES
            if not insert(nodes, pool, attrs, meta, node, c, t, t_max, index, i, block.attrs, past):
                return at.MORE_POOL
        meta[at.CHAIN] += 1
    meta[at.CHAIN] = 0
    return at.DONE


@bare
def seal_due(p: Program, state: State, out: Results, s: Scratch, eager: bool, moment: int) -> Any:
    """Tells, or lets go, the matches whose sealing time the frontier has reached."""
    meta, pending, heap = state.meta, state.pending, state.heap
    while meta[at.HEAP] > 0 and heap[0, 0] <= meta[at.FRONTIER]:
        place = heap[0, 1]
        node = pending[place, at.P_NODE]
        if node >= 0 and not eager:
            variant = pending[place, at.P_VARIANT]
            count = p.variant[variant, of.V_WIDTH]
            bind_pending(state, place, count, s)
            kept = True
            if not p.variant[variant, of.V_REFINED]:
                for k in range(p.variant[variant, of.V_NEGATION], p.variant[variant, of.V_NEGATION_END]):
                    if violated(p, state, k, node, count, p.variant[variant, of.V_WINDOW], s):
                        kept = False
                        break
            if kept and p.variant[variant, of.V_OFFERED]:
                status = offer(p, state, out, s, variant, node, FIRST, NONE, moment)
                if status != at.DONE:
                    return status
            elif kept:
                status = tell(p, out, s, meta, variant)
                if status != at.DONE:
                    return status
        pop(heap, meta)
        if node >= 0:
            leave(state, place)
        free_pending(state, place)
    return at.DONE
