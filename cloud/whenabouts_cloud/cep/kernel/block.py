"""Processing of a block of events in one call of machine code.

For each event, the kernel checks if it is late, inserts it into the chains of its classes, searches for matches that it
completes, retracts matches that it violates (on arrival), then emits the pending matches that are final now. When an array
is full, the kernel returns which one must grow. The next call resumes at the same event and repeats the event's search.
"""

from typing import Any

from whenabouts_cloud.cep.kernel.arguments import Event, Goal, Machine, Setting, Site, alternative_of, plain_of
from whenabouts_cloud.cep.kernel.emit import (
    ANYTHING,
    EMIT,
    FIRST,
    NO_CLASS,
    NO_MOMENT,
    NO_POSITION,
    NONE,
    emit_row,
    offer,
)
from whenabouts_cloud.cep.kernel.finality import bind_pending, free_pending, leave, pop, raise_source, violated
from whenabouts_cloud.cep.kernel.hts import find_or_add, insert, last_of, sweep
from whenabouts_cloud.cep.kernel.infa import Span, chain_completes, remember, uses_in_question
from whenabouts_cloud.cep.kernel.late_events import note_late
from whenabouts_cloud.cep.kernel.layout import (
    DONE,
    EVENT_PLACE,
    META,
    MORE_NODES,
    MORE_POOL,
    NODE,
    PENDING,
    POINT_WIDTH,
    STOPPED,
    TIMER,
    Block,
    State,
)
from whenabouts_cloud.cep.kernel.program import ALTERNATIVE, BITS, CLASS, USE, Program
from whenabouts_cloud.cep.kernel.search import search
from whenabouts_cloud.cep.kernel.search_plain import search_plain
from whenabouts_cloud.cep.kernel.staged import begin_stage, commit, number_rows, retract, sort_rows, undo
from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref, inlined, u

ARRIVED, SEARCHING, FINALITY = 0, 1, 2  # stages of an event
Marker = tuple[int, ...]  # its length is part of its type, so the compiler drops what `if len(marker)` excludes
MANY_USES: Marker = (1,)


@compiled_noref
def feed_block(machine: Machine, block: Block, setting: Setting, many: Marker) -> Any:
    """Processes the events of the block from meta[META.event] on; returns DONE, STOPPED or the array that must grow.

    `many` is MANY_USES if a class has many uses, else (). Each has machine code of its own: deciding many uses takes
    registers, without which all the rest is 1 to 2 % faster.
    """
    program, state, out = machine.program, machine.state, machine.out
    meta = state.meta
    intervals = len(block.t_max) > 0
    span = max(1, (setting.hold + setting.longest + setting.k) >> 2)
    i = meta[META.event]
    while i < len(block.t):
        kind, t = block.type_code[u(i)], block.t[u(i)]
        first, last = program.type_start[u(kind)], program.type_start[u(kind + 1)]
        event = Event(i, meta[META.fed] + i, t, block.t_max[u(i)] if intervals else t, first, last)
        if meta[META.stage] == ARRIVED:
            status = _arrive(machine, block, event, setting, many)
            if status != DONE:
                return status
        if meta[META.stage] == SEARCHING:
            status = _complete(machine, block, event, setting, many)
            if status != DONE:
                undo(state)
                return status
            meta[META.stage] = FINALITY
        if meta[META.heap] > 0 and state.heap[0, TIMER.due] <= meta[META.frontier]:
            status = finalize_due(machine, setting, event.arrival)
            if status != DONE:
                return status
        number_rows(meta, out, machine.scratch.row, event.arrival)
        if len(block.frontier):
            block.frontier[i] = meta[META.frontier]
        meta[META.stage] = ARRIVED
        if meta[META.frontier] - meta[META.swept] >= span:
            clean(state, setting)
        i += 1
        meta[META.event] = i
        if meta[META.stop] != 0:
            return STOPPED
    return DONE


