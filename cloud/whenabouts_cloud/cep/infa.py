"""The improved automaton (INFA): accepts the positives of a variant in any order of arrival.

Its state is the set of classes that are present at a main node. The paper fires when a count of events equals the length of
the pattern; that fires for A A A and stays silent once the count has passed. Here an event makes a search worthwhile only when
each positive after it has an event after it, each one before it an event before it, and all that within the window. For
points and without conditions across events this is exact: a match exists, negations aside.
"""

from typing import Any

from whenabouts_cloud.cep.compiled import Array, compiled
from whenabouts_cloud.cep.hts import LOW, first_from
from whenabouts_cloud.cep.layout import CHAIN_WORDS, LAST, NODE, RANGE, STATE


@compiled
def chain_completes(
    nodes: Array, pool: Array, node: int, classes: Array, first: int, count: int, position: int, t: int, window: int,
    begin: Array, end: Array,
) -> bool:  # fmt: skip
    """Whether an event at `position` completes a chain of points; fills where each positive can lie.

    end[i] is one past the last place of positive i < position; for those after it begin[i] is the first place.
    """
    if position + 1 < count:
        if nodes[node, NODE + CHAIN_WORDS * classes[first + position + 1] + LAST] <= t:
            return False
        if nodes[node, NODE + CHAIN_WORDS * classes[first + count - 1] + LAST] <= t:
            return False
    if position > 0 and classes[first] < 62 and not nodes[node, STATE] >> classes[first] & 1:
        return False
    earliest = t
    for i in range(position - 1, -1, -1):
        span = nodes[node, NODE + CHAIN_WORDS * classes[first + i] + RANGE]
        low, place = span >> 32, span & LOW
        while place > low and pool[place - 1, 0] >= earliest:
            place -= 1
        if place == low:
            return False
        earliest = pool[place - 1, 0]
        if earliest < t - window:
            return False
        begin[i], end[i] = low, place
    latest = t
    for i in range(position + 1, count):
        span = nodes[node, NODE + CHAIN_WORDS * classes[first + i] + RANGE]
        high = span & LOW
        place = first_from(pool, span >> 32, high, latest + 1)
        if place == high:
            return False
        latest = pool[place, 0]
        if latest > earliest + window:
            return False
        begin[i], end[i] = place, high
    if position > 0:  # the first positive can reach back only so far
        begin[0] = first_from(pool, begin[0], end[0], latest - window)
    return True


@compiled
def may_complete(
    nodes: Array, pool: Array, node: int, classes: Array, after: Array, first: int, count: int, position: int,
    earliest: int, t: int, reach: int, slack: int, behind: int, bound: Array,
) -> Any:  # fmt: skip
    """Whether an event at `position` may complete a variant; fills the latest begin that each positive can have.

    `earliest` is the least begin, `reach` the greatest; `slack` is how much later than the begin of what comes after it
    a positive may begin, and what comes after the event must begin after `behind`.
    """
    for i in range(count - 1, -1, -1):
        limit = reach
        if i == position:
            bound[i] = t
            continue
        span = nodes[node, NODE + CHAIN_WORDS * classes[first + i] + RANGE]
        begin, end = span >> 32, span & LOW
        for j in range(i + 1, count):
            if after[first + i] >> j & 1 and bound[j] - 1 + slack < limit:
                limit = bound[j] - 1 + slack
        place = first_from(pool, begin, end, limit + 1)
        if place == begin or pool[place - 1, 0] < earliest:
            return False
        bound[i] = pool[place - 1, 0]
        if position >= 0 and after[first + position] >> i & 1 and bound[i] <= behind:
            return False
    return True
