"""Sorted stacks of events for each key and class, shared by the baselines.

After Li, Liu, Ding, Rundensteiner and Mani (ICDCS 2007) and Liu, Li, Golovnya, Rundensteiner and Claypool (ICDE 2009): an
event is inserted into its stack in the order of time. Outdated events are removed when their stack is touched, not by a scan
of all keys, which would cost more than everything else.

All stacks are in one pool of (time, index). A full stack moves to the end of the pool with twice the room; when the pool
or the table of keys is full, both are rebuilt from the live events, so these bound the state.
"""

from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.hts import home
from whenabouts_cloud.jit import Array, columns, compiled

ROOM = 4  # initial entries of a stack


class StackEvent(NamedTuple):
    """An event in the pool."""

    t: int
    arrival: int  # its index


class StackBounds(NamedTuple):
    """A stack: pool[begin : limit] with events in [first, last)."""

    begin: int
    first: int
    last: int
    limit: int


class Used(NamedTuple):
    """Numbers of keys and of places in the pool that are in use."""

    keys: int
    pool: int


EVENT, BOUNDS, USED = columns(StackEvent), columns(StackBounds), columns(Used)


class Stacks(NamedTuple):
    """`table` hashes a key to its number (-1: free), `keys` are by number.

    `bounds` has a row of `StackBounds` for each stack, `number * classes + class`; `pool` rows of `StackEvent`; `used` the
    numbers of `Used`.
    """

    table: Array
    keys: Array
    bounds: Array
    pool: Array
    used: Array


def empty_stacks(classes: int) -> Stacks:
    """Stacks without keys and events."""
    return Stacks(
        np.full(8, -1, np.int64),
        np.zeros(4, np.int64),
        np.zeros((4 * classes, len(BOUNDS)), np.int64),
        np.zeros((64, len(EVENT)), np.int64),
        np.zeros(len(USED), np.int64),
    )


@compiled
def number_of(stacks: Stacks, key: int) -> Any:
    """Number of the key, -1 if it has none."""
    place = home(key, len(stacks.table))
    while stacks.table[place] >= 0:
        if stacks.keys[stacks.table[place]] == key:
            return stacks.table[place]
        place = (place + 1) & (len(stacks.table) - 1)
    return -1


@compiled
def _enter(table: Array, key: int, number: int) -> None:
    place = home(key, len(table))
    while table[place] >= 0:
        place = (place + 1) & (len(table) - 1)
    table[place] = number


@compiled
def renewed(stacks: Stacks, classes: int, bound: int) -> Stacks:
    """Rebuild with room for as much again, without events before the bound and keys that have none left."""
    live, alive = 0, 0
    for number in range(stacks.used[USED.keys]):
        remaining = 0
        for c in range(number * classes, (number + 1) * classes):
            first = at_or_after(stacks.pool, stacks.bounds[c, BOUNDS.first], stacks.bounds[c, BOUNDS.last], bound)
            stacks.bounds[c, BOUNDS.first] = first
            remaining += max(stacks.bounds[c, BOUNDS.last] - first, 0)
        live += remaining
        alive += remaining > 0
    room = 4
    while room < 2 * alive + 2:
        room *= 2
    table, keys = np.full(2 * room, -1, np.int64), np.zeros(room, np.int64)
    bounds = np.zeros((room * classes, len(BOUNDS)), np.int64)
    pool = np.zeros((4 * live + ROOM * classes * (room - alive) + 64, len(EVENT)), np.int64)
    used = np.zeros(len(USED), np.int64)
    for number in range(stacks.used[USED.keys]):
        new = used[USED.keys]
        for c in range(classes):
            first, last = (
                stacks.bounds[number * classes + c, BOUNDS.first],
                stacks.bounds[number * classes + c, BOUNDS.last],
            )
            if last > first:
                used[USED.keys] = new + 1
                start = used[USED.pool]
                pool[start : start + last - first] = stacks.pool[first:last]
                used[USED.pool] = start + 2 * (last - first)
                row = bounds[new * classes + c]
                row[BOUNDS.begin], row[BOUNDS.first] = start, start
                row[BOUNDS.last], row[BOUNDS.limit] = start + last - first, used[USED.pool]
        if used[USED.keys] > new:
            keys[new] = stacks.keys[number]
            _enter(table, keys[new], new)
    return Stacks(table, keys, bounds, pool, used)


@compiled
def at_or_after(pool: Array, first: int, last: int, t: int) -> int:
    """First place in [first, last) whose time is at least t, `last` if there is none."""
    if first >= last or pool[last - 1, EVENT.t] < t:
        return last
    while first < last:
        middle = (first + last) >> 1
        if pool[middle, EVENT.t] < t:
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def insert(stacks: Stacks, classes: int, key: int, event_class: int, t: int, index: int, bound: int) -> int:
    """Insert the event in the order of time; return the number of its key, -1 if there is no room (then call `renewed`).
    Events of the stack before the bound are removed.
    """
    number: int = number_of(stacks, key)
    if number < 0:
        if stacks.used[USED.keys] == len(stacks.keys):
            return -1
        number = stacks.used[USED.keys]
        stacks.used[USED.keys] += 1
        stacks.keys[number] = key
        _enter(stacks.table, key, number)
    row, bounds, pool = number * classes + event_class, stacks.bounds, stacks.pool
    first, last = bounds[row, BOUNDS.first], bounds[row, BOUNDS.last]
    while first < last and pool[first, EVENT.t] < bound:
        first += 1
    bounds[row, BOUNDS.first] = first
    if last == bounds[row, BOUNDS.limit]:
        if not _with_room(bounds, row, pool, stacks.used):
            return -1
        first, last = bounds[row, BOUNDS.first], bounds[row, BOUNDS.last]
    at = last
    while at > first and pool[at - 1, EVENT.t] > t:
        pool[at, EVENT.t], pool[at, EVENT.arrival] = pool[at - 1, EVENT.t], pool[at - 1, EVENT.arrival]
        at -= 1
    pool[at, EVENT.t], pool[at, EVENT.arrival] = t, index
    bounds[row, BOUNDS.last] = last + 1
    return number


@compiled
def _with_room(bounds: Array, row: int, pool: Array, used: Array) -> bool:
    """Move a full stack down into the space of its removed events, or to the end of the pool; False if that is full."""
    begin, first = bounds[row, BOUNDS.begin], bounds[row, BOUNDS.first]
    count = bounds[row, BOUNDS.last] - first
    if 2 * count > bounds[row, BOUNDS.limit] - begin or bounds[row, BOUNDS.limit] == begin:
        begin, room = used[USED.pool], max(ROOM, 2 * count)
        if begin + room > len(pool):
            return False
        used[USED.pool] = begin + room
        bounds[row, BOUNDS.limit] = begin + room
    for n in range(count):
        pool[begin + n, EVENT.t], pool[begin + n, EVENT.arrival] = (
            pool[first + n, EVENT.t],
            pool[first + n, EVENT.arrival],
        )
    bounds[row, BOUNDS.begin], bounds[row, BOUNDS.first], bounds[row, BOUNDS.last] = begin, begin, begin + count
    return True


@compiled
def doubled(rows: Array) -> Array:
    """Return the rows with room for as many again."""
    more = np.empty((2 * len(rows), rows.shape[1]), np.int64)
    more[: len(rows)] = rows
    return more
