"""Handling of a complete match: emit it, keep it pending, hand it to the refinement, or note it as a late event's change.

Most matches are emitted at once or when they are final. Matches of uncertain order, and those that an after-match skip may
suppress, become candidates: they are decided outside the machine code. A match that a late event would have added or
removed is noted beside the results, provided that all events it depends on are still stored.
"""

from typing import Any

import numpy as np

from whenabouts_cloud.cep.kernel.arguments import Event, Goal, Machine, Setting, Site, alternative_of, negation_of
from whenabouts_cloud.cep.kernel.conditions import holds
from whenabouts_cloud.cep.kernel.finality import due_of, gap, is_own, take_pending
from whenabouts_cloud.cep.kernel.hts import chain_of, end_of, first_from, reach_back
from whenabouts_cloud.cep.kernel.layout import (
    BOUND,
    CANDIDATE,
    CANDIDATE_EVENTS,
    CHANGE,
    CHANGE_INDICES,
    DONE,
    EVENT_PLACE,
    FOREVER,
    META,
    MORE_ADDED,
    MORE_CANDIDATES,
    MORE_EMITTED,
    MORE_NEGATED,
    MORE_PENDING,
    MORE_REMOVED,
    NEGATED_EVENT,
    NEGATED_PLACE,
    NEVER,
    NODE,
    PENDING,
    PENDING_EVENTS,
    STORED,
    Scratch,
    State,
)
from whenabouts_cloud.cep.kernel.program import (
    ALTERNATIVE,
    ELEMENT,
    NEGATION,
    UNORDERED,
    AlternativeRow,
    Negation,
    Program,
)
from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref, inlined


def _typed(value: int) -> Any:
    """A constant with a numba type, so that functions called with it are not compiled once for each value."""
    return np.int64(value)


EMIT, ADD, REMOVE = _typed(0), _typed(1), _typed(2)  # goal of a search: results, or the changes of a late event
# Kinds of candidates: complete, and final or emitted on arrival; checked again after a negated event arrived; one that a
# late event would have added; one that a late event may have removed, by the negations in the candidate's serial.
FIRST, AGAIN, LATE_ADDED, LATE_REMOVED = _typed(0), _typed(1), _typed(2), _typed(3)
NONE = _typed(0)
NO_POSITION = NO_MOMENT = NO_CLASS = _typed(-1)
ANYTHING = _typed(NEVER)  # oldest time of an event that a search may use: no limit


@compiled_noref
def conclude(machine: Machine, site: Site, event: Event, goal: Goal, setting: Setting) -> Any:
    """Emits a complete match, or notes it as one that a late event would have added or removed."""
    program, scratch = machine.program, machine.scratch
    if goal.kind == EMIT:
        return emit(machine, site, setting, event.arrival)
    if not _gaps_held(program, scratch, site.alternative, goal.oldest):
        return DONE
    if goal.kind == ADD:
        if program.alternatives[site.alternative, ALTERNATIVE.refined]:
            return offer(machine, site, LATE_ADDED, NONE, event.arrival)
        return _note(machine, site.alternative, goal.kind)
    if program.alternatives[site.alternative, ALTERNATIVE.refined]:
        asked = forbidding(program, scratch, site.alternative, event, goal.event_class)
        return DONE if asked == 0 else offer(machine, site, LATE_REMOVED, asked, event.arrival)
    if not breaks(program, scratch, site.alternative, event, goal.event_class):
        return DONE
    return _note(machine, site.alternative, goal.kind)


@inlined
def _note(machine: Machine, v: int, kind: int) -> Any:
    """Notes the bound match as one that the late event would have added or removed."""
    program, out, meta = machine.program, machine.out, machine.state.meta
    rows, row, more = (
        (out.added, meta[META.added], MORE_ADDED) if kind == ADD else (out.removed, meta[META.removed], MORE_REMOVED)
    )
    if row >= len(rows):
        return more
    alternative = alternative_of(program.alternatives, v)
    for column in range(rows.shape[1]):
        rows[row, column] = -1
    rows[row, CHANGE.moment], rows[row, CHANGE.pattern] = meta[META.fed] + meta[META.event], alternative.plan
    for i in range(alternative.width):
        column = program.elements[alternative.element + i, ELEMENT.column]
        rows[row, CHANGE_INDICES + column] = machine.scratch.bound[i, BOUND.arrival]
    if kind == ADD:
        meta[META.added] += 1
    else:
        meta[META.removed] += 1
    return DONE


