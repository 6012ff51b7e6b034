"""The improved automaton (INFA): accepts the positives of an alternative in any order of arrival.

Its state is the set of classes that have events of a key. The paper fires when the count of events equals the length of the
pattern: it fires for A A A, and not any more once the count is exceeded. Here an event starts a search only when each
positive after it has an event after it, each positive before it has an event before it, and all are within the window. For
points and without conditions across events this is exact: a match exists, unless a negation rejects it.
"""

from typing import Any, NamedTuple

from whenabouts_cloud.cep.kernel.arguments import Plain, Site, alternative_of
from whenabouts_cloud.cep.kernel.hts import chain_of, first_from, last_of, recent_from
from whenabouts_cloud.cep.kernel.layout import BOUND, CHAIN_WORDS, CHAINS, STORED
from whenabouts_cloud.cep.kernel.program import BITS, ELEMENT
from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref


class SearchRange(NamedTuple):
    """Times at which the positives of a match with an event can begin."""

    earliest: int
    latest: int
    slack: int  # how much later than its successor a positive may begin
    after: int  # positives after the event begin later than this


@compiled_inline
def chain_completes(plain: Plain, site: Site, t: int) -> bool:
    """True if an event at t completes a chain of points. Fills the places where each positive can lie.

    It fills `end` for the other positives, and `begin` for the first positive: the first place within the window.
    """
    nodes, pool, elements, bound = plain.nodes, plain.pool, plain.elements, plain.bound
    alternative, position, node = alternative_of(plain.alternatives, site.alternative), site.position, site.node
    first, count, window = alternative.element, alternative.width, alternative.window
    for i in range(count):  # read only the node first: it is in the cache, the chains may not be
        last = last_of(nodes, node, elements[first + i, ELEMENT.event_class])
        if (i > position and last <= t) or (i < position and last < t - window):
            return False
    latest = t
    for i in range(position + 1, count):
        begin, end = chain_of(nodes, node, elements[first + i, ELEMENT.event_class])
        place = recent_from(pool, begin, end, latest + 1)
        if place == end:
            return False
        latest = pool[place, STORED.t]
        if latest - t > window:
            return False
        bound[i, BOUND.end] = end
    earliest = t
    for i in range(position - 1, -1, -1):
        begin, end = chain_of(nodes, node, elements[first + i, ELEMENT.event_class])
        place = recent_from(pool, begin, end, earliest)
        if place == begin:
            return False
        earliest = pool[place - 1, STORED.t]
        if latest - earliest > window:
            return False
        bound[i, BOUND.end] = place
    if position > 0:  # the window limits how early the first positive can be
        begin, _ = chain_of(nodes, node, elements[first, ELEMENT.event_class])
        bound[0, BOUND.begin] = first_from(pool, begin, bound[0, BOUND.end], latest - window)
    return True


@compiled_noref
def may_complete(plain: Plain, site: Site, t: int, reach: SearchRange) -> Any:
    """True if an event at t may complete an alternative. Fills the latest begin that each positive can have."""
    elements, bound, position = plain.elements, plain.bound, site.position
    alternative = alternative_of(plain.alternatives, site.alternative)
    first, count = alternative.element, alternative.width
    for i in range(count - 1, -1, -1):
        if i == position:
            bound[i, BOUND.latest] = t
            continue
        limit = reach.latest
        for j in range(i + 1, count):
            if elements[first + i, ELEMENT.after] >> j & 1:
                limit = min(limit, bound[j, BOUND.latest] - 1 + reach.slack)
        begin, end = chain_of(plain.nodes, site.node, elements[first + i, ELEMENT.event_class])
        place = first_from(plain.pool, begin, end, limit + 1)
        if place == begin or plain.pool[place - 1, STORED.t] < reach.earliest:
            return False
        bound[i, BOUND.latest] = plain.pool[place - 1, STORED.t]
        follows = position >= 0 and elements[first + position, ELEMENT.after] >> i & 1
        if follows and bound[i, BOUND.latest] <= reach.after:
            return False
    return True


@compiled_noref
def absent(nodes: Array, pool: Array, node: int, t: int, window: int) -> Any:
    """Sets of classes, as in `program`, among points: those without an event in the window before t, and those without
    one in the window after t."""
    before, after = 0, 0
    for c in range((nodes.shape[1] - CHAINS) // CHAIN_WORDS):
        bit, last = 1 << (c % BITS), last_of(nodes, node, c)
        if last < t:  # the usual case, since most events arrive in order
            before |= bit if last >= t - window else 0
            continue
        begin, end = chain_of(nodes, node, c)
        place = recent_from(pool, begin, end, t)
        if place > begin and pool[place - 1, STORED.t] >= t - window:
            before |= bit
        while place < end and pool[place, STORED.t] == t:
            place += 1
        if place < end and pool[place, STORED.t] <= t + window:
            after |= bit
    return ~before, ~after
