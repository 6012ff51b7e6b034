"""The search for a chain of points without conditions across events: as `search`, with less to do for each match.

No choice is in vain but for negations: the automaton says how late each positive can be, so every prefix can be completed.
A negation between two neighbours ends the walk along the later one's chain at the first event that it forbids.
"""

from typing import Any

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel import program as of
from whenabouts_cloud.cep.kernel.hts import LOW, first_from
from whenabouts_cloud.jit import Array, bare, woven


@bare
def search_plain(
    table: Array, element: Array, negation: Array, nodes: Array, pool: Array, meta: Array, pending: Array, told: Array,
    which: Array, num: Array, variant: int, position: int, node: int, t: int, index: int, eager: bool, longest: int,
) -> Any:  # fmt: skip
    """All matches of a chain in which the event stands at `position`, after `infa.chain_completes` has said that it may."""
    first, count, window = table[variant, of.V_ELEMENT], table[variant, of.V_WIDTH], table[variant, of.V_WINDOW]
    one, behind = table[variant, of.V_NEGATION], table[variant, of.V_NEGATION_END]
    last, width, far = count - 1, told.shape[1], False
    for k in range(one, behind):
        far = far or 0 <= negation[k, of.N_LOWER] < negation[k, of.N_LEVEL] - 1
    num[position, at.S_T], num[position, at.S_INDEX] = t, index
    level, down = 0, True
    while True:
        if level == position:
            if down and one < behind and not _free(negation, nodes, pool, num, node, one, behind, level, t):
                down = False
            if not down:
                level -= 1
                if level < 0:
                    return at.DONE
                continue
            if position == 0 and last > 0:
                _reach(nodes, pool, element, num, node, first, count, position, t + window)
            level += 1
            if level <= last:
                _enter(element, negation, nodes, pool, num, node, first, one, behind, level)
                continue
        if level > last:
            when, edges = at.NEVER, False
            for k in range(one, behind):
                if negation[k, of.N_LEVEL] >= 0:
                    when = max(when, num[negation[k, of.N_LEVEL], at.S_T] + longest)
                else:
                    edges = True
            kept = True
            if edges:
                kept, end = _edges(negation, nodes, pool, num, node, count, one, behind, window)
                when = max(when, end + longest)
            if kept and when > meta[at.FRONTIER]:
                if not _wait(meta, pending, num, variant, node, count, when):
                    return at.MORE_PENDING
                kept = eager
            if kept:
                row = meta[at.TOLD]
                if row >= len(told):
                    return at.MORE_TOLD
                if width != count:
                    for column in range(width):
                        told[row, column] = -1
                for i in range(count):
                    told[row, element[first + i, of.E_COLUMN]] = num[i, at.S_INDEX]
                if len(which):
                    which[row] = table[variant, of.V_PLAN]
                meta[at.TOLD] = row + 1
            level = last
            down = False
            continue
        if level == 0 and down:
            num[0, at.S_AT], num[0, at.S_LIMIT] = num[0, at.S_BOUND], at.FOREVER
        place = num[level, at.S_AT]
        if place >= num[level, at.S_END] or pool[place, 0] > num[level, at.S_LIMIT]:
            level -= 1
            if level < 0:
                return at.DONE
            down = False
            continue
        num[level, at.S_AT] = place + 1
        num[level, at.S_T], num[level, at.S_INDEX] = pool[place, 0], pool[place, 1]
        if level == 0 and position < last:
            _reach(nodes, pool, element, num, node, first, count, position, pool[place, 0] + window)
        if far and not _apart(negation, nodes, pool, num, node, one, behind, level):
            down = False
            continue
        level += 1
        down = True
        if level <= last and level != position:
            _enter(element, negation, nodes, pool, num, node, first, one, behind, level)


@woven
def _enter(
    element: Array, negation: Array, nodes: Array, pool: Array, num: Array, node: int, first: int, one: int, behind: int,
    level: int,
) -> None:  # fmt: skip
    """Where a positive begins, behind the one before it, and the latest time that the negations between them allow."""
    after = num[level - 1, at.S_T]
    low = nodes[node, at.NODE + at.CHAIN_WORDS * element[first + level, of.E_CLASS] + at.RANGE] >> 32
    num[level, at.S_AT] = first_from(pool, low, num[level, at.S_END], after + 1)
    limit = at.FOREVER
    for k in range(one, behind):
        if negation[k, of.N_LEVEL] == level and negation[k, of.N_LOWER] == level - 1:
            limit = min(limit, _next(negation, nodes, pool, node, k, after))
    num[level, at.S_LIMIT] = limit


