"""Searches the child chains for all combinations that an event completes, each exactly once.

The event stands at one position of a variant; the other positives are bound from the first to the last, each over the part of
its chain that agrees with what is bound. Conditions and negations are checked as soon as the positives that they name are
bound. What the search finds goes to `emit`: told, kept waiting, or handed to the refinement of uncertain order.

Two ways with one result: `search_chain` for a chain of points without conditions across events, where no choice is in vain
but for negations; and `search` for everything.
"""

from typing import Any

from whenabouts_cloud.cep.compiled import Array, compiled
from whenabouts_cloud.cep.conditions import holds
from whenabouts_cloud.cep.hts import LOW, first_from, reach_back
from whenabouts_cloud.cep.infa import chain_completes, may_complete
from whenabouts_cloud.cep.layout import (
    ADDED, AT, CANDIDATE, CANDIDATES, KEY, CHAIN_WORDS, DONE, FED, FOREVER, FRONTIER, MORE_ADDED, MORE_CANDIDATES, MORE_NEGATED,
    MORE_PENDING, MORE_REMOVED, MORE_TOLD, NEGATED_EVENTS, NEGATED_PLACE, EVENT_PLACE, NEVER, NODE, P_EVENTS, P_NEXT, P_NODE, P_SEAL,
    P_SERIAL, P_VARIANT, RANGE, REMOVED, SERIAL, STAGED, TOLD, Results, Scratch, State,
)  # fmt: skip
from whenabouts_cloud.cep.program import CERTAIN, UNORDERED, Program
from whenabouts_cloud.cep.sealing import gap, is_own, seal, take_pending, violated

TELL, ADD, REMOVE = 0, 1, 2  # what a search is for: results, or what a late event would have added or removed
UNBOUND = -2
FIRST, AGAIN, LATE = 0, 1, 2  # a candidate for refinement: complete and sealed (or told on arrival), asked again, late


@compiled
def emit(p: Program, state: State, out: Results, s: Scratch, variant: int, node: int, eager: bool, longest: int, moment: int) -> Any:
    """Tells the match that is bound, or lets it wait."""
    meta = state.meta
    count = p.variant_width[variant]
    sealed = True
    if p.negation_start[variant + 1] > p.negation_start[variant]:
        when = seal(p, variant, count, p.variant_window[variant], longest, s)
        sealed = when <= meta[FRONTIER]
        if not sealed:
            place = take_pending(state)
            if place < 0:
                return MORE_PENDING
            pending = state.pending
            pending[place, P_SEAL], pending[place, P_VARIANT], pending[place, P_NODE] = when, variant, node
            meta[SERIAL] += 1
            pending[place, P_SERIAL] = meta[SERIAL]
            extra = state.attrs.shape[1]
            for i in range(count):
                pending[place, P_EVENTS + 3 * i] = s.t[i]
                pending[place, P_EVENTS + 3 * i + 1] = s.t_max[i]
                pending[place, P_EVENTS + 3 * i + 2] = s.index[i]
                for column in range(extra):
                    state.pending_attrs[place, i * extra + column] = s.attrs[i, column]
            pending[place, P_NEXT] = meta[STAGED]
            meta[STAGED] = place
    if sealed or eager:
        if p.variant_offered[variant]:
            serial = meta[SERIAL] if not sealed else 0
            return offer(p, state, out, s, variant, node, FIRST, serial, moment, NEVER)
        return tell(p, out, s, meta, variant)
    return DONE


@compiled
def tell(p: Program, out: Results, s: Scratch, meta: Array, variant: int) -> Any:
    """Writes the match that is bound to the results."""
    row, width = meta[TOLD], out.told.shape[1]
    if row >= len(out.told):
        return MORE_TOLD
    first, count = p.element_start[variant], p.variant_width[variant]
    if width != count:
        for column in range(width):
            out.told[row, column] = -1
    for i in range(count):
        out.told[row, p.element_column[first + i]] = s.index[i]
    if len(out.told_which):
        out.told_which[row] = p.variant_plan[variant]
    meta[TOLD] = row + 1
    return DONE


