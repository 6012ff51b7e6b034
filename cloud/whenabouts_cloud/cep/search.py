"""Searches the child chains for all combinations that an event completes, each exactly once.

The event stands at one position of a variant; the other positives are bound from the first to the last, each over the part
of its chain that agrees with what is bound. Conditions and negations are checked as soon as the positives that they name
are bound. What the search finds goes to `emit`: told, kept waiting, or handed to the refinement of uncertain order.

Two ways with one result: `search_chain` for a chain of points without conditions across events, where no choice is in vain
but for negations; and `search` for everything.
"""

from typing import Any

import numpy as np

from whenabouts_cloud.cep import layout as at
from whenabouts_cloud.cep import program as of
from whenabouts_cloud.cep.conditions import holds
from whenabouts_cloud.cep.hts import LOW, first_from, reach_back
from whenabouts_cloud.cep.infa import may_complete
from whenabouts_cloud.cep.layout import Results, Scratch, State
from whenabouts_cloud.cep.program import Program
from whenabouts_cloud.cep.sealing import gap, is_own, seal, take_pending, violated
from whenabouts_cloud.compiled import Array, bare


def _typed(value: Any, kind: Any = np.int64) -> Any:
    """A constant that is handed to functions: with a type, so that none is compiled once for each value."""
    return kind(value)


TELL, ADD, REMOVE = (
    _typed(0),
    _typed(1),
    _typed(2),
)  # what a search is for: results, or what a late event would change
UNBOUND = -2
# A candidate outside of the kernel: complete, and sealed or told on arrival; asked again because of a negated event that
# came; one that a late event would have added; one that it might have removed, by the negations in its serial.
FIRST, AGAIN, LATE_ADDED, LATE_REMOVED = _typed(0), _typed(1), _typed(2), _typed(3)
NONE, NOT_EAGER = _typed(0), _typed(False, np.bool_)
NO_POSITION = NO_MOMENT = _typed(-1)


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
def search(
    p: Program, state: State, out: Results, s: Scratch, variant: int, position: int, node: int, t: int, t_max: int,
    index: int, goal: int, oldest: int, eager: bool, longest: int, moment: int,
) -> Any:  # fmt: skip
    """All matches in which the event stands at `position`; for REMOVE (position -1) all that it would violate.

    `index` is the event's, for REMOVE its class. Its attributes are at EVENT_PLACE. What a late event would change rests
    only on events that are not older than `oldest`.
    """
    nodes, pool, meta = state.nodes, state.pool, state.meta
    first, count, window = (
        p.variant[variant, of.V_ELEMENT],
        p.variant[variant, of.V_WIDTH],
        p.variant[variant, of.V_WINDOW],
    )
    order = p.variant[variant, of.V_ORDER]
    stretch = reach_back(meta, pool)
    if goal != TELL:
        stretch = max(stretch, t_max - t)
    slack = 0 if order == of.CERTAIN else stretch
    earliest = t - window - slack if position < 0 else (t_max - window if order == of.CERTAIN else t - window - slack)
    reach = t + window if order == of.CERTAIN else t_max + window
    if position < 0:
        earliest, reach = t - window - 2 * stretch, t_max + window + 2 * stretch
    if not may_complete(
        nodes,
        pool,
        node,
        p.element,
        first,
        count,
        position,
        earliest,
        t,
        reach,
        slack,
        t_max if order == of.CERTAIN else t - slack,
        s.num,
    ):
        return at.DONE
    for i in range(count):
        s.num[i, at.S_INDEX] = UNBOUND
    if position >= 0:
        s.num[position, at.S_T], s.num[position, at.S_T_MAX], s.num[position, at.S_INDEX] = t, t_max, index
        for column in range(state.attrs.shape[1]):
            s.attrs[position, column] = s.attrs[at.EVENT_PLACE, column]
        if not _agrees(p, state, s, variant, node, 1 << position, NONE):
            return at.DONE
    level, fresh = NONE, True
    while level >= 0:
        if level == count:
            status = _found(p, state, out, s, variant, node, t, t_max, index, goal, oldest, eager, longest, moment)
            if status != at.DONE:
                return status
            level -= 1
            fresh = False
            continue
        if level == position:
            level += 1 if fresh else -1
            continue
        if fresh:
            low, high = earliest, s.num[level, at.S_BOUND]
            for i in range(count):
                if i < level or i == position:
                    if order == of.CERTAIN:
                        low = max(low, s.num[i, at.S_T_MAX] - window)
                        high = min(high, s.num[i, at.S_T] + window)
                        if p.element[first + level, of.E_BEFORE] >> i & 1:
                            low = max(low, s.num[i, at.S_T_MAX] + 1)
                        elif p.element[first + level, of.E_AFTER] >> i & 1:
                            high = min(high, s.num[i, at.S_T] - 1)
                    else:
                        low = max(low, s.num[i, at.S_T] - window - slack)
                        high = min(high, s.num[i, at.S_T_MAX] + window)
                        if p.element[first + level, of.E_BEFORE] >> i & 1:
                            low = max(low, s.num[i, at.S_T] + 1 - slack)
                        elif p.element[first + level, of.E_AFTER] >> i & 1:
                            high = min(high, s.num[i, at.S_T_MAX] - 1)
            span = nodes[node, at.NODE + at.CHAIN_WORDS * p.element[first + level, of.E_CLASS] + at.RANGE]
            place = first_from(pool, span >> 32, span & LOW, low)
            s.num[level, at.S_AT] = place
            s.num[level, at.S_END] = first_from(pool, place, span & LOW, high + 1)
            fresh = False
        else:
            s.num[level, at.S_AT] += 1
        place = s.num[level, at.S_AT]
        if place >= s.num[level, at.S_END]:
            s.num[level, at.S_INDEX] = UNBOUND
            level -= 1
            continue
        s.num[level, at.S_T], s.num[level, at.S_INDEX] = pool[place, 0], pool[place, 1]
        s.num[level, at.S_T_MAX] = pool[place, 2] if pool.shape[1] == 3 else pool[place, 0]
        if not _fits(p, s, first, count, level, position, window, order, oldest):
            continue
        for column in range(state.attrs.shape[1]):
            s.attrs[level, column] = state.attrs[place, column]
        before = (1 << level) - 1
        if position >= 0:
            before |= 1 << position
        if _agrees(p, state, s, variant, node, before | 1 << level, before):
            level += 1
            fresh = True
    return at.DONE


