"""What becomes of a match that the search has bound: told, kept waiting, handed to the refinement, or noted as late.

Most are told at once or when they are sealed. Those of uncertain order, and those that an after-match skip may hold back,
are candidates, decided outside of the machine code. What a late event would have added or removed is noted beside the
results, if all is still held that it rests on.
"""

from typing import Any

import numpy as np

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel import program as of
from whenabouts_cloud.cep.kernel.conditions import holds
from whenabouts_cloud.cep.kernel.finality import gap, is_own, seal, take_pending
from whenabouts_cloud.cep.kernel.hts import LOW, first_from, reach_back
from whenabouts_cloud.cep.kernel.layout import Results, Scratch, State
from whenabouts_cloud.cep.kernel.program import Program
from whenabouts_cloud.jit import Array, bare


def _typed(value: Any, kind: Any = np.int64) -> Any:
    """A constant that is handed to functions: with a type, so that none is compiled once for each value."""
    return kind(value)


TELL, ADD, REMOVE = _typed(0), _typed(1), _typed(2)  # what a search is for: results, or what a late event would change
# A candidate outside of the kernel: complete, and sealed or told on arrival; asked again because of a negated event that
# came; one that a late event would have added; one that it might have removed, by the negations in its serial.
FIRST, AGAIN, LATE_ADDED, LATE_REMOVED = _typed(0), _typed(1), _typed(2), _typed(3)
NONE, NOT_EAGER = _typed(0), _typed(False, np.bool_)
NO_POSITION = NO_MOMENT = _typed(-1)


@bare
def conclude(
    p: Program, state: State, out: Results, s: Scratch, variant: int, node: int, t: int, t_max: int, index: int,
    goal: int, oldest: int, eager: bool, longest: int, moment: int,
) -> Any:  # fmt: skip
    """What is done with a complete match."""
    meta = state.meta
    if goal == TELL:
        return emit(p, state, out, s, variant, node, eager, longest, moment)
    if not _gaps_held(p, s, variant, oldest):
        return at.DONE
    if p.variant[variant, of.V_REFINED]:
        if goal == ADD:
            return offer(p, state, out, s, variant, node, LATE_ADDED, NONE, moment)
        asked = forbidding(p, s, variant, t, t_max, index, state.attrs.shape[1])
        return at.DONE if asked == 0 else offer(p, state, out, s, variant, node, LATE_REMOVED, asked, moment)
    rows, row, more = (
        (out.added, meta[at.ADDED], at.MORE_ADDED) if goal == ADD else (out.removed, meta[at.REMOVED], at.MORE_REMOVED)
    )
    if goal == REMOVE and not breaks(p, s, variant, t, t_max, index, state.attrs.shape[1]):
        return at.DONE
    if row >= len(rows):
        return more
    first, count = p.variant[variant, of.V_ELEMENT], p.variant[variant, of.V_WIDTH]
    for column in range(rows.shape[1]):
        rows[row, column] = -1
    rows[row, 0], rows[row, 1] = meta[at.FED] + meta[at.AT], p.variant[variant, of.V_PLAN]
    for i in range(count):
        rows[row, 2 + p.element[first + i, of.E_COLUMN]] = s.num[i, at.S_INDEX]
    if goal == ADD:
        meta[at.ADDED] += 1
    else:
        meta[at.REMOVED] += 1
    return at.DONE