@woven
def _next(negation: Array, nodes: Array, pool: Array, node: int, k: int, after: int) -> Any:
    """Time of the first event after `after` that negation k forbids."""
    span = nodes[node, at.NODE + at.CHAIN_WORDS * negation[k, of.N_CLASS] + at.RANGE]
    place = first_from(pool, span >> 32, span & LOW, after + 1)
    return pool[place, 0] if place < span & LOW else at.FOREVER


@woven
def _free(
    negation: Array, nodes: Array, pool: Array, num: Array, node: int, one: int, behind: int, level: int, t: int
) -> bool:
    """Whether the negations between the arrived event and the positive before it allow it, and those further back."""
    for k in range(one, behind):
        near = negation[k, of.N_LEVEL] == level and negation[k, of.N_LOWER] == level - 1
        if near and _next(negation, nodes, pool, node, k, num[level - 1, at.S_T]) < t:
            return False
    return _apart(negation, nodes, pool, num, node, one, behind, level)


@woven
def _apart(
    negation: Array, nodes: Array, pool: Array, num: Array, node: int, one: int, behind: int, level: int
) -> bool:
    """Whether the negations hold that end at this level and begin before its neighbour; their own events may lie between."""
    for k in range(one, behind):
        if negation[k, of.N_LEVEL] == level and negation[k, of.N_LOWER] < level - 1:
            span = nodes[node, at.NODE + at.CHAIN_WORDS * negation[k, of.N_CLASS] + at.RANGE]
            place = first_from(pool, span >> 32, span & LOW, num[negation[k, of.N_LOWER], at.S_T] + 1)
            while place < span & LOW and pool[place, 0] < num[level, at.S_T]:
                if not _own(num, level + 1, pool[place, 1]):
                    return False
                place += 1
    return True


@bare
def _own(num: Array, count: int, index: int) -> bool:
    found = False
    for i in range(count):
        found = found or num[i, at.S_INDEX] == index
    return found


@woven
def _reach(
    nodes: Array, pool: Array, element: Array, num: Array, node: int, first: int, count: int, position: int, latest: int
) -> None:
    """Where the positives after `position` must end for the last of them to be at `latest` or before."""
    limit = latest
    for i in range(count - 1, position, -1):
        span = nodes[node, at.NODE + at.CHAIN_WORDS * element[first + i, of.E_CLASS] + at.RANGE]
        low, place = span >> 32, span & LOW
        while place > low and pool[place - 1, 0] > limit:
            place -= 1
        num[i, at.S_END] = place
        limit = pool[place - 1, 0] - 1 if place > low else at.NEVER


@bare
def _edges(
    negation: Array, nodes: Array, pool: Array, num: Array, node: int, count: int, one: int, behind: int, window: int
) -> Any:
    """Whether no leading or trailing negation is violated, and from when on none can be, but for the longest stamp."""
    when = at.NEVER
    for k in range(one, behind):
        if negation[k, of.N_LEVEL] >= 0:
            continue
        a, b = num[count - 1, at.S_T] - window, num[0, at.S_T] + window
        for i in range(count):  # in time order: the latest on the left and the earliest on the right count
            if negation[k, of.N_LEFT] >> i & 1:
                a = num[i, at.S_T] + 1
            if negation[k, of.N_RIGHT] >> (count - 1 - i) & 1:
                b = num[count - 1 - i, at.S_T] - 1
        when = max(when, b + 1)
        span = nodes[node, at.NODE + at.CHAIN_WORDS * negation[k, of.N_CLASS] + at.RANGE]
        place = first_from(pool, span >> 32, span & LOW, a)
        while place < span & LOW and pool[place, 0] <= b:
            if not _own(num, count, pool[place, 1]):
                return False, when
            place += 1
    return True, when


@bare
def _wait(meta: Array, pending: Array, num: Array, variant: int, node: int, count: int, when: int) -> bool:
    """Lets the match that is bound wait; false if there is no room."""
    if meta[at.PENDING_FREE] >= 0:
        place = meta[at.PENDING_FREE]
        meta[at.PENDING_FREE] = pending[place, at.P_NEXT]
    elif meta[at.PENDING_TOP] < len(pending):
        place = meta[at.PENDING_TOP]
        meta[at.PENDING_TOP] += 1
    else:
        return False
    meta[at.SERIAL] += 1
    pending[place, at.P_SEAL], pending[place, at.P_VARIANT], pending[place, at.P_NODE] = when, variant, node
    pending[place, at.P_SERIAL], pending[place, at.P_NEXT] = meta[at.SERIAL], meta[at.STAGED]
    for i in range(count):
        pending[place, at.P_EVENTS + 3 * i], pending[place, at.P_EVENTS + 3 * i + 1] = num[i, at.S_T], num[i, at.S_T]
        pending[place, at.P_EVENTS + 3 * i + 2] = num[i, at.S_INDEX]
    meta[at.STAGED] = place
    return True