@compiled_noref
def emit(machine: Machine, site: Site, setting: Setting, moment: int) -> Any:
    """Emits the bound match, or keeps it pending, or both."""
    program, state = machine.program, machine.state
    alternative = alternative_of(program.alternatives, site.alternative)
    serial = NONE
    if alternative.negation_end > alternative.negation:
        due = due_of(program, machine.scratch, site.alternative, setting.longest)
        if due > state.meta[META.frontier]:
            if not _keep_pending(state, machine.scratch, site, alternative.width, due):
                return MORE_PENDING
            if not setting.on_arrival:
                return DONE
            serial = state.meta[META.serial]
    if alternative.decided_outside:
        return offer(machine, site, FIRST, serial, moment)
    return emit_row(machine, site.alternative)


@compiled_inline
def _keep_pending(state: State, scratch: Scratch, site: Site, count: int, due: int) -> bool:
    """Keeps the bound match pending; returns False if there is no room."""
    meta, pending = state.meta, state.pending
    place = take_pending(meta, pending)
    if place < 0:
        return False
    meta[META.serial] += 1
    pending[place, PENDING.due], pending[place, PENDING.alternative] = due, site.alternative
    pending[place, PENDING.node], pending[place, PENDING.serial] = site.node, meta[META.serial]
    pending[place, PENDING.next] = meta[META.staged]
    extra = state.attrs.shape[1]
    for i in range(count):
        events = PENDING_EVENTS + 3 * i
        pending[place, events], pending[place, events + 1] = scratch.bound[i, BOUND.t], scratch.bound[i, BOUND.t_max]
        pending[place, events + 2] = scratch.bound[i, BOUND.arrival]
        for column in range(extra):
            state.pending_attrs[place, i * extra + column] = scratch.attrs[i, column]
    meta[META.staged] = place
    return True


@compiled_inline
def emit_row(machine: Machine, v: int) -> Any:
    """Writes the bound match to the results."""
    program, out, meta = machine.program, machine.out, machine.state.meta
    alternative = alternative_of(program.alternatives, v)
    row = meta[META.emitted]
    if row >= len(out.emitted):
        return MORE_EMITTED
    if out.emitted.shape[1] != alternative.width:
        for column in range(out.emitted.shape[1]):
            out.emitted[row, column] = -1
    for i in range(alternative.width):
        column = program.elements[alternative.element + i, ELEMENT.column]
        out.emitted[row, column] = machine.scratch.bound[i, BOUND.arrival]
    if len(out.emitted_which):
        out.emitted_which[row] = alternative.plan
    meta[META.emitted] = row + 1
    return DONE


@compiled_noref
def offer(machine: Machine, site: Site, kind: int, serial: int, moment: int) -> Any:
    """Hands the bound match to the refinement, with the negated events that may lie in its gaps."""
    state, candidates, bound = machine.state, machine.out.candidates, machine.scratch.bound
    alternative = alternative_of(machine.program.alternatives, site.alternative)
    row, filled = state.meta[META.candidates], state.meta[META.negated_events]
    if row >= len(candidates):
        return MORE_CANDIDATES
    candidates[row, CANDIDATE.negated] = filled
    if alternative.refined:
        for k in range(alternative.negation, alternative.negation_end):
            filled = _add_negated(machine, alternative, k, site.node, filled)
            if filled < 0:
                return MORE_NEGATED
    candidates[row, CANDIDATE.moment], candidates[row, CANDIDATE.alternative] = moment, site.alternative
    candidates[row, CANDIDATE.serial], candidates[row, CANDIDATE.kind] = serial, kind
    candidates[row, CANDIDATE.key] = state.nodes[site.node, NODE.key]
    for i in range(alternative.width):
        events = CANDIDATE_EVENTS + 3 * i
        candidates[row, events], candidates[row, events + 1] = bound[i, BOUND.t], bound[i, BOUND.t_max]
        candidates[row, events + 2] = bound[i, BOUND.arrival]
    state.meta[META.candidates], state.meta[META.negated_events] = row + 1, filled
    return DONE