@compiled
def offer(p: Program, state: State, out: Results, s: Scratch, variant: int, node: int, kind: int, serial: int, moment: int, oldest: int) -> Any:
    """Hands the match that is bound to the refinement, with the negated events that may lie in its gaps."""
    meta, pool = state.meta, state.pool
    count, window = p.variant_width[variant], p.variant_window[variant]
    row = meta[CANDIDATES]
    if row >= len(out.candidates):
        return MORE_CANDIDATES
    filled = meta[NEGATED_EVENTS]
    out.candidates[row, 4] = filled
    behind = p.negation_start[variant + 1] if p.variant_refined[variant] else p.negation_start[variant]
    for k in range(p.negation_start[variant], behind):
        a, b = possible_gap(p.negation_left[k], p.negation_right[k], count, window, s)
        if p.variant_order[variant] == UNORDERED:
            a, b = NEVER, FOREVER
        field = NODE + CHAIN_WORDS * p.negation_class[k] + RANGE
        begin, end = state.nodes[node, field] >> 32, state.nodes[node, field] & LOW
        place = first_from(pool, begin, end, a - reach_back(meta, pool))
        while place < end and pool[place, 0] <= b:
            latest = pool[place, 2] if pool.shape[1] == 3 else pool[place, 0]
            if latest >= a and latest >= oldest and not is_own(count, pool[place, 1], s) and _forbids(p, state, k, place, latest, s):
                if filled >= len(out.negated):
                    return MORE_NEGATED
                out.negated[filled, 0] = k - p.negation_start[variant]
                out.negated[filled, 1], out.negated[filled, 2] = pool[place, 0], latest
                out.negated[filled, 3] = pool[place, 1]
                filled += 1
            place += 1
    out.candidates[row, 0], out.candidates[row, 1], out.candidates[row, 2] = moment, variant, serial
    out.candidates[row, 3], out.candidates[row, 5] = kind, state.nodes[node, KEY]
    for i in range(count):
        out.candidates[row, CANDIDATE + 3 * i], out.candidates[row, CANDIDATE + 1 + 3 * i] = s.t[i], s.t_max[i]
        out.candidates[row, CANDIDATE + 2 + 3 * i] = s.index[i]
    meta[CANDIDATES], meta[NEGATED_EVENTS] = row + 1, filled
    return DONE


@compiled
def possible_gap(left: int, right: int, count: int, window: int, s: Scratch) -> Any:
    """(a, b): an event can lie in the gap in some placement only if its t_max >= a and its t <= b."""
    a, b = NEVER, FOREVER
    for i in range(count):
        if left == 0:
            a = max(a, s.t[i] - window)
        elif left >> i & 1:
            a = max(a, s.t[i])
        if right == 0:
            b = min(b, s.t_max[i] + window)
        elif right >> i & 1:
            b = min(b, s.t_max[i])
    return a, b


@compiled
def _forbids(p: Program, state: State, k: int, place: int, latest: int, s: Scratch) -> Any:
    """Whether the stored event satisfies the condition of negation k."""
    first, last = p.negation_first[k], p.negation_last[k]
    if first == last:
        return True
    s.t[NEGATED_PLACE], s.t_max[NEGATED_PLACE] = state.pool[place, 0], latest
    for column in range(state.attrs.shape[1]):
        s.attrs[NEGATED_PLACE, column] = state.attrs[place, column]
    return holds(p.step_op, p.step_element, p.step_column, p.step_value, first, last, s)


