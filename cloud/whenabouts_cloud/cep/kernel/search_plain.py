"""Search for a chain of points without conditions across events: like `search`, with less work for each match.

The automaton limits how late each positive can be, so every partial binding can be completed unless a negation rejects it.
A negation between two neighbours ends the walk along the later one's chain at the first event that the negation forbids.
"""

from typing import Any

from whenabouts_cloud.cep.kernel.arguments import Plain, Site, alternative_of, negation_of
from whenabouts_cloud.cep.kernel.emit import NONE
from whenabouts_cloud.cep.kernel.finality import is_own, take_pending
from whenabouts_cloud.cep.kernel.hts import chain_of, first_from
from whenabouts_cloud.cep.kernel.layout import (
    BOUND,
    DONE,
    FOREVER,
    META,
    MORE_EMITTED,
    MORE_PENDING,
    NEVER,
    PENDING,
    PENDING_EVENTS,
    STORED,
)
from whenabouts_cloud.cep.kernel.program import ELEMENT, AlternativeRow
from whenabouts_cloud.jit import compiled_inline, inlined, u


@compiled_inline
def search_plain(plain: Plain, site: Site, t: int, arrival: int, longest: int, on_arrival: bool) -> Any:
    """Emits all matches of a chain with the event at the site's position, after `infa.chain_completes` returned True."""
    bound, position, node = plain.bound, site.position, site.node
    alternative = alternative_of(plain.alternatives, site.alternative)
    last = alternative.width - 1
    skipping = _has_skipping_negation(plain, alternative)
    bound[u(position), BOUND.t], bound[u(position), BOUND.arrival] = t, arrival
    level, descending = NONE, True
    while level >= 0:
        if level > last:
            status = _conclude(plain, site, alternative, longest, on_arrival)
            if status != DONE:
                return status
            descending = False
        elif level == position:
            if descending:
                descending = alternative.negation == alternative.negation_end or _is_free(
                    plain, alternative, node, level, t
                )
            if descending and level == 0 and last > 0:
                _limit_ends(plain, alternative, site, t + alternative.window)
        else:
            if descending:
                _enter(plain, alternative, node, level)
            descending = _bind_next(plain, alternative, site, level, skipping)
        level += 1 if descending else -1
    return DONE


@inlined
def _bind_next(plain: Plain, alternative: AlternativeRow, site: Site, level: int, skipping: bool) -> bool:
    """Binds a positive to the next event of its chain that no negation forbids; returns False if there is none."""
    bound, pool = plain.bound, plain.pool
    while True:
        place = bound[u(level), BOUND.place]
        if place >= bound[u(level), BOUND.end] or pool[u(place), STORED.t] > bound[u(level), BOUND.limit]:
            return False
        bound[u(level), BOUND.place] = place + 1
        bound[u(level), BOUND.t], bound[u(level), BOUND.arrival] = (
            pool[u(place), STORED.t],
            pool[u(place), STORED.arrival],
        )
        if level == 0 and site.position < alternative.width - 1:
            _limit_ends(plain, alternative, site, pool[u(place), STORED.t] + alternative.window)
        if not skipping or _skipped_are_free(plain, alternative, site.node, level):
            return True


@inlined
def _enter(plain: Plain, alternative: AlternativeRow, node: int, level: int) -> None:
    """Starts a positive after the one before it; sets the latest time that the negations between them allow."""
    bound = plain.bound
    if level == 0:
        bound[0, BOUND.place], bound[0, BOUND.limit] = bound[0, BOUND.begin], FOREVER
        return
    before = bound[u(level - 1), BOUND.t]
    begin, _ = chain_of(plain.nodes, node, plain.elements[u(alternative.element + level), ELEMENT.event_class])
    bound[u(level), BOUND.place] = first_from(plain.pool, begin, bound[u(level), BOUND.end], before + 1)
    limit = FOREVER
    for k in range(alternative.negation, alternative.negation_end):
        negation = negation_of(plain.negations, k)
        if negation.level == level and negation.lower == level - 1:
            limit = min(limit, _next_of(plain, node, negation.event_class, before))
    bound[u(level), BOUND.limit] = limit


@compiled_inline
def _next_of(plain: Plain, node: int, event_class: int, t: int) -> Any:
    """Time of the first event of a class after t; FOREVER if there is none."""
    begin, end = chain_of(plain.nodes, node, event_class)
    place = first_from(plain.pool, begin, end, t + 1)
    return plain.pool[u(place), STORED.t] if place < end else FOREVER


@compiled_inline
def _is_free(plain: Plain, alternative: AlternativeRow, node: int, level: int, t: int) -> bool:
    """True if no negation between the arrived event and the positives before it forbids it."""
    for k in range(alternative.negation, alternative.negation_end):
        negation = negation_of(plain.negations, k)
        near = negation.level == level and negation.lower == level - 1
        if near and _next_of(plain, node, negation.event_class, plain.bound[u(level - 1), BOUND.t]) < t:
            return False
    return _skipped_are_free(plain, alternative, node, level)