@bare
def emit(
    p: Program, state: State, out: Results, s: Scratch, variant: int, node: int, eager: bool, longest: int, moment: int
) -> Any:
    """Tells the match that is bound, or lets it wait."""
    meta = state.meta
    count = p.variant[variant, of.V_WIDTH]
    sealed = True
    if p.variant[variant, of.V_NEGATION_END] > p.variant[variant, of.V_NEGATION]:
        when = seal(p, variant, count, p.variant[variant, of.V_WINDOW], longest, s)
        sealed = when <= meta[at.FRONTIER]
        if not sealed:
            place = take_pending(state)
            if place < 0:
                return at.MORE_PENDING
            pending = state.pending
            pending[place, at.P_SEAL], pending[place, at.P_VARIANT], pending[place, at.P_NODE] = when, variant, node
            meta[at.SERIAL] += 1
            pending[place, at.P_SERIAL] = meta[at.SERIAL]
            extra = state.attrs.shape[1]
            for i in range(count):
                pending[place, at.P_EVENTS + 3 * i] = s.num[i, at.S_T]
                pending[place, at.P_EVENTS + 3 * i + 1] = s.num[i, at.S_T_MAX]
                pending[place, at.P_EVENTS + 3 * i + 2] = s.num[i, at.S_INDEX]
                for column in range(extra):
                    state.pending_attrs[place, i * extra + column] = s.attrs[i, column]
            pending[place, at.P_NEXT] = meta[at.STAGED]
            meta[at.STAGED] = place
    if sealed or eager:
        if p.variant[variant, of.V_OFFERED]:
            serial = meta[at.SERIAL] if not sealed else NONE
            return offer(p, state, out, s, variant, node, FIRST, serial, moment)
        return tell(p, out, s, meta, variant)
    return at.DONE


@bare
def tell(p: Program, out: Results, s: Scratch, meta: Array, variant: int) -> Any:
    """Writes the match that is bound to the results."""
    row, width = meta[at.TOLD], out.told.shape[1]
    if row >= len(out.told):
        return at.MORE_TOLD
    first, count = p.variant[variant, of.V_ELEMENT], p.variant[variant, of.V_WIDTH]
    if width != count:
        for column in range(width):
            out.told[row, column] = -1
    for i in range(count):
        out.told[row, p.element[first + i, of.E_COLUMN]] = s.num[i, at.S_INDEX]
    if len(out.told_which):
        out.told_which[row] = p.variant[variant, of.V_PLAN]
    meta[at.TOLD] = row + 1
    return at.DONE


@bare
def offer(
    p: Program,
    state: State,
    out: Results,
    s: Scratch,
    variant: int,
    node: int,
    kind: int,
    serial: int,
    moment: int,
) -> Any:
    """Hands the match that is bound to the refinement, with the negated events that may lie in its gaps."""
    meta, pool = state.meta, state.pool
    count, window = p.variant[variant, of.V_WIDTH], p.variant[variant, of.V_WINDOW]
    row = meta[at.CANDIDATES]
    if row >= len(out.candidates):
        return at.MORE_CANDIDATES
    filled = meta[at.NEGATED_EVENTS]
    out.candidates[row, 4] = filled
    behind = (
        p.variant[variant, of.V_NEGATION_END] if p.variant[variant, of.V_REFINED] else p.variant[variant, of.V_NEGATION]
    )
    for k in range(p.variant[variant, of.V_NEGATION], behind):
        a, b = possible_gap(p.negation[k, of.N_LEFT], p.negation[k, of.N_RIGHT], count, window, s)
        if p.variant[variant, of.V_ORDER] == of.UNORDERED:
            a, b = at.NEVER, at.FOREVER
        field = at.NODE + at.CHAIN_WORDS * p.negation[k, of.N_CLASS] + at.RANGE
        begin, end = state.nodes[node, field] >> 32, state.nodes[node, field] & LOW
        place = first_from(pool, begin, end, a - reach_back(meta, pool))
        while place < end and pool[place, 0] <= b:
            latest = pool[place, 2] if pool.shape[1] == 3 else pool[place, 0]
            if latest >= a and not is_own(count, pool[place, 1], s) and _forbids(p, state, k, place, latest, s):
                if filled >= len(out.negated):
                    return at.MORE_NEGATED
                out.negated[filled, 0] = k - p.variant[variant, of.V_NEGATION]
                out.negated[filled, 1], out.negated[filled, 2] = pool[place, 0], latest
                out.negated[filled, 3] = pool[place, 1]
                filled += 1
            place += 1
    out.candidates[row, 0], out.candidates[row, 1], out.candidates[row, 2] = moment, variant, serial
    out.candidates[row, 3], out.candidates[row, 5] = kind, state.nodes[node, at.KEY]
    for i in range(count):
        out.candidates[row, at.CANDIDATE + 3 * i], out.candidates[row, at.CANDIDATE + 1 + 3 * i] = (
            s.num[i, at.S_T],
            s.num[i, at.S_T_MAX],
        )
        out.candidates[row, at.CANDIDATE + 2 + 3 * i] = s.num[i, at.S_INDEX]
    meta[at.CANDIDATES], meta[at.NEGATED_EVENTS] = row + 1, filled
    return at.DONE