@compiled
def search_chain(
    p: Program, state: State, out: Results, s: Scratch, variant: int, position: int, node: int, t: int, index: int,
    eager: bool, longest: int, moment: int,
) -> Any:  # fmt: skip
    """All matches of a chain of points in which the event stands at `position`."""
    nodes, pool = state.nodes, state.pool
    first, count, window = p.element_start[variant], p.variant_width[variant], p.variant_window[variant]
    begin, end, at = s.bound, s.end, s.at
    if not chain_completes(nodes, pool, node, p.element_class, first, count, position, t, window, begin, end):
        return DONE
    one, behind = p.negation_start[variant], p.negation_start[variant + 1]
    s.t[position], s.t_max[position], s.index[position] = t, t, index
    last = count - 1
    level = 0
    fresh = True  # the level is entered from below
    while level >= 0:
        if level == position:
            if fresh:
                if _chain_violated(p, state, s, node, one, behind, level, count):
                    level -= 1
                    fresh = False
                elif level == last:
                    status = _chain_emit(p, state, out, s, variant, node, eager, longest, moment)
                    if status != DONE:
                        return status
                    level -= 1
                    fresh = False
                else:
                    if position == 0:
                        _reach(nodes, pool, node, p.element_class, first, count, position, t + window, end)
                    level += 1
            else:
                level -= 1
            continue
        if fresh:
            if level == 0:
                place = begin[0]
            else:
                low = nodes[node, NODE + CHAIN_WORDS * p.element_class[first + level] + RANGE] >> 32
                place = first_from(pool, low, end[level], s.t[level - 1] + 1)
        else:
            place = at[level] + 1
        if place >= end[level]:
            level -= 1
            fresh = False
            continue
        at[level] = place
        s.t[level] = pool[place, 0]
        s.t_max[level] = pool[place, 0]
        s.index[level] = pool[place, 1]
        if one < behind and _chain_violated(p, state, s, node, one, behind, level, count):
            level -= 1  # so it is for all later ones: the gap only widens
            fresh = False
            continue
        if level == last:
            status = _chain_emit(p, state, out, s, variant, node, eager, longest, moment)
            if status != DONE:
                return status
            fresh = False
            continue
        if level == 0 and position < last:
            _reach(nodes, pool, node, p.element_class, first, count, position, s.t[0] + window, end)
        level += 1
        fresh = True
    return DONE


@compiled
def _reach(nodes: Any, pool: Any, node: int, classes: Any, first: int, count: int, position: int, latest: int, end: Any) -> None:
    """Where the positives after `position` must end for the last of them to be at `latest` or before."""
    limit = latest
    for i in range(count - 1, position, -1):
        span = nodes[node, NODE + CHAIN_WORDS * classes[first + i] + RANGE]
        low, place = span >> 32, span & LOW
        while place > low and pool[place - 1, 0] > limit:
            place -= 1
        end[i] = place
        limit = pool[place - 1, 0] - 1 if place > low else NEVER


@compiled
def _chain_violated(p: Program, state: State, s: Scratch, node: int, one: int, behind: int, level: int, count: int) -> bool:
    """Whether a negation between the positive at this level and the one before it is violated, the level just bound."""
    for k in range(one, behind):
        right = p.negation_right[k]
        if right == 0 or right & -right != 1 << level or p.negation_left[k] == 0 or p.negation_first[k] != p.negation_last[k]:
            continue
        left = p.negation_left[k]
        lower = NEVER
        for i in range(level):
            if left >> i & 1:
                lower = s.t[i]
        field = NODE + CHAIN_WORDS * p.negation_class[k] + RANGE
        begin, end = state.nodes[node, field] >> 32, state.nodes[node, field] & LOW
        place = first_from(state.pool, begin, end, lower + 1)
        while place < end and state.pool[place, 0] < s.t[level]:
            if not is_own(level + 1, state.pool[place, 1], s):
                return True
            place += 1
    return False


@compiled
def _chain_emit(p: Program, state: State, out: Results, s: Scratch, variant: int, node: int, eager: bool, longest: int, moment: int) -> Any:
    """Checks the negations that need all positives, and tells."""
    for k in range(p.negation_start[variant], p.negation_start[variant + 1]):
        inner = p.negation_left[k] != 0 and p.negation_right[k] != 0
        if not inner or p.negation_first[k] != p.negation_last[k]:
            if violated(p, state, k, node, p.variant_width[variant], p.variant_window[variant], NEVER, s):
                return DONE
    return emit(p, state, out, s, variant, node, eager, longest, moment)