@bare
def _fits(
    p: Program, s: Scratch, first: int, count: int, level: int, position: int, window: int, order: int, oldest: int
) -> bool:
    """Whether the positive at this level is distinct from the others that are bound, in order, and within the window."""
    t, t_max = s.num[level, at.S_T], s.num[level, at.S_T_MAX]
    if t_max < oldest:
        return False
    for i in range(count):
        if i == level or (i > level and i != position):
            continue
        if s.num[i, at.S_INDEX] == s.num[level, at.S_INDEX]:
            return False
        if order == of.CERTAIN:
            if t_max - s.num[i, at.S_T] > window or s.num[i, at.S_T_MAX] - t > window:
                return False
            if p.element[first + level, of.E_BEFORE] >> i & 1 and s.num[i, at.S_T_MAX] >= t:
                return False
            if p.element[first + level, of.E_AFTER] >> i & 1 and t_max >= s.num[i, at.S_T]:
                return False
        else:
            if t - s.num[i, at.S_T_MAX] > window or s.num[i, at.S_T] - t_max > window:
                return False
            if p.element[first + level, of.E_BEFORE] >> i & 1 and s.num[i, at.S_T] >= t_max:
                return False
            if p.element[first + level, of.E_AFTER] >> i & 1 and t >= s.num[i, at.S_T_MAX]:
                return False
    return True


@bare
def _agrees(p: Program, state: State, s: Scratch, variant: int, node: int, bound: int, before: int) -> bool:
    """Whether the conditions and negations hold that can be decided by what is bound and could not before."""
    for k in range(p.variant[variant, of.V_CONDITION], p.variant[variant, of.V_CONDITION_END]):
        mask = p.condition[k, of.C_MASK]
        if mask & bound != mask or (before != 0 and mask & before == mask):
            continue
        if not holds(p.step, p.step_value, p.condition[k, of.C_FIRST], p.condition[k, of.C_LAST], s):
            return False
    if p.variant[variant, of.V_ORDER] != of.CERTAIN:
        return True
    count = p.variant[variant, of.V_WIDTH]
    for k in range(p.variant[variant, of.V_NEGATION], p.variant[variant, of.V_NEGATION_END]):
        mask = p.negation[k, of.N_MASK]
        if mask & bound != mask or mask & before == mask:
            continue
        if violated(p, state, k, node, count, p.variant[variant, of.V_WINDOW], s):
            return False
    return True


@bare
def _found(
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
