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
from whenabouts_cloud.jit import Array, compiled

ROOM = 4  # initial entries of a stack


class Stacks(NamedTuple):
    """`table` hashes a key to its number (-1: free), `keys` are by number; stack `number * classes + class` is

    pool[begin : limit] with events in [first, last), as `bounds` = (begin, first, last, limit). `used` = (keys, pool).
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
        np.zeros((4 * classes, 4), np.int64),
        np.zeros((64, 2), np.int64),
        np.zeros(2, np.int64),
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
    for number in range(stacks.used[0]):
        remaining = 0
        for c in range(number * classes, (number + 1) * classes):
            first = at_or_after(stacks.pool, stacks.bounds[c, 1], stacks.bounds[c, 2], bound)
            stacks.bounds[c, 1] = first
            remaining += max(stacks.bounds[c, 2] - first, 0)
        live += remaining
        alive += remaining > 0
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
    """First place in [first, last) whose time is at least t, `last` if there is none."""
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
    """Insert the event in the order of time; return the number of its key, -1 if there is no room (then call `renewed`).
    Events of the stack before the bound are removed.
    """
    number: int = number_of(stacks, key)
    if number < 0:
        if stacks.used[0] == len(stacks.keys):
            return -1
        number = stacks.used[0]
        stacks.used[0] += 1
        stacks.keys[number] = key
        _enter(stacks.table, key, number)
    row, bounds, pool = number * classes + event_class, stacks.bounds, stacks.pool
    first, last = bounds[row, 1], bounds[row, 2]
    while first < last and pool[first, 0] < bound:
        first += 1
    bounds[row, 1] = first
    if last == bounds[row, 3]:
        if not _with_room(bounds, row, pool, stacks.used):
            return -1
        first, last = bounds[row, 1], bounds[row, 2]
    at = last
    while at > first and pool[at - 1, 0] > t:
        pool[at, 0], pool[at, 1] = pool[at - 1, 0], pool[at - 1, 1]
        at -= 1
    pool[at, 0], pool[at, 1] = t, index
    bounds[row, 2] = last + 1
    return number


@compiled
def _with_room(bounds: Array, row: int, pool: Array, used: Array) -> bool:
    """Move a full stack down into the space of its removed events, or to the end of the pool; False if that is full."""
    begin, first, count = bounds[row, 0], bounds[row, 1], bounds[row, 2] - bounds[row, 1]
    if 2 * count > bounds[row, 3] - begin or bounds[row, 3] == begin:
        begin, room = used[1], max(ROOM, 2 * count)
        if begin + room > len(pool):
            return False
        used[1] = begin + room
        bounds[row, 3] = begin + room
    for n in range(count):
        pool[begin + n, 0], pool[begin + n, 1] = pool[first + n, 0], pool[first + n, 1]
    bounds[row, 0], bounds[row, 1], bounds[row, 2] = begin, begin, begin + count
    return True


@compiled
def doubled(rows: Array) -> Array:
    """Return the rows with room for as many again."""
    more = np.empty((2 * len(rows), rows.shape[1]), np.int64)
    more[: len(rows)] = rows
    return more