@compiled_inline
def _has_skipping_negation(plain: Plain, alternative: AlternativeRow) -> bool:
    """True if a negation lies between two positives that are not neighbours."""
    for k in range(alternative.negation, alternative.negation_end):
        negation = negation_of(plain.negations, k)
        if 0 <= negation.lower < negation.level - 1:
            return True
    return False


@compiled_inline
def _skipped_are_free(plain: Plain, alternative: AlternativeRow, node: int, level: int) -> bool:
    """True if the negations that end at this level and begin before its neighbour hold; the match's events may lie there."""
    bound, pool = plain.bound, plain.pool
    for k in range(alternative.negation, alternative.negation_end):
        negation = negation_of(plain.negations, k)
        if negation.level == level and negation.lower < level - 1:
            begin, end = chain_of(plain.nodes, node, negation.event_class)
            place = first_from(pool, begin, end, bound[u(negation.lower), BOUND.t] + 1)
            while place < end and pool[u(place), STORED.t] < bound[u(level), BOUND.t]:
                if not is_own(bound, level + 1, pool[u(place), STORED.arrival]):
                    return False
                place += 1
    return True


@compiled_inline
def _limit_ends(plain: Plain, alternative: AlternativeRow, site: Site, latest: int) -> None:
    """Sets where the positives after the event's position must end, for the last of them to be at `latest` or before."""
    limit = latest
    for i in range(alternative.width - 1, site.position, -1):
        begin, place = chain_of(plain.nodes, site.node, plain.elements[u(alternative.element + i), ELEMENT.event_class])
        while place > begin and plain.pool[u(place - 1), STORED.t] > limit:
            place -= 1
        plain.bound[u(i), BOUND.end] = place
        limit = plain.pool[u(place - 1), STORED.t] - 1 if place > begin else NEVER


@inlined
def _conclude(plain: Plain, site: Site, alternative: AlternativeRow, longest: int, on_arrival: bool) -> Any:
    """Emits the bound match, or keeps it pending until no negation can be violated any more, or both."""
    bound, meta, emitted = plain.bound, plain.meta, plain.emitted
    due, at_edges = NEVER, False
    for k in range(alternative.negation, alternative.negation_end):
        level = negation_of(plain.negations, k).level
        if level >= 0:
            due = max(due, bound[u(level), BOUND.t] + longest)
        else:
            at_edges = True
    if at_edges:
        free, end = _edges_are_free(plain, alternative, site.node)
        if not free:
            return DONE
        due = max(due, end + longest)
    if due > meta[META.frontier]:
        if not _keep_pending(plain, site, alternative.width, due):
            return MORE_PENDING
        if not on_arrival:
            return DONE
    row = meta[META.emitted]
    if row >= len(emitted):
        return MORE_EMITTED
    if emitted.shape[1] != alternative.width:
        for column in range(emitted.shape[1]):
            emitted[u(row), column] = -1
    for i in range(alternative.width):
        emitted[u(row), plain.elements[u(alternative.element + i), ELEMENT.column]] = bound[u(i), BOUND.arrival]
    if len(plain.emitted_which):
        plain.emitted_which[row] = alternative.plan
    meta[META.emitted] = row + 1
    return DONE


@compiled_inline
def _edges_are_free(plain: Plain, alternative: AlternativeRow, node: int) -> Any:
    """(True if no leading or trailing negation is violated, time from which none can be, less the longest stamp)."""
    bound, pool, count = plain.bound, plain.pool, alternative.width
    due = NEVER
    for k in range(alternative.negation, alternative.negation_end):
        negation = negation_of(plain.negations, k)
        if negation.level >= 0:
            continue
        begin, end = bound[u(count - 1), BOUND.t] - alternative.window, bound[0, BOUND.t] + alternative.window
        for i in range(count):  # in time order: the latest left positive and the earliest right one count
            if negation.left >> i & 1:
                begin = bound[u(i), BOUND.t] + 1
            if negation.right >> (count - 1 - i) & 1:
                end = bound[u(count - 1 - i), BOUND.t] - 1
        due = max(due, end + 1)
        first, last = chain_of(plain.nodes, node, negation.event_class)
        place = first_from(pool, first, last, begin)
        while place < last and pool[u(place), STORED.t] <= end:
            if not is_own(bound, count, pool[u(place), STORED.arrival]):
                return False, due
            place += 1
    return True, due


@compiled_inline
def _keep_pending(plain: Plain, site: Site, count: int, due: int) -> bool:
    """Keeps the bound match pending; returns False if there is no room."""
    meta, pending, bound = plain.meta, plain.pending, plain.bound
    place = take_pending(meta, pending)
    if place < 0:
        return False
    meta[META.serial] += 1
    pending[u(place), PENDING.due], pending[u(place), PENDING.alternative] = due, site.alternative
    pending[u(place), PENDING.node], pending[u(place), PENDING.serial] = site.node, meta[META.serial]
    pending[u(place), PENDING.next] = meta[META.staged]
    for i in range(count):
        events = PENDING_EVENTS + 3 * i
        pending[u(place), events], pending[u(place), events + 1] = bound[u(i), BOUND.t], bound[u(i), BOUND.t]
        pending[u(place), events + 2] = bound[u(i), BOUND.arrival]
    meta[META.staged] = place
    return True
