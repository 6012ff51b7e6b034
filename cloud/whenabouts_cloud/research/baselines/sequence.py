"""A sequence of event classes as arrays, and its construction from the stacks through a new event.

Places before the event are chosen backward from it, then those after it forward. Construction starts only if every other
place has an event on the right side of its neighbour; a negation is checked as soon as both of its neighbours are chosen.
Cost: proportional to the number of partial sequences, a binary search each.
"""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.layout import NEVER
from whenabouts_cloud.jit import Array, columns, compiled
from whenabouts_cloud.pattern.plan import Plan
from whenabouts_cloud.research.baselines.stacks import BOUNDS, EVENT, Stacks, at_or_after, doubled, number_of

CURSOR, FIRST, LAST, TIME, INDEX, END = range(6)  # columns of a place while sequences are constructed

SCRATCH = 6


class ChainLimits(NamedTuple):
    """Numbers of a sequence. A strict window of w is an inclusive one of w - 1, since time is whole."""

    window: int
    classes: int


LIMIT = columns(ChainLimits)


class Chain(NamedTuple):
    """A sequence as arrays: the class of each place, and for each negation its class and the place to its left.

    A negation before the first place has -1 there, one after the last place has the last. `when[place, negation]` is the
    step at which all places that the negation needs are chosen, starting from `place`. `limits` are those of
    `ChainLimits`. The classes of type c are `type_class[first[c]:first[c + 1]]`.
    """

    place: Array
    negated: Array
    left: Array
    when: Array
    first: Array
    type_class: Array
    limits: Array


def chain_of(plan: Plan, type_count: int) -> Chain:
    """Return the arrays of a plan that is one sequence of points.

    Raises:
        ValueError: the plan needs more than these methods support; the text names it.
    """
    if len(plan.alternatives) != 1 or not plan.alternatives[0].is_chain:
        raise _refused("found alternatives, repetition or parts without an order", "one SEQ of events")
    alternative = plan.alternatives[0]
    n = len(alternative.classes)
    if alternative.columns != tuple(range(n)) or plan.width != n:
        raise _refused(f"found a match of {plan.width} places for {n} events", "a place for each event")
    if (
        alternative.conditions
        or any(c.condition for c in plan.classes)
        or any(x.condition for x in alternative.negations)
    ):
        raise _refused("found a condition (WHERE)", "event types only")
    if plan.mode != "certain" or plan.skip != "none":
        raise _refused(f"found mode {plan.mode}, skip {plan.skip}", "mode certain without a skip")
    used = sorted({*alternative.classes, *(x.event_class for x in alternative.negations)})
    left = []
    for negation in alternative.negations:
        after, before = negation.left.bit_length() - 1, n
        if negation.right:
            before = (negation.right & -negation.right).bit_length() - 1
        if before != after + 1:
            raise _refused("found a negation over more than one gap", "one between two neighbours or at an end")
        left.append(after)
    classes_of = [[used.index(c) for c in used if code in plan.classes[c].types] for code in range(type_count)]
    return Chain(
        np.array([used.index(c) for c in alternative.classes], np.int64),
        np.array([used.index(x.event_class) for x in alternative.negations], np.int64),
        np.array(left, np.int64),
        _steps(left, n),
        np.cumsum([0, *map(len, classes_of)]).astype(np.int64),
        np.array([c for row in classes_of for c in row], np.int64),
        np.array(ChainLimits(plan.window - plan.strict_window, len(used)), np.int64),
    )


def _steps(left: list[int], n: int) -> Array:
    """Steps from `place` down to 0, then up to the last; a negation at an end needs both the first and the last place."""
    table = np.zeros((n, len(left)), np.int64)
    for place in range(n):
        for m, after in enumerate(left):
            needed = (0, n - 1) if after in (-1, n - 1) else (after, after + 1)
            table[place, m] = max(place - q if q <= place else q for q in needed)
    return table


def _refused(problem: str, expected: str) -> ValueError:
    return ValueError(f"pattern: {problem}, expected {expected} for a baseline; use method infa_hts for the rest")


@compiled
def _limits(left: int, last: int, window: int, t_first: int, t_last: int, t_left: int, t_right: int) -> tuple[int, int]:
    """[low, high) of a negation after place `left`, where t_left and t_right are its neighbours' times."""
    if left < 0:
        return t_last - window, t_first
    if left == last:
        return t_last + 1, t_first + window + 1
    return t_left + 1, t_right


@compiled
def gap(chain: Chain, negation: int, t: Array) -> tuple[int, int]:
    """[low, high) in which the negation forbids its class, for the times of all places."""
    left, last = chain.left[negation], len(chain.place) - 1
    return _limits(left, last, chain.limits[LIMIT.window], t[0], t[last], t[max(left, 0)], t[min(left + 1, last)])


@compiled
def finality_time(chain: Chain, t: Array) -> int:
    """The least frontier at which no future event can violate the match, NEVER without a negation."""
    when = NEVER
    for n in range(len(chain.left)):
        when = max(when, gap(chain, n, t)[1])
    return when


