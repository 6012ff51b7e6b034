"""Sorted stacks of events for each key and class, and the construction of sequences from them: what the compared methods share.

After Li, Liu, Ding, Rundensteiner and Mani (ICDCS 2007) and Liu, Li, Golovnya, Rundensteiner and Claypool (ICDE 2009): an
event is inserted into its stack at its place in time, and sequences are constructed through the event that has come, to both
sides. Three things the papers leave open are done so that the comparison is fair: search starts only if every other place of
the pattern has an event on the right side of its neighbour; a negation is looked at as soon as both of its neighbours are
chosen; outdated events leave when their stack is touched, not by a walk over all keys.

All stacks lie in one pool of (time, index). A stack that is full moves to the end of the pool with twice the room; when the
pool or the table of keys is full, both are built anew from what is still needed, so state is bounded by the live events.
"""

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.cep.plan import EventClass, Plan

LOWEST, HIGHEST = -(1 << 62), 1 << 62  # nothing is promised yet; no event comes any more
ROOM = 4  # entries a stack begins with
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing (Knuth, vol. 3, 6.4)

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

_numba = importlib.import_module("numba")


def compiled(function: Function) -> Function:
    """The function as machine code, kept from process to process where there is a place to keep it."""
    try:
        found: Function = _numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba finds no folder that it can write to
        found = _numba.njit(nogil=True)(function)
    return found


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


class Stacks(NamedTuple):
    """`table` hashes a key to its number (-1: free), `keys` are by number; stack `number * classes + class` is

    pool[begin : limit] with events in [first, last), as `bounds` = (begin, first, last, limit). `used` = (keys, pool).
    """

    table: Array
    keys: Array
    bounds: Array
    pool: Array
    used: Array


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


def empty_stacks(classes: int) -> Stacks:
    """No keys, no events."""
    return Stacks(
        np.full(8, -1, np.int64),
        np.zeros(4, np.int64),
        np.zeros((4 * classes, 4), np.int64),
        np.zeros((64, 2), np.int64),
        np.zeros(2, np.int64),
    )


@compiled
def hashed(key: int, size: int) -> int:
    """Where the key belongs in a table whose size is a power of two."""
    return np.int64((np.uint64(key) * SPREAD) >> np.uint64(32)) & (size - 1)


@compiled
def number_of(stacks: Stacks, key: int) -> int:
    """The number of the key, -1 if it has none."""
    place = hashed(key, len(stacks.table))
    while stacks.table[place] >= 0:
        if stacks.keys[stacks.table[place]] == key:
            return stacks.table[place]
        place = (place + 1) & (len(stacks.table) - 1)
    return -1


@compiled
def _enter(table: Array, key: int, number: int) -> None:
    place = hashed(key, len(table))
    while table[place] >= 0:
        place = (place + 1) & (len(table) - 1)
    table[place] = number


@compiled
def renewed(stacks: Stacks, classes: int, bound: int) -> Stacks:
    """The same with room for as much again, without events before the bound and without keys that have none left."""
    live, alive = 0, 0
    for number in range(stacks.used[0]):
        found = 0
        for c in range(number * classes, (number + 1) * classes):
            first = at_or_after(stacks.pool, stacks.bounds[c, 1], stacks.bounds[c, 2], bound)
            stacks.bounds[c, 1] = first
            found += max(stacks.bounds[c, 2] - first, 0)
        live += found
        alive += found > 0
    room = 4
    while room < 2 * alive + 2:
        room *= 2
    table, keys = np.full(2 * room, -1, np.int64), np.zeros(room, np.int64)
    bounds = np.zeros((room * classes, 4), np.int64)
    pool = np.zeros((4 * live + ROOM * classes * (room - alive) + 64, 2), np.int64)
    used = np.zeros(2, np.int64)
    for number in range(stacks.used[0]):
        new = used[0]
        for c in range(classes):
            first, last = stacks.bounds[number * classes + c, 1], stacks.bounds[number * classes + c, 2]
            if last > first:
                used[0] = new + 1
                start = used[1]
                pool[start : start + last - first] = stacks.pool[first:last]
                used[1] = start + 2 * (last - first)
                row = bounds[new * classes + c]
                row[0], row[1], row[2], row[3] = start, start, start + last - first, used[1]
        if used[0] > new:
            keys[new] = stacks.keys[number]
            _enter(table, keys[new], new)
    return Stacks(table, keys, bounds, pool, used)


@compiled
def at_or_after(pool: Array, first: int, last: int, t: int) -> int:
    """The first place in [first, last) whose time is at least t, `last` if none is."""
    if first >= last or pool[last - 1, 0] < t:
        return last
    while first < last:
        middle = (first + last) >> 1
        if pool[middle, 0] < t:
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def insert(stacks: Stacks, classes: int, key: int, event_class: int, t: int, index: int, bound: int) -> int:
    """Put the event at its place in time; the number of its key, -1 if there is no room (then renew).

    Events of the stack before the bound go.
    """
    number = number_of(stacks, key)
    if number < 0:
        if stacks.used[0] == len(stacks.keys):
            return -1
        number = stacks.used[0]
        stacks.used[0] += 1
        stacks.keys[number] = key
        _enter(stacks.table, key, number)
    row, pool = stacks.bounds[number * classes + event_class], stacks.pool
    while row[1] < row[2] and pool[row[1], 0] < bound:
        row[1] += 1
    if row[2] == row[3] and not _with_room(row, pool, stacks.used):
        return -1
    at = row[2]
    while at > row[1] and pool[at - 1, 0] > t:
        pool[at, 0], pool[at, 1] = pool[at - 1, 0], pool[at - 1, 1]
        at -= 1
    pool[at, 0], pool[at, 1] = t, index
    row[2] += 1
    return number


@compiled
def _with_room(row: Array, pool: Array, used: Array) -> bool:
    """Move a full stack down into the space of what has left it, or to the end of the pool."""
    begin, count = row[0], row[2] - row[1]
    if 2 * count > row[3] - row[0] or row[3] == row[0]:
        begin, room = used[1], max(ROOM, 2 * count)
        if begin + room > len(pool):
            return False
        used[1] = begin + room
        row[3] = begin + room
    for n in range(count):
        pool[begin + n, 0], pool[begin + n, 1] = pool[row[1] + n, 0], pool[row[1] + n, 1]
    row[0], row[1], row[2] = begin, begin, begin + count
    return True


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
    return at < row[2] and stacks.pool[at, 0] < high


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

    A row holds the times of all places, then the indices. `cursor` is scratch space for one number a place. Returns the rows,
    which may have moved, and their count. Needs window >= 0 as everything does.
    """
    n, window, base = len(chain.place), chain.limits[0], number * chain.limits[1]
    if window < 0 or not _reachable(chain, stacks, number, place, t):
        return rows, count
    pool, row = stacks.pool, rows[count]
    row[place], row[n + place] = t, index
    step, down = 0, True
    while True:
        if down:
            if _allowed(chain, stacks, number, place, step, row):
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


@compiled
def doubled(rows: Array) -> Array:
    """The rows with room for as many again."""
    more = np.empty((2 * len(rows), rows.shape[1]), np.int64)
    more[: len(rows)] = rows
    return more