@compiled_noref
def advance(machine: Machine, setting: Setting) -> Any:
    """Emits, without an event, the matches that are final at the frontier; returns DONE or the array that must grow."""
    state, out, meta = machine.state, machine.out, machine.state.meta
    if meta[META.stage] == ARRIVED:
        meta[META.stage] = FINALITY
        meta[META.group] = meta[META.emitted]
    status = finalize_due(machine, setting, NO_MOMENT)
    if status != DONE:
        return status
    for row in range(meta[META.group], meta[META.emitted]):
        out.emitted_at[row] = -1
    sort_rows(out.emitted, out.emitted_which, meta[META.group], meta[META.emitted], machine.scratch.row)
    meta[META.stage] = ARRIVED
    clean(state, setting)
    return DONE


@compiled_inline
def past_of(meta: Array, setting: Setting) -> Any:
    """Time before which events can be evicted: an event with t_max below it can be in no later match."""
    return meta[META.frontier] - 2 * setting.longest - setting.hold


@compiled_noref
def clean(state: State, setting: Setting) -> None:
    """Evicts from all per-key event lists the events that can be in no later match."""
    sweep(state, past_of(state.meta, setting))
    state.meta[META.swept] = state.meta[META.frontier]


@inlined
def _arrive(machine: Machine, block: Block, event: Event, setting: Setting, many: Marker) -> Any:
    """Notes the event as late, or inserts it into the chains of its classes; then raises the frontier."""
    state, meta = machine.state, machine.state.meta
    late = event.t_max < meta[META.frontier] or event.t < meta[META.frontier] - setting.longest
    if late:
        status = note_late(machine, block, event, setting)
        if status != DONE:
            return status
    elif event.first < event.last:
        status = _store(machine.program, state, block, event, past_of(meta, setting), many)
        if status != DONE:
            return status
        if event.t_max - event.t > meta[META.longest]:
            meta[META.longest] = event.t_max - event.t
    _raise_frontier(state, block, event, setting)
    if late or event.first == event.last:
        meta[META.stage] = FINALITY
        meta[META.group], meta[META.retracted_group] = meta[META.emitted], meta[META.retracted]
    else:
        meta[META.stage] = SEARCHING
        begin_stage(meta)
    return DONE


@inlined
def _store(program: Program, state: State, block: Block, event: Event, past: int, many: Marker) -> Any:
    """Inserts the event into the chains of its classes; meta[META.chain] counts the chains that have it."""
    meta = state.meta
    for place in range(event.first + meta[META.chain], event.last):
        c = program.type_class[u(place)]
        if _is_of_class(program, block, c, event.row):
            node = 0
            if program.classes[u(c), CLASS.keyed]:
                node = find_or_add(state.slots, state.nodes, meta, block.key[u(event.row)])
                if node == 0:
                    return MORE_NODES
                meta[META.node] = node
            if not insert(state, node, c, event, block.attrs, past):
                return MORE_POOL
            if len(many) > 0 and program.classes[u(c), CLASS.recent]:
                remember(state.recent, meta, node, event.t, c % BITS)
        meta[META.chain] += 1
    meta[META.chain] = 0
    return DONE


@compiled_inline
def _is_of_class(program: Program, block: Block, c: int, row: int) -> bool:
    """True if an event of a type of the class satisfies the class's condition."""
    true = program.classes[u(c), CLASS.true]
    return bool(true < 0 or block.true[u(true), u(row)])


@compiled_inline
def _raise_frontier(state: State, block: Block, event: Event, setting: Setting) -> None:
    """Raises the frontier by the event's time."""
    meta = state.meta
    if setting.by_source:
        reached = raise_source(state.tree, block.source[event.row], event.t_max)
    else:  # branch-free: half of the branches would be mispredicted
        meta[META.newest] = max(meta[META.newest], event.t_max)
        reached = meta[META.newest] - setting.k
    meta[META.frontier] = max(meta[META.frontier], reached)


