"""The improved automaton (INFA): accepts the positives of an alternative in any order of arrival.

Its state is the set of classes that have events of a key. The paper fires when the count of events equals the length of the
pattern: it fires for A A A, and not any more once the count is exceeded. Here an event starts a search only when each
positive after it has an event after it, each positive before it has an event before it, and all are within the window. For
points and without conditions across events this is exact: a match exists, unless a negation rejects it.

For a class with many uses, as of a thousand patterns over a few types, asking each use in turn would cost more than all the
rest. There a ring holds the last events of each key, as times and classes, and the automata of `group_uses` read those
around an event, up to 128 uses at once. Their answer lacks no use; the few that they name are then asked one by one. Where
a window holds more events than the ring, they read the set of classes that are in it.
"""

from typing import Any, NamedTuple

from whenabouts_cloud.cep.kernel.arguments import Plain, Site, alternative_of
from whenabouts_cloud.cep.kernel.hts import chain_of, first_from, last_of, recent_from
from whenabouts_cloud.cep.kernel.layout import BOUND, CHAIN_WORDS, CHAINS, FOREVER, META, RING, STORED, State
from whenabouts_cloud.cep.kernel.program import BITS, CLASS, ELEMENT, GROUP, HEAD, LEVELS, ROW, Program
from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref, trailing_zeros, u
from whenabouts_cloud.words import WORDS, Words, common, is_any, joined, word_of, words_at

KEPT = RING - 1  # recent events of a key
CODE, LOW_CODE = 6, 63  # bits of the code of a class beside a time
FARTHEST = 1 << 56  # times up to here leave room for it


class SearchRange(NamedTuple):
    """Times at which the positives of a match with an event can begin."""

    earliest: int
    latest: int
    slack: int  # how much later than its successor a positive may begin
    after: int  # positives after the event begin later than this


class Span(NamedTuple):
    """What an alternative asks: its elements are [element, element + width)."""

    element: int
    width: int
    window: int


@compiled_inline
def chain_completes(plain: Plain, site: Site, span: Span, t: int, likely: bool) -> bool:
    """True if an event at t completes a chain of points. Fills the places where each positive can lie.

    It fills `end` for the other positives, and `begin` for the first positive: the first place within the window. If the
    answer is `likely`, it looks at the chains at once.
    """
    nodes, pool, elements, bound = plain.nodes, plain.pool, plain.elements, plain.bound
    position, node, first, count, window = site.position, site.node, span.element, span.width, span.window
    for i in range(0 if likely else count):  # read only the node first: it is in the cache, the chains may not be
        last = last_of(nodes, node, elements[u(first + i), ELEMENT.event_class])
        if (i > position and last <= t) or (i < position and last < t - window):
            return False
    latest = t
    for i in range(position + 1, count):
        begin, end = chain_of(nodes, node, elements[u(first + i), ELEMENT.event_class])
        place = recent_from(pool, begin, end, latest + 1)
        if place == end:
            return False
        latest = pool[u(place), STORED.t]
        if latest - t > window:
            return False
        bound[u(i), BOUND.end] = end
    earliest = t
    for i in range(position - 1, -1, -1):
        begin, end = chain_of(nodes, node, elements[u(first + i), ELEMENT.event_class])
        place = recent_from(pool, begin, end, earliest)
        if place == begin:
            return False
        earliest = pool[u(place - 1), STORED.t]
        if latest - earliest > window:
            return False
        bound[u(i), BOUND.end] = place
    if position > 0:  # the window limits how early the first positive can be
        begin, _ = chain_of(nodes, node, elements[u(first), ELEMENT.event_class])
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


class Nearby(NamedTuple):
    """Numbers of the recent events before and after an event; `Scratch.around` has the rows of their classes."""

    before: int
    near_before: int  # of those before it, how many can be in one match with an event after it
    after: int
    crowded: bool  # the ring lacks some: `around` has the rows of the classes that are there, in no order