@compiled
def search(
    p: Program, state: State, out: Results, s: Scratch, variant: int, position: int, node: int, t: int, t_max: int,
    index: int, goal: int, oldest: int, eager: bool, longest: int, moment: int,
) -> Any:  # fmt: skip
    """All matches in which the event stands at `position`; for REMOVE (position -1) all that it would violate.

    `index` is the event's, for REMOVE its class. Its attributes are at EVENT_PLACE.
    """
    nodes, pool, meta = state.nodes, state.pool, state.meta
    first, count, window = p.element_start[variant], p.variant_width[variant], p.variant_window[variant]
    order = p.variant_order[variant]
    stretch = reach_back(meta, pool)
    if goal != TELL:
        stretch = max(stretch, t_max - t)
    slack = 0 if order == CERTAIN else stretch
    earliest = t - window - slack if position < 0 else (t_max - window if order == CERTAIN else t - window - slack)
    reach = t + window if order == CERTAIN else t_max + window
    if position < 0:
        earliest, reach = t - window - 2 * stretch, t_max + window + 2 * stretch
    if not may_complete(nodes, pool, node, p.element_class, p.element_after, first, count, position, earliest, t, reach, slack,
        t_max if order == CERTAIN else t - slack, s.bound):
        return DONE
    for i in range(count):
        s.index[i] = UNBOUND
    if position >= 0:
        s.t[position], s.t_max[position], s.index[position] = t, t_max, index
        for column in range(state.attrs.shape[1]):
            s.attrs[position, column] = s.attrs[EVENT_PLACE, column]
        if not _agrees(p, state, s, variant, node, 1 << position, 0, goal, oldest):
            return DONE
    level, fresh = 0, True
    while level >= 0:
        if level == count:
            status = _found(p, state, out, s, variant, node, t, t_max, index, goal, oldest, eager, longest, moment)
            if status != DONE:
                return status
            level -= 1
            fresh = False
            continue
        if level == position:
            level += 1 if fresh else -1
            continue
        if fresh:
            low, high = earliest, s.bound[level]
            for i in range(count):
                if i < level or i == position:
                    if order == CERTAIN:
                        low = max(low, s.t_max[i] - window)
                        high = min(high, s.t[i] + window)
                        if p.element_before[first + level] >> i & 1:
                            low = max(low, s.t_max[i] + 1)
                        elif p.element_after[first + level] >> i & 1:
                            high = min(high, s.t[i] - 1)
                    else:
                        low = max(low, s.t[i] - window - slack)
                        high = min(high, s.t_max[i] + window)
                        if p.element_before[first + level] >> i & 1:
                            low = max(low, s.t[i] + 1 - slack)
                        elif p.element_after[first + level] >> i & 1:
                            high = min(high, s.t_max[i] - 1)
            span = nodes[node, NODE + CHAIN_WORDS * p.element_class[first + level] + RANGE]
            place = first_from(pool, span >> 32, span & LOW, low)
            s.at[level] = place
            s.end[level] = first_from(pool, place, span & LOW, high + 1)
            fresh = False
        else:
            s.at[level] += 1
        place = s.at[level]
        if place >= s.end[level]:
            s.index[level] = UNBOUND
            level -= 1
            continue
        s.t[level], s.index[level] = pool[place, 0], pool[place, 1]
        s.t_max[level] = pool[place, 2] if pool.shape[1] == 3 else pool[place, 0]
        if not _fits(p, s, first, count, level, position, window, order, oldest):
            continue
        for column in range(state.attrs.shape[1]):
            s.attrs[level, column] = state.attrs[place, column]
        before = (1 << level) - 1
        if position >= 0:
            before |= 1 << position
        if _agrees(p, state, s, variant, node, before | 1 << level, before, goal, oldest):
            level += 1
            fresh = True
    return DONE


