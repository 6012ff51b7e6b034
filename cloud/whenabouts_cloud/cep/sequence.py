"""A sequence of event classes as arrays, and its construction from the stacks through an event that has come.

Places before the event are chosen backward from it, then those after it forward. Construction starts only if every other
place has an event on the right side of its neighbour; a negation is looked at as soon as both of its neighbours are chosen.
Cost: proportional to the partial sequences that exist, a binary search each.
"""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.plan import Plan
from whenabouts_cloud.cep.stacks import LOWEST, Array, Stacks, at_or_after, compiled, doubled, number_of


class Chain(NamedTuple):
    """A sequence as arrays: the class of each place, and for each negation its class and the place to its left.

    A negation before the first place has -1, one after the last the last. `limits` are (window, number of classes); a strict
    window of w is an inclusive one of w - 1, since time is whole. The classes of type c are `of[first[c]:first[c + 1]]`.
    """

    place: Array
    negated: Array
    left: Array
    first: Array
    of: Array
    limits: Array


def chain_of(plan: Plan, type_count: int) -> Chain:
    """The arrays of a plan that is one sequence of points.

    Raises:
        ValueError: the plan is more than these methods can do; the text says what.
    """
    if len(plan.variants) != 1 or not plan.variants[0].is_chain:
        raise _refused("found alternatives, repetition or parts without an order", "one SEQ of events")
    variant = plan.variants[0]
    n = len(variant.classes)
    if variant.columns != tuple(range(n)) or plan.width != n:
        raise _refused(f"found a match of {plan.width} places for {n} events", "a place for each event")
    if variant.conditions or any(c.condition for c in plan.classes) or any(x.condition for x in variant.negations):
        raise _refused("found a condition (WHERE)", "types alone")
    if plan.mode != "certain" or plan.skip != "none":
        raise _refused(f"found mode {plan.mode}, skip {plan.skip}", "mode certain without a skip")
    used = sorted({*variant.classes, *(x.event_class for x in variant.negations)})
    left = []
    for negation in variant.negations:
        after, before = negation.left.bit_length() - 1, n
        if negation.right:
            before = (negation.right & -negation.right).bit_length() - 1
        if before != after + 1:
            raise _refused("found a negation over more than one gap", "one between two neighbours or at an end")
        left.append(after)
    of = [[used.index(c) for c in used if code in plan.classes[c].types] for code in range(type_count)]
    return Chain(
        np.array([used.index(c) for c in variant.classes], np.int64),
        np.array([used.index(x.event_class) for x in variant.negations], np.int64),
        np.array(left, np.int64),
        np.cumsum([0, *map(len, of)]).astype(np.int64),
        np.array([c for row in of for c in row], np.int64),
        np.array([plan.window - plan.strict_window, len(used)], np.int64),
    )


def _refused(found: str, expected: str) -> ValueError:
    return ValueError(f"pattern: {found}, expected {expected} for a compared method; use method infa_hts for the rest")


@compiled
def gap(chain: Chain, negation: int, t: Array) -> tuple[int, int]:
    """[low, high) in which the negation forbids its class, for the times of all places (those that it needs)."""
    left, last, window = chain.left[negation], len(chain.place) - 1, chain.limits[0]
    if left < 0:
        return t[last] - window, t[0]
    if left == last:
        return t[last] + 1, t[0] + window + 1
    return t[left] + 1, t[left + 1]


@compiled
def sealing_time(chain: Chain, t: Array) -> int:
    """The least frontier at which no event that may still come can violate the match, LOWEST without a negation."""
    when = LOWEST
    for n in range(len(chain.left)):
        when = max(when, gap(chain, n, t)[1])
    return when