@bare
def possible_gap(left: int, right: int, count: int, window: int, s: Scratch) -> Any:
    """(a, b): an event can lie in the gap in some placement only if its t_max >= a and its t <= b."""
    a, b = at.NEVER, at.FOREVER
    for i in range(count):
        if left == 0:
            a = max(a, s.num[i, at.S_T] - window)
        elif left >> i & 1:
            a = max(a, s.num[i, at.S_T])
        if right == 0:
            b = min(b, s.num[i, at.S_T_MAX] + window)
        elif right >> i & 1:
            b = min(b, s.num[i, at.S_T_MAX])
    return a, b


@bare
def _forbids(p: Program, state: State, k: int, place: int, latest: int, s: Scratch) -> Any:
    """Whether the stored event satisfies the condition of negation k."""
    first, last = p.negation[k, of.N_FIRST], p.negation[k, of.N_LAST]
    if first == last:
        return True
    s.num[at.NEGATED_PLACE, at.S_T], s.num[at.NEGATED_PLACE, at.S_T_MAX] = state.pool[place, 0], latest
    for column in range(state.attrs.shape[1]):
        s.attrs[at.NEGATED_PLACE, column] = state.attrs[place, column]
    return holds(p.step, p.step_value, first, last, s)


@bare
def _gaps_held(p: Program, s: Scratch, variant: int, oldest: int) -> bool:
    """Whether all that could forbid the match that is bound is still held: no gap of it begins before `oldest`."""
    count, window = p.variant[variant, of.V_WIDTH], p.variant[variant, of.V_WINDOW]
    for k in range(p.variant[variant, of.V_NEGATION], p.variant[variant, of.V_NEGATION_END]):
        left, right = p.negation[k, of.N_LEFT], p.negation[k, of.N_RIGHT]
        if p.variant[variant, of.V_REFINED]:
            begin, _ = possible_gap(left, right, count, window, s)
        else:
            begin, _ = gap(left, right, count, window, s)
        if begin < oldest:
            return False
    return True


@bare
def forbidding(p: Program, s: Scratch, variant: int, t: int, t_max: int, event_class: int, extra: int) -> int:
    """The negations, as bits, whose class and condition an event satisfies; its attributes are at EVENT_PLACE."""
    s.num[at.NEGATED_PLACE, at.S_T], s.num[at.NEGATED_PLACE, at.S_T_MAX] = t, t_max
    for column in range(extra):
        s.attrs[at.NEGATED_PLACE, column] = s.attrs[at.EVENT_PLACE, column]
    begun, found = p.variant[variant, of.V_NEGATION], 0
    for k in range(begun, p.variant[variant, of.V_NEGATION_END]):
        if p.negation[k, of.N_CLASS] == event_class:
            first, last = p.negation[k, of.N_FIRST], p.negation[k, of.N_LAST]
            if first == last or holds(p.step, p.step_value, first, last, s):
                found |= 1 << (k - begun)
    return found


@bare
def breaks(p: Program, s: Scratch, variant: int, t: int, t_max: int, event_class: int, extra: int) -> bool:
    """Whether an event of a class, whose attributes are at EVENT_PLACE, violates the match that is bound."""
    asked = forbidding(p, s, variant, t, t_max, event_class, extra)
    count, window = p.variant[variant, of.V_WIDTH], p.variant[variant, of.V_WINDOW]
    begun = p.variant[variant, of.V_NEGATION]
    for k in range(begun, p.variant[variant, of.V_NEGATION_END]):
        if asked >> (k - begun) & 1:
            a, b = gap(p.negation[k, of.N_LEFT], p.negation[k, of.N_RIGHT], count, window, s)
            if t_max >= a and t <= b:
                return True
    return False


@bare
def negates(p: Program, variant: int, c: int) -> bool:
    """Whether the variant forbids events of the class."""
    for k in range(p.variant[variant, of.V_NEGATION], p.variant[variant, of.V_NEGATION_END]):
        if p.negation[k, of.N_CLASS] == c:
            return True
    return False