@compiled_inline
def remember(recent: Array, meta: Array, node: int, t: int, bit: int) -> None:
    """Enters an event of a class into the ring of its key, in order of time; the oldest may drop out.

    An entry is the time and the bit of the class in one number. Rings are never cleared: what an earlier key has left in
    one is too old for each window.
    """
    if t >= FARTHEST or t <= -FARTHEST:
        meta[META.recent_since] = FOREVER
        return
    count = recent[u(node), 0]
    low, place = max(0, count - KEPT), count
    while place > low and recent[u(node), _slot(place - 1)] >> CODE > t:
        recent[u(node), _slot(place)] = recent[u(node), _slot(place - 1)]
        place -= 1
    recent[u(node), _slot(place)] = t << CODE | bit
    recent[u(node), 0] = count + 1


@compiled_inline
def _slot(number: int) -> Any:
    """Column of the entry of a number."""
    return u(1 + (number & (RING - 1)))


@compiled_inline
def look_around(program: Program, state: State, c: int, node: int, t: int, around: Array) -> Nearby:
    """Lists the recent events around an event of class c at t, the nearest first, within the widest window of its uses."""
    recent, window = state.recent, program.classes[u(c), CLASS.window]
    count, now, earliest = recent[u(node), 0], t << CODE, max(t - window, -FARTHEST) << CODE
    low, upper = max(0, count - KEPT), count
    while upper > low and recent[u(node), _slot(upper - 1)] > now | LOW_CODE:
        upper -= 1
    first, before, after, near = upper, 0, 0, 0
    while first > low and recent[u(node), _slot(first - 1)] >= now:
        first -= 1
    while first > low:
        entry = recent[u(node), _slot(first - 1)]
        if entry < earliest:
            break
        around[0, u(before)] = _row(entry)
        first, before = first - 1, before + 1
    if (first == low and low > 0) or t - window <= state.meta[META.recent_since]:
        return _look_at_chains(state.nodes, state.pool, node, t, window, around)
    if upper < count:
        latest, last, since = t + window, upper, (recent[u(node), _slot(upper)] >> CODE) - window
        while near < before and recent[u(node), _slot(first + before - 1 - near)] >> CODE >= since:
            near += 1
        while last < count and recent[u(node), _slot(last)] >> CODE <= latest:
            around[1, u(after)] = _row(recent[u(node), _slot(last)])
            after, last = after + 1, last + 1
    return Nearby(before, near, after, False)


@compiled_inline
def _row(entry: int) -> Any:
    """Where the vectors of the class of an entry are among the levels of a group."""
    return (entry & LOW_CODE) * ROW


@compiled_noref
def _look_at_chains(nodes: Array, pool: Array, node: int, t: int, window: int, around: Array) -> Nearby:
    """Lists the classes that have events in the window before t, and after it."""
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
    count = _list(before, around[0])
    return Nearby(count, count, _list(after, around[1]), True)


@compiled_inline
def _list(bits: int, into: Array) -> int:
    """Lists the rows of the classes of a set; returns their number."""
    count = 0
    while bits != 0:
        into[u(count)] = _row(trailing_zeros(bits))
        bits &= bits - 1
        count += 1
    return count


@compiled_inline
def uses_in_question(program: Program, state: State, c: int, node: int, t: int, around: Array, found: Array) -> int:
    """Writes the uses of class c that an event at t may complete to `found`; returns their number.

    No use that the event completes is missing. Events of one time count as in order, and so do classes that share a bit, and
    windows are tested later: by `chain_completes`.
    """
    count = _uses_of_last(program, state, c, node, t, found)
    if count < 0:
        count = _uses_around(program, c, look_around(program, state, c, node, t, around), around, found)
    return count


