"""Searches the chains of a key for all combinations that an event completes, each exactly once.

The event is at one position of an alternative. The other positives are bound from the first to the last, each over the part
of its chain that agrees with the positives bound so far. Conditions and negations are checked as soon as the positives that
they name are bound. `emit` handles each complete match.

The order is CERTAIN when x.t_max < y.t (x is before y for every choice of times), POSSIBLE when x.t < y.t_max. The second
condition is the first with t and t_max exchanged, and so is the window's. `_heads_and_tails` returns the columns to compare,
so the code below is written once for both.

`search_plain` is the faster search for a chain of points without conditions across events. There, every partial binding can
be completed unless a negation rejects it.
"""

from typing import Any

from whenabouts_cloud.cep.kernel.arguments import (
    Event,
    Goal,
    Machine,
    Setting,
    Site,
    alternative_of,
    negation_of,
    plain_of,
)
from whenabouts_cloud.cep.kernel.conditions import holds
from whenabouts_cloud.cep.kernel.emit import EMIT, NONE, conclude
from whenabouts_cloud.cep.kernel.finality import violated
from whenabouts_cloud.cep.kernel.hts import chain_of, end_of, first_from, reach_back
from whenabouts_cloud.cep.kernel.infa import SearchRange, may_complete
from whenabouts_cloud.cep.kernel.layout import BOUND, DONE, EVENT_PLACE, STORED, State
from whenabouts_cloud.cep.kernel.program import CERTAIN, CONDITION, ELEMENT, AlternativeRow
from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref, inlined

UNBOUND = -2


@compiled_noref
def search(machine: Machine, site: Site, event: Event, goal: Goal, setting: Setting) -> Any:
    """Concludes all matches with the event at the site's position; for REMOVE (position -1) all that it would violate.

    The event's attributes are at EVENT_PLACE. Changes by a late event use only events with t_max >= goal.oldest.
    """
    bound, attrs, position = machine.scratch.bound, machine.scratch.attrs, site.position
    alternative = alternative_of(machine.program.alternatives, site.alternative)
    reach = _reach(machine.state, alternative, position, event, goal)
    if not may_complete(plain_of(machine), site, event.t, reach):
        return DONE
    for i in range(alternative.width):
        bound[i, BOUND.arrival] = UNBOUND
    if position >= 0:
        bound[position, BOUND.t], bound[position, BOUND.t_max] = event.t, event.t_max
        bound[position, BOUND.arrival] = event.arrival
        for column in range(attrs.shape[1]):
            attrs[position, column] = attrs[EVENT_PLACE, column]
        if not _agrees(machine, site, 1 << position, NONE):
            return DONE
    level, descending = NONE, True
    while level >= 0:
        if level == alternative.width:
            status = conclude(machine, site, event, goal, setting)
            if status != DONE:
                return status
            descending = False
        elif level != position:
            if descending:
                _enter(machine, site, alternative, level, reach)
            descending = _bind_next(machine, site, alternative, level, goal.oldest)
        level += 1 if descending else -1
    return DONE


@compiled_inline
def _heads_and_tails(order: int) -> Any:
    """Columns (head, tail) of `BOUND`: x is before y iff x[tail] < y[head]; a span from x to y is y[tail] - x[head]."""
    if order == CERTAIN:
        return BOUND.t, BOUND.t_max
    return BOUND.t_max, BOUND.t


@compiled_inline
def _reach(state: State, alternative: AlternativeRow, position: int, event: Event, goal: Goal) -> SearchRange:
    """Times at which the positives can begin."""
    stretch = reach_back(state.meta, state.pool)
    if goal.kind != EMIT:  # a late event may have a longer stamp than the stored ones
        stretch = max(stretch, event.t_max - event.t)
    certain = alternative.order == CERTAIN
    slack = 0 if certain else stretch
    head, tail = (event.t, event.t_max) if certain else (event.t_max, event.t)
    earliest, latest = tail - alternative.window - slack, head + alternative.window
    if position < 0:
        earliest = event.t - alternative.window - 2 * stretch
        latest = event.t_max + alternative.window + 2 * stretch
    return SearchRange(earliest, latest, slack, tail - slack)