@compiled
def _fits(p: Program, s: Scratch, first: int, count: int, level: int, position: int, window: int, order: int, oldest: int) -> bool:
    """Whether the positive at this level is distinct from the others that are bound, in order, and within the window."""
    t, t_max = s.t[level], s.t_max[level]
    if t_max < oldest:
        return False
    for i in range(count):
        if i == level or (i > level and i != position):
            continue
        if s.index[i] == s.index[level]:
            return False
        if order == CERTAIN:
            if t_max - s.t[i] > window or s.t_max[i] - t > window:
                return False
            if p.element_before[first + level] >> i & 1 and s.t_max[i] >= t:
                return False
            if p.element_after[first + level] >> i & 1 and t_max >= s.t[i]:
                return False
        else:
            if t - s.t_max[i] > window or s.t[i] - t_max > window:
                return False
            if p.element_before[first + level] >> i & 1 and s.t[i] >= t_max:
                return False
            if p.element_after[first + level] >> i & 1 and t >= s.t_max[i]:
                return False
    return True


@compiled
def _agrees(p: Program, state: State, s: Scratch, variant: int, node: int, bound: int, before: int, goal: int, oldest: int) -> bool:
    """Whether the conditions and negations hold that can be decided by what is bound and could not before."""
    for k in range(p.condition_start[variant], p.condition_start[variant + 1]):
        mask = p.condition_mask[k]
        if mask & bound == mask and (before == 0 or mask & before != mask):
            if not holds(p.step_op, p.step_element, p.step_column, p.step_value, p.condition_first[k], p.condition_last[k], s):
                return False
    if p.variant_order[variant] != CERTAIN:
        return True
    count = p.variant_width[variant]
    for k in range(p.negation_start[variant], p.negation_start[variant + 1]):
        mask = p.negation_mask[k]
        if mask & bound == mask and mask & before != mask:
            if violated(p, state, k, node, count, p.variant_window[variant], oldest, s):
                return False
    return True


@compiled
def _found(
    p: Program, state: State, out: Results, s: Scratch, variant: int, node: int, t: int, t_max: int, index: int,
    goal: int, oldest: int, eager: bool, longest: int, moment: int,
) -> Any:  # fmt: skip
    """What is done with a complete match."""
    meta = state.meta
    if goal == TELL:
        return emit(p, state, out, s, variant, node, eager, longest, moment)
    if p.variant_refined[variant]:
        return offer(p, state, out, s, variant, node, LATE, 0, moment, oldest) if goal == ADD else DONE
    rows, row, more = (out.added, meta[ADDED], MORE_ADDED) if goal == ADD else (out.removed, meta[REMOVED], MORE_REMOVED)
    if goal == REMOVE and not breaks(p, s, variant, t, t_max, index, state.attrs.shape[1]):
        return DONE
    if row >= len(rows):
        return more
    first, count = p.element_start[variant], p.variant_width[variant]
    for column in range(rows.shape[1]):
        rows[row, column] = -1
    rows[row, 0], rows[row, 1] = meta[FED] + meta[AT], p.variant_plan[variant]
    for i in range(count):
        rows[row, 2 + p.element_column[first + i]] = s.index[i]
    if goal == ADD:
        meta[ADDED] += 1
    else:
        meta[REMOVED] += 1
    return DONE


@compiled
def breaks(p: Program, s: Scratch, variant: int, t: int, t_max: int, event_class: int, extra: int) -> bool:
    """Whether an event of a class, whose attributes are at EVENT_PLACE, violates the match that is bound."""
    s.t[NEGATED_PLACE], s.t_max[NEGATED_PLACE] = t, t_max
    for column in range(extra):
        s.attrs[NEGATED_PLACE, column] = s.attrs[EVENT_PLACE, column]
    count, window = p.variant_width[variant], p.variant_window[variant]
    for k in range(p.negation_start[variant], p.negation_start[variant + 1]):
        if p.negation_class[k] != event_class:
            continue
        a, b = gap(p.negation_left[k], p.negation_right[k], count, window, s)
        if t_max < a or t > b:
            continue
        first, last = p.negation_first[k], p.negation_last[k]
        if first == last or holds(p.step_op, p.step_element, p.step_column, p.step_value, first, last, s):
            return True
    return False