@inlined
def _complete(machine: Machine, block: Block, event: Event, setting: Setting, many: Marker) -> Any:
    """Searches for the matches that the event completes in each of its classes, and for those that it retracts."""
    program, state, scratch = machine.program, machine.state, machine.scratch
    for column in range(state.attrs.shape[1]):
        scratch.attrs[EVENT_PLACE, column] = block.attrs[event.row, column]
    for place in range(event.first, event.last):
        c = program.type_class[u(place)]
        if not _is_of_class(program, block, c, event.row):
            continue
        node = state.meta[META.node] if program.classes[u(c), CLASS.keyed] else 0
        status = _complete_class(machine, c, node, event, setting, many)
        if status != DONE:
            return status
        if setting.on_arrival and program.classes[u(c), CLASS.negations] and state.nodes[node, NODE.matches] != 0:
            status = retract(machine, node, c, event)
            if status != DONE:
                return status
    if state.meta[META.staged] >= 0 or state.meta[META.retracted] > state.meta[META.retracted_group]:
        commit(state, machine.out)
    return DONE


@inlined
def _complete_class(machine: Machine, c: int, node: int, event: Event, setting: Setting, marker: Marker) -> Any:
    """Searches each alternative at each position of the class in it, if the automaton finds that it may be complete."""
    program, nodes, pool, found = machine.program, machine.state.nodes, machine.state.pool, machine.scratch.found
    points, plain = pool.shape[1] == POINT_WIDTH, plain_of(machine)
    many = len(marker) > 0 and points and program.classes[u(c), CLASS.many] != 0
    begin = program.classes[u(c), CLASS.use]
    count = program.classes[u(c), CLASS.use_end] - begin
    if many:
        count = uses_in_question(program, machine.state, c, node, event.t, machine.scratch.around, found)
    for i in range(count):
        use = found[u(i)] if many else begin + i
        if points and not many and _lacks_neighbour(program, nodes, node, use, event.t):
            continue
        site = Site(program.uses[u(use), USE.alternative], program.uses[u(use), USE.position], node)
        if points and program.uses[u(use), USE.plain]:
            span = Span(
                program.uses[u(use), USE.element], program.uses[u(use), USE.width], program.uses[u(use), USE.window]
            )
            if not chain_completes(plain, site, span, event.t, many):
                continue
            status = search_plain(plain, site, event.t, event.arrival, setting.longest, setting.on_arrival)
        else:
            status = search(machine, site, event, Goal(EMIT, ANYTHING, NO_CLASS), setting)
        if status != DONE:
            return status
    return DONE


@compiled_inline
def _lacks_neighbour(program: Program, nodes: Array, node: int, use: int, t: int) -> bool:
    """True if the positive just before or just after the event's position has no event on that side of it."""
    after, before = program.uses[u(use), USE.after], program.uses[u(use), USE.before]
    if after >= 0 and last_of(nodes, node, after) <= t:
        return True
    return bool(before >= 0 and last_of(nodes, node, before) < t - program.uses[u(use), USE.window])


@compiled_inline
def finalize_due(machine: Machine, setting: Setting, moment: int) -> Any:
    """Emits or drops the pending matches whose due time the frontier has reached."""
    program, state = machine.program, machine.state
    meta, pending, heap = state.meta, state.pending, state.heap
    while meta[META.heap] > 0 and heap[0, TIMER.due] <= meta[META.frontier]:
        place = heap[0, TIMER.place]
        site = Site(pending[place, PENDING.alternative], NO_POSITION, pending[place, PENDING.node])
        if site.node >= 0 and not setting.on_arrival:
            bind_pending(state, place, program.alternatives[site.alternative, ALTERNATIVE.width], machine.scratch)
            status = _finalize(machine, site, moment)
            if status != DONE:
                return status
        pop(heap, meta)
        if site.node >= 0:
            leave(state, place)
        free_pending(state, place)
    return DONE


@inlined
def _finalize(machine: Machine, site: Site, moment: int) -> Any:
    """Emits the bound pending match unless a negation is violated; the refinement checks matches of uncertain order."""
    program = machine.program
    alternative = alternative_of(program.alternatives, site.alternative)
    if not alternative.refined:
        for k in range(alternative.negation, alternative.negation_end):
            if violated(program, machine.state, machine.scratch, site, k):
                return DONE
    if alternative.decided_outside:
        return offer(machine, site, FIRST, NONE, moment)
    return emit_row(machine, site.alternative)