@inlined
def _enter(machine: Machine, site: Site, alternative: AlternativeRow, level: int, reach: SearchRange) -> None:
    """Limits a positive to the part of its chain that the bound positives allow."""
    elements, bound, pool = machine.program.elements, machine.scratch.bound, machine.state.pool
    own, window, slack = alternative.element + level, alternative.window, reach.slack
    head, tail = _heads_and_tails(alternative.order)
    low, high = reach.earliest, bound[level, BOUND.latest]
    for i in range(alternative.width):
        if i < level or i == site.position:
            low = max(low, bound[i, tail] - window - slack)
            high = min(high, bound[i, head] + window)
            if elements[own, ELEMENT.before] >> i & 1:
                low = max(low, bound[i, tail] + 1 - slack)
            elif elements[own, ELEMENT.after] >> i & 1:
                high = min(high, bound[i, head] - 1)
    begin, end = chain_of(machine.state.nodes, site.node, elements[own, ELEMENT.event_class])
    bound[level, BOUND.place] = first_from(pool, begin, end, low)
    bound[level, BOUND.end] = first_from(pool, bound[level, BOUND.place], end, high + 1)


@inlined
def _bind_next(machine: Machine, site: Site, alternative: AlternativeRow, level: int, oldest: int) -> bool:
    """Binds a positive to the next event of its chain that agrees with the bound ones; returns False if there is none."""
    bound, state = machine.scratch.bound, machine.state
    others = (1 << level) - 1
    if site.position >= 0:
        others |= 1 << site.position
    for place in range(bound[level, BOUND.place], bound[level, BOUND.end]):
        bound[level, BOUND.t], bound[level, BOUND.arrival] = (
            state.pool[place, STORED.t],
            state.pool[place, STORED.arrival],
        )
        bound[level, BOUND.t_max] = end_of(state.pool, place)
        if bound[level, BOUND.t_max] < oldest or not _fits(
            machine.program.elements, bound, alternative, level, site.position
        ):
            continue
        for column in range(state.attrs.shape[1]):
            machine.scratch.attrs[level, column] = state.attrs[place, column]
        if _agrees(machine, site, others | 1 << level, others):
            bound[level, BOUND.place] = place + 1
            return True
    bound[level, BOUND.arrival] = UNBOUND
    return False


@compiled_inline
def _fits(elements: Array, bound: Array, alternative: AlternativeRow, level: int, position: int) -> bool:
    """True if the positive at this level is distinct from the other bound ones, in order, and within the window."""
    own = alternative.element + level
    head, tail = _heads_and_tails(alternative.order)
    for i in range(alternative.width):
        if i == level or (i > level and i != position):
            continue
        if bound[i, BOUND.arrival] == bound[level, BOUND.arrival]:
            return False
        if (
            bound[level, tail] - bound[i, head] > alternative.window
            or bound[i, tail] - bound[level, head] > alternative.window
        ):
            return False
        if elements[own, ELEMENT.before] >> i & 1 and bound[i, tail] >= bound[level, head]:
            return False
        if elements[own, ELEMENT.after] >> i & 1 and bound[level, tail] >= bound[i, head]:
            return False
    return True


@compiled_noref
def _agrees(machine: Machine, site: Site, bound: int, before: int) -> bool:
    """True if the conditions and negations hold that the positives in `bound` decide and those in `before` did not."""
    program, scratch = machine.program, machine.scratch
    alternative = alternative_of(program.alternatives, site.alternative)
    for k in range(alternative.condition, alternative.condition_end):
        mask = program.conditions[k, CONDITION.mask]
        if mask & bound != mask or (before != 0 and mask & before == mask):
            continue
        step, step_end = program.conditions[k, CONDITION.step], program.conditions[k, CONDITION.step_end]
        if not holds(program.steps, program.step_values, step, step_end, scratch):
            return False
    if alternative.order != CERTAIN:
        return True
    for k in range(alternative.negation, alternative.negation_end):
        mask = negation_of(program.negations, k).mask
        if mask & bound != mask or mask & before == mask:
            continue
        if violated(program, machine.state, scratch, site, k):
            return False
    return True