@inlined
def _add_negated(machine: Machine, alternative: AlternativeRow, k: int, node: int, filled: int) -> Any:
    """Adds the events that may lie in the gap of negation k. Returns the number of filled rows, -1 if there is no room."""
    program, state, scratch, rows = machine.program, machine.state, machine.scratch, machine.out.negated
    pool, negation = state.pool, negation_of(program.negations, k)
    a, b = possible_gap(negation, alternative, scratch.bound)
    if alternative.order == UNORDERED:
        a, b = NEVER, FOREVER
    begin, end = chain_of(state.nodes, node, negation.event_class)
    for place in range(first_from(pool, begin, end, a - reach_back(state.meta, pool)), end):
        if pool[place, STORED.t] > b:
            break
        t_max = end_of(pool, place)
        if t_max < a or is_own(scratch.bound, alternative.width, pool[place, STORED.arrival]):
            continue
        if not _forbids(program, state, k, place, t_max, scratch):
            continue
        if filled >= len(rows):
            return -1
        rows[filled, NEGATED_EVENT.negation] = k - alternative.negation
        rows[filled, NEGATED_EVENT.t], rows[filled, NEGATED_EVENT.t_max] = pool[place, STORED.t], t_max
        rows[filled, NEGATED_EVENT.arrival] = pool[place, STORED.arrival]
        filled += 1
    return filled


@compiled_inline
def possible_gap(negation: Negation, alternative: AlternativeRow, bound: Array) -> Any:
    """(a, b): an event can lie in the gap, for some choice of times, only if its t_max >= a and its t <= b."""
    a, b = NEVER, FOREVER
    for i in range(alternative.width):
        if negation.left == 0:
            a = max(a, bound[i, BOUND.t] - alternative.window)
        elif negation.left >> i & 1:
            a = max(a, bound[i, BOUND.t])
        if negation.right == 0:
            b = min(b, bound[i, BOUND.t_max] + alternative.window)
        elif negation.right >> i & 1:
            b = min(b, bound[i, BOUND.t_max])
    return a, b


@compiled_noref
def _forbids(program: Program, state: State, k: int, place: int, t_max: int, scratch: Scratch) -> Any:
    """True if the stored event satisfies the condition of negation k."""
    negation = negation_of(program.negations, k)
    if negation.step == negation.step_end:
        return True
    scratch.bound[NEGATED_PLACE, BOUND.t], scratch.bound[NEGATED_PLACE, BOUND.t_max] = (
        state.pool[place, STORED.t],
        t_max,
    )
    for column in range(state.attrs.shape[1]):
        scratch.attrs[NEGATED_PLACE, column] = state.attrs[place, column]
    return holds(program.steps, program.step_values, negation.step, negation.step_end, scratch)


@compiled_noref
def _gaps_held(program: Program, scratch: Scratch, v: int, oldest: int) -> bool:
    """True if all events that could forbid the bound match are still stored: none of its gaps begins before `oldest`."""
    alternative = alternative_of(program.alternatives, v)
    for k in range(alternative.negation, alternative.negation_end):
        negation = negation_of(program.negations, k)
        if alternative.refined:
            begin, _ = possible_gap(negation, alternative, scratch.bound)
        else:
            begin, _ = gap(negation, alternative, scratch.bound)
        if begin < oldest:
            return False
    return True


@compiled_noref
def forbidding(program: Program, scratch: Scratch, v: int, event: Event, event_class: int) -> int:
    """Negations, as bits, whose class and condition the event satisfies; its attributes are at EVENT_PLACE."""
    scratch.bound[NEGATED_PLACE, BOUND.t], scratch.bound[NEGATED_PLACE, BOUND.t_max] = event.t, event.t_max
    for column in range(scratch.attrs.shape[1]):
        scratch.attrs[NEGATED_PLACE, column] = scratch.attrs[EVENT_PLACE, column]
    alternative, bits = alternative_of(program.alternatives, v), 0
    for k in range(alternative.negation, alternative.negation_end):
        negation = negation_of(program.negations, k)
        if negation.event_class == event_class:
            step, end = negation.step, negation.step_end
            if step == end or holds(program.steps, program.step_values, step, end, scratch):
                bits |= 1 << (k - alternative.negation)
    return bits


@compiled_noref
def breaks(program: Program, scratch: Scratch, v: int, event: Event, event_class: int) -> bool:
    """True if the event, as one of the class, violates the bound match; its attributes are at EVENT_PLACE."""
    asked = forbidding(program, scratch, v, event, event_class)
    alternative = alternative_of(program.alternatives, v)
    for k in range(alternative.negation, alternative.negation_end):
        if asked >> (k - alternative.negation) & 1:
            a, b = gap(negation_of(program.negations, k), alternative, scratch.bound)
            if event.t_max >= a and event.t <= b:
                return True
    return False


@compiled_noref
def negates(program: Program, v: int, c: int) -> bool:
    """True if the alternative forbids events of the class."""
    for k in range(program.alternatives[v, ALTERNATIVE.negation], program.alternatives[v, ALTERNATIVE.negation_end]):
        if program.negations[k, NEGATION.event_class] == c:
            return True
    return False
