"""Searches the child chains for all combinations that an event completes, each exactly once.

The event stands at one position of a variant; the other positives are bound from the first to the last, each over the part
of its chain that agrees with what is bound. Conditions and negations are checked as soon as the positives that they name
are bound. `emit` says what becomes of a match.

`search_plain` does the same for a chain of points without conditions across events, where no choice is in vain but for
negations.
"""

from typing import Any

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel import program as of
from whenabouts_cloud.cep.kernel.conditions import holds
from whenabouts_cloud.cep.kernel.emit import NONE, TELL, conclude
from whenabouts_cloud.cep.kernel.finality import violated
from whenabouts_cloud.cep.kernel.hts import LOW, first_from, reach_back
from whenabouts_cloud.cep.kernel.infa import may_complete
from whenabouts_cloud.cep.kernel.layout import Results, Scratch, State
from whenabouts_cloud.cep.kernel.program import Program
from whenabouts_cloud.jit import bare

UNBOUND = -2


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
            status = conclude(p, state, out, s, variant, node, t, t_max, index, goal, oldest, eager, longest, moment)
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