@compiled
def violated(chain: Chain, stacks: Stacks, number: int, negation: int, t: Array) -> bool:
    """Whether an event in the stacks breaks the negation."""
    low, high = gap(chain, negation, t)
    row = stacks.bounds[number * chain.limits[1] + chain.negated[negation]]
    at = at_or_after(stacks.pool, row[1], row[2], low)
    return bool(at < row[2] and stacks.pool[at, 0] < high)


@compiled
def any_violated(chain: Chain, stacks: Stacks, key: int, t: Array) -> bool:
    """Whether any negation is broken by what is in the stacks of the key."""
    number = number_of(stacks, key)
    if number >= 0:
        for n in range(len(chain.left)):
            if violated(chain, stacks, number, n, t):
                return True
    return False


@compiled
def _reachable(chain: Chain, stacks: Stacks, number: int, place: int, t: int) -> bool:
    """Whether each later place has an event after its neighbour and each earlier one before it, within the window."""
    window, base = chain.limits[0], number * chain.limits[1]
    near = t
    for q in range(place + 1, len(chain.place)):
        row = stacks.bounds[base + chain.place[q]]
        at = at_or_after(stacks.pool, row[1], row[2], near + 1)
        if at == row[2] or stacks.pool[at, 0] > t + window:
            return False
        near = stacks.pool[at, 0]
    near = t
    for q in range(place - 1, -1, -1):
        row = stacks.bounds[base + chain.place[q]]
        at = at_or_after(stacks.pool, row[1], row[2], near) - 1
        if at < row[1] or stacks.pool[at, 0] < t - window:
            return False
        near = stacks.pool[at, 0]
    return True


@compiled
def _allowed(chain: Chain, stacks: Stacks, number: int, place: int, step: int, t: Array) -> bool:
    """Whether no negation is broken of those whose places were all chosen at this step and not before."""
    last = len(chain.place) - 1
    for n in range(len(chain.left)):
        left = chain.left[n]
        # Places are chosen from `place` down to 0, then up to the last; the ends need both the first and the last.
        low = 0 if left < 0 or left == last else left
        high = last if left < 0 or left == last else left + 1
        when = max(place - low if low <= place else low, place - high if high <= place else high)
        if when == step and violated(chain, stacks, number, n, t):
            return False
    return True


@compiled
def construct(
    chain: Chain, stacks: Stacks, number: int, place: int, t: int, index: int, rows: Array, count: int, cursor: Array
) -> tuple[Array, int]:
    """Append to `rows` every sequence with this event in this place that no stored event violates.

    A row holds the times of all places, then the indices. `cursor` is scratch space for one number a place. Returns the
    rows, which may have moved, and their count.
    """
    n, window, base = len(chain.place), chain.limits[0], number * chain.limits[1]
    if window < 0 or not _reachable(chain, stacks, number, place, t):
        return rows, count
    pool, row = stacks.pool, rows[count]
    row[place], row[n + place] = t, index
    step, down = 0, True
    while True:
        if down and _allowed(chain, stacks, number, place, step, row):
            if step == n - 1:
                if count + 1 == len(rows):
                    rows = doubled(rows)
                rows[count + 1] = rows[count]
                count += 1
                row = rows[count]
            else:
                step += 1
                q = place - step if step <= place else step
                stack = stacks.bounds[base + chain.place[q]]
                if q < place:
                    cursor[q] = at_or_after(pool, stack[1], stack[2], row[q + 1])
                else:
                    cursor[q] = at_or_after(pool, stack[1], stack[2], row[q - 1] + 1) - 1
        if step == 0:
            return rows, count
        q = place - step if step <= place else step
        stack = stacks.bounds[base + chain.place[q]]
        if q < place:
            cursor[q] -= 1
            down = cursor[q] >= stack[1] and pool[cursor[q], 0] >= t - window
        else:
            cursor[q] += 1
            down = cursor[q] < stack[2] and pool[cursor[q], 0] <= row[0] + window
        if down:
            row[q], row[n + q] = pool[cursor[q], 0], pool[cursor[q], 1]
        else:
            step -= 1
