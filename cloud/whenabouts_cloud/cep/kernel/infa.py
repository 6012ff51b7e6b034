"""The improved automaton (INFA): accepts the positives of a variant in any order of arrival.

Its state is the set of classes that are present at a main node. The paper fires when a count of events equals the length of
the pattern; that fires for A A A and stays silent once the count has passed. Here an event makes a search worthwhile only
when each positive after it has an event after it, each one before it an event before it, and all that within the window.
For points and without conditions across events this is exact: a match exists, negations aside.
"""

from typing import Any

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel import program as of
from whenabouts_cloud.cep.kernel.hts import LOW, first_from, recent_from
from whenabouts_cloud.jit import Array, bare, woven


@woven
def chain_completes(
    nodes: Array, pool: Array, element: Array, node: int, first: int, count: int, position: int, t: int, window: int,
    num: Array,
) -> bool:  # fmt: skip
    """Whether an event at `position` completes a chain of points; fills where each positive can lie.

    For those before it S_END is one past the last place; for those after it S_BOUND is the first place. S_BOUND of the first
    positive is where the window begins.
    """
    for i in range(count):  # by the main node alone, which is at hand: chains lie elsewhere
        last = nodes[node, at.NODE + at.CHAIN_WORDS * element[first + i, of.E_CLASS] + at.LAST]
        if (i > position and last <= t) or (i < position and last < t - window):
            return False
    latest = t
    for i in range(position + 1, count):
        span = nodes[node, at.NODE + at.CHAIN_WORDS * element[first + i, of.E_CLASS] + at.RANGE]
        high = span & LOW
        place = recent_from(pool, span >> 32, high, latest + 1)
        if place == high:
            return False
        latest = pool[place, 0]
        if latest - t > window:
            return False
        num[i, at.S_END] = high
    earliest = t
    for i in range(position - 1, -1, -1):
        span = nodes[node, at.NODE + at.CHAIN_WORDS * element[first + i, of.E_CLASS] + at.RANGE]
        low = span >> 32
        place = recent_from(pool, low, span & LOW, earliest)
        if place == low:
            return False
        earliest = pool[place - 1, 0]
        if latest - earliest > window:
            return False
        num[i, at.S_END] = place
    if position > 0:  # the first positive can reach back only so far
        span = nodes[node, at.NODE + at.CHAIN_WORDS * element[first, of.E_CLASS] + at.RANGE]
        num[0, at.S_BOUND] = first_from(pool, span >> 32, num[0, at.S_END], latest - window)
    return True


@bare
def may_complete(
    nodes: Array, pool: Array, node: int, element: Array, first: int, count: int, position: int, earliest: int, t: int,
    reach: int, slack: int, behind: int, num: Array,
) -> Any:  # fmt: skip
    """Whether an event at `position` may complete a variant; fills the latest begin that each positive can have.

    `earliest` is the least begin, `reach` the greatest; `slack` is how much later than the begin of what comes after it
    a positive may begin, and what comes after the event must begin after `behind`.
    """
    for i in range(count - 1, -1, -1):
        limit = reach
        if i == position:
            num[i, at.S_BOUND] = t
            continue
        span = nodes[node, at.NODE + at.CHAIN_WORDS * element[first + i, of.E_CLASS] + at.RANGE]
        begin, end = span >> 32, span & LOW
        for j in range(i + 1, count):
            if element[first + i, of.E_AFTER] >> j & 1 and num[j, at.S_BOUND] - 1 + slack < limit:
                limit = num[j, at.S_BOUND] - 1 + slack
        place = first_from(pool, begin, end, limit + 1)
        if place == begin or pool[place - 1, 0] < earliest:
            return False
        num[i, at.S_BOUND] = pool[place - 1, 0]
        if position >= 0 and element[first + position, of.E_AFTER] >> i & 1 and num[i, at.S_BOUND] <= behind:
            return False
    return True


@bare
def absent(nodes: Array, pool: Array, node: int, t: int, window: int) -> Any:
    """Sets of classes, as in `program`, among points: those without an event before t and those without one after it, each
    by the window at most."""
    before, after = 0, 0
    for c in range((nodes.shape[1] - at.NODE) // at.CHAIN_WORDS):
        field = at.NODE + at.CHAIN_WORDS * c
        bit, last = 1 << (c % of.BITS), nodes[node, field + at.LAST]
        if last < t:  # as most are, for most events come in order
            before |= bit if last >= t - window else 0
            continue
        begin, end = nodes[node, field + at.RANGE] >> 32, nodes[node, field + at.RANGE] & LOW
        place = recent_from(pool, begin, end, t)
        if place > begin and pool[place - 1, 0] >= t - window:
            before |= bit
        while place < end and pool[place, 0] == t:
            place += 1
        if place < end and pool[place, 0] <= t + window:
            after |= bit
    return ~before, ~after