@compiled
def _within(pool: Array, first: int, last: int, low: int, high: int) -> bool:
    """True if pool[first:last] has a time in [low, high)."""
    at = at_or_after(pool, first, last, low)
    return bool(at < last and pool[at, EVENT.t] < high)


@compiled
def any_violated(chain: Chain, stacks: Stacks, key: int, t: Array) -> bool:
    """True if an event in the stacks of the key violates any negation."""
    number = number_of(stacks, key)
    if number >= 0:
        for n in range(len(chain.left)):
            low, high = gap(chain, n, t)
            stack = number * chain.limits[LIMIT.classes] + chain.negated[n]
            if _within(stacks.pool, stacks.bounds[stack, BOUNDS.first], stacks.bounds[stack, BOUNDS.last], low, high):
                return True
    return False


@compiled
def _reachable(pool: Array, work: Array, place: int, t: int, window: int) -> bool:
    """True if every place can be filled within the window, ignoring negations. Sets END: events beyond it lead to no match.
    For a place before the event, END is the least time with room for all before it; after the event, the greatest.
    """
    near = t - window - 1
    for q in range(place):
        at = at_or_after(pool, work[q, FIRST], work[q, LAST], near + 1)
        if at == work[q, LAST]:
            return False
        near = pool[at, EVENT.t]
        if near >= t:
            return False
        work[q, END] = near
    near = t + window + 1
    for q in range(len(work) - 1, place, -1):
        at = at_or_after(pool, work[q, FIRST], work[q, LAST], near) - 1
        if at < work[q, FIRST]:
            return False
        near = pool[at, EVENT.t]
        if near <= t:
            return False
        work[q, END] = near
    return True


@compiled
def construct(
    chain: Chain, stacks: Stacks, number: int, place: int, event: tuple[int, int], rows: Array, count: int, work: Array
) -> tuple[Array, int]:
    """Append to `rows` every sequence with this event (t, index) in this place that no stored event violates.

    A row holds the times of all places, then the indices; `work` is scratch space (places, SCRATCH). Returns the rows, which
    may have moved, and their count. Everything that the loop reads is in locals or in `work`: slicing arrays costs
    more than the search itself.
    """
    t, index = event
    window, base = chain.limits[LIMIT.window], number * chain.limits[LIMIT.classes]
    places, last = len(chain.place), len(chain.place) - 1
    pool, bounds, left, when, negated = stacks.pool, stacks.bounds, chain.left, chain.when, chain.negated
    for chosen in range(places):
        stack = base + chain.place[chosen]
        work[chosen, FIRST], work[chosen, LAST] = bounds[stack, BOUNDS.first], bounds[stack, BOUNDS.last]
    if window < 0 or not _reachable(pool, work, place, t, window):
        return rows, count
    work[place, TIME], work[place, INDEX] = t, index
    # Places are chosen in steps: from `place` down to 0, then up to the last.
    # `forward` is True while the chosen place has an event to try.
    step, chosen, forward = 0, place, True
    while True:
        if forward:
            for negation in range(len(left)):
                if when[place, negation] == step:
                    low, high = _limits(
                        left[negation], last, window, work[0, TIME], work[last, TIME], work[max(left[negation], 0), TIME],
                        work[min(left[negation] + 1, last), TIME],
                    )  # fmt: skip
                    stack = base + negated[negation]
                    first, end = bounds[stack, BOUNDS.first], bounds[stack, BOUNDS.last]
                    forward = forward and not _within(pool, first, end, low, high)
        if forward and step == last:
            if count + 1 == len(rows):
                rows = doubled(rows)
            for filled in range(places):
                rows[count, filled], rows[count, places + filled] = work[filled, TIME], work[filled, INDEX]
            count += 1
        elif forward:
            step += 1
            chosen = place - step if step <= place else step
            first, end = work[chosen, FIRST], work[chosen, LAST]
            if chosen < place:
                work[chosen, CURSOR] = at_or_after(pool, first, end, work[chosen + 1, TIME])
            else:
                work[chosen, CURSOR] = at_or_after(pool, first, end, work[chosen - 1, TIME] + 1) - 1
        if step == 0:
            return rows, count
        if chosen < place:
            entry = work[chosen, CURSOR] - 1
            forward = entry >= work[chosen, FIRST] and pool[entry, EVENT.t] >= work[chosen, END]
        else:
            entry = work[chosen, CURSOR] + 1
            latest = min(work[chosen, END], work[0, TIME] + window)
            forward = entry < work[chosen, LAST] and pool[entry, EVENT.t] <= latest
        work[chosen, CURSOR] = entry
        if forward:
            work[chosen, TIME], work[chosen, INDEX] = pool[entry, EVENT.t], pool[entry, EVENT.arrival]
        else:
            step -= 1
            chosen = place - step if step <= place else step