@compiled_inline
def _uses_of_last(program: Program, state: State, own: int, node: int, t: int, found: Array) -> int:
    """`uses_in_question` where no event is after t, one group needs none, and the ring lacks none; otherwise -1.

    This is the usual case, so the automaton reads the ring itself, in the loop that finds the events within the window.
    """
    recent, window, group = state.recent, program.classes[u(own), CLASS.window], program.classes[u(own), CLASS.group]
    count, now, earliest = recent[u(node), 0], t << CODE, max(t - window, -FARTHEST) << CODE
    low, first = max(0, count - KEPT), count
    alone = program.classes[u(own), CLASS.group_later] == group + 1 and program.groups[u(group), GROUP.rounds] == 1
    if not alone or count == 0 or recent[u(node), _slot(count - 1)] > now | LOW_CODE:
        return -1
    if t - window <= state.meta[META.recent_since]:
        return -1
    while first > low and recent[u(node), _slot(first - 1)] >= now:
        first -= 1
    levels = program.levels
    start = u(2 * group * levels.shape[1])
    rows = start + u(HEAD)
    a, b, c = words_at(levels, start), words_at(levels, start + u(WORDS)), words_at(levels, start + u(2 * WORDS))
    d, e, end = (
        words_at(levels, start + u(3 * WORDS)),
        words_at(levels, start + u(4 * WORDS)),
        words_at(levels, start + u(5 * WORDS)),
    )
    while first > low:
        entry = recent[u(node), _slot(first - 1)]
        if entry < earliest:
            break
        waiting = rows + u(_row(entry))
        end = joined(end, e, words_at(levels, waiting + u(4 * WORDS)))
        e = joined(e, d, words_at(levels, waiting + u(3 * WORDS)))
        d = joined(d, c, words_at(levels, waiting + u(2 * WORDS)))
        c = joined(c, b, words_at(levels, waiting + u(WORDS)))
        b = joined(b, a, words_at(levels, waiting))
        first -= 1
    if first == low and low > 0:
        return -1
    return _add(found, 0, program.groups[u(group), GROUP.use], end)


@compiled_inline
def _uses_around(program: Program, c: int, nearby: Nearby, around: Array, found: Array) -> int:
    """`uses_in_question` for any event, from the classes around it."""
    count, later = 0, program.classes[u(c), CLASS.group_later]
    for group in range(program.classes[u(c), CLASS.group], later):
        rounds = LEVELS if nearby.crowded else program.groups[u(group), GROUP.rounds]
        uses = _reached(program.levels, group, 0, around, nearby.before, rounds)
        count = _add(found, count, program.groups[u(group), GROUP.use], uses)
    if nearby.after == 0:
        return count
    for group in range(later, program.classes[u(c), CLASS.group_end]):
        if nearby.after < program.groups[u(group), GROUP.after] and not nearby.crowded:
            continue
        rounds = LEVELS if nearby.crowded else program.groups[u(group), GROUP.rounds]
        uses = _reached(program.levels, group, 1, around, nearby.after, rounds)
        if is_any(uses):
            uses = common(uses, _reached(program.levels, group, 0, around, nearby.near_before, rounds))
            count = _add(found, count, program.groups[u(group), GROUP.use], uses)
    return count


@compiled_inline
def _reached(levels: Array, group: int, side: int, around: Array, count: int, rounds: int) -> Words:
    """Uses of a group, as bits, whose automata accept the first `count` events on a side. The levels stay in registers."""
    start = u((2 * group + side) * levels.shape[1])
    rows = start + u(HEAD)
    a, b, c = words_at(levels, start), words_at(levels, start + u(WORDS)), words_at(levels, start + u(2 * WORDS))
    d, e, end = (
        words_at(levels, start + u(3 * WORDS)),
        words_at(levels, start + u(4 * WORDS)),
        words_at(levels, start + u(5 * WORDS)),
    )
    for _ in range(rounds):
        for i in range(count):
            waiting = rows + u(around[side, u(i)])
            end = joined(end, e, words_at(levels, waiting + u(4 * WORDS)))
            e = joined(e, d, words_at(levels, waiting + u(3 * WORDS)))
            d = joined(d, c, words_at(levels, waiting + u(2 * WORDS)))
            c = joined(c, b, words_at(levels, waiting + u(WORDS)))
            b = joined(b, a, words_at(levels, waiting))
    return end


@compiled_inline
def _add(found: Array, count: int, first: int, uses: Words) -> int:
    """Adds the uses, bits counted from `first`, to those found."""
    if not is_any(uses):
        return count
    for number in range(WORDS):
        word = word_of(uses, number)
        while word != 0:
            found[u(count)] = first + 64 * number + trailing_zeros(word)
            word &= word - 1
            count += 1
    return count
