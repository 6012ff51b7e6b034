"""The hash table store (HTS): from a key to its main node, from a main node to a child chain per class, in time order.

After section 3 of the paper (Wang, Wang, Cheng, Lu, KSII TIIS 10(9), 2016), with what it leaves open: keys are compared, not
only hashed; chains lie in blocks of one pool, whose sizes grow by a half or a third; an event that comes late is put in its
place from the end of the chain, ties in order of arrival. Events that nothing can join any more are dropped when their chain
needs room, and all else that is past by a sweep over the main nodes, once per quarter of the time that is held: each
node is looked at a few times in its life, and an idle key leaves nothing behind.
"""

from typing import Any

import numpy as np

from whenabouts_cloud.cep.compiled import Array, bare
from whenabouts_cloud.cep.layout import (
    BLOCK, CHAIN_WORDS, COUNT, FOREVER, FREE, KEY, LAST, LONGEST, MATCHES, MAXIMUM, MINIMUM, NEVER, NODE, NODE_FREE,
    NODE_TOP, NODES, POOL_TOP, RANGE, STATE, STORED,
)  # fmt: skip

LOW = 0xFFFFFFFF


@bare
def size_of(size: int) -> int:
    """Places of a block: 4, 6, 8, 12, 16, 24, ..."""
    return (2 + (size & 1)) << ((size >> 1) + 1)


@bare
def place_of(slots: Array, nodes: Array, key: int) -> Any:
    """Place of the key in the hash table, or the empty one where it belongs."""
    mask = len(slots) - 1
    hashed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64(hashed >> np.uint64(32)) & mask
    while slots[place, 1] != 0 and slots[place, 0] != key:
        place = (place + 1) & mask
    return place


@bare
def find(slots: Array, nodes: Array, key: int) -> Any:
    """Main node of the key, 0 if there is none."""
    return slots[place_of(slots, nodes, key), 1]


@bare
def find_or_add(slots: Array, nodes: Array, meta: Array, key: int) -> Any:
    """Main node of the key, made if need be; 0 if there is no room for it."""
    place = place_of(slots, nodes, key)
    node = slots[place, 1]
    if node != 0:
        return node
    if (meta[NODES] + 2) * 2 > len(slots):
        return 0
    if meta[NODE_FREE] != 0:
        node = meta[NODE_FREE]
        meta[NODE_FREE] = nodes[node, KEY]
    elif meta[NODE_TOP] < len(nodes):
        node = meta[NODE_TOP]
        meta[NODE_TOP] += 1
    else:
        return 0
    meta[NODES] += 1
    slots[place, 0], slots[place, 1] = key, node
    clear(nodes, node, key)
    return node


@bare
def clear(nodes: Array, node: int, key: int) -> None:
    """An empty main node."""
    for field in range(nodes.shape[1]):
        nodes[node, field] = 0
    nodes[node, KEY] = key
    nodes[node, MINIMUM] = FOREVER
    nodes[node, MAXIMUM] = NEVER
    for field in range(NODE + LAST, nodes.shape[1], CHAIN_WORDS):
        nodes[node, field] = NEVER


@bare
def forget(slots: Array, nodes: Array, meta: Array, node: int) -> None:
    """Takes an empty main node out of the table; those that stand behind it for its sake move up."""
    mask = len(slots) - 1
    hole = place_of(slots, nodes, nodes[node, KEY])
    place = hole
    while True:
        place = (place + 1) & mask
        if slots[place, 1] == 0:
            break
        home = np.int64((np.uint64(slots[place, 0]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
        if ((place - home) & mask) >= ((place - hole) & mask):
            slots[hole, 0], slots[hole, 1] = slots[place, 0], slots[place, 1]
            hole = place
    slots[hole, 1] = 0
    nodes[node, KEY] = meta[NODE_FREE]
    nodes[node, COUNT] = -1
    meta[NODE_FREE] = node
    meta[NODES] -= 1


@bare
def rehash(slots: Array, nodes: Array, top: int) -> None:
    """Enters all main nodes into an empty table."""
    for node in range(2, top):
        if nodes[node, COUNT] >= 0:
            place = place_of(slots, nodes, nodes[node, KEY])
            slots[place, 0], slots[place, 1] = nodes[node, KEY], node


@bare
def take(pool: Array, meta: Array, size: int) -> Any:
    """A free block, 0 if there is none."""
    at = meta[FREE + size]
    if at != 0:
        meta[FREE + size] = pool[at, 1]
        return at
    at = meta[POOL_TOP]
    if at + size_of(size) > len(pool):
        return 0
    meta[POOL_TOP] = at + size_of(size)
    return at


@bare
def give(pool: Array, meta: Array, at: int, size: int) -> None:
    """Returns a block."""
    pool[at, 1] = meta[FREE + size]
    meta[FREE + size] = at


@bare
def insert(
    nodes: Array, pool: Array, attrs: Array, meta: Array, node: int, chain: int, t: int, t_max: int, index: int,
    row: int, values: Array, past: int,
) -> bool:  # fmt: skip
    """Puts an event into the chain of a class in its place; false if the pool has no room. Drops what is before `past`."""
    field = NODE + CHAIN_WORDS * chain
    block, span = nodes[node, field + BLOCK], nodes[node, field + RANGE]
    if block == 0:
        at = take(pool, meta, 0)
        if at == 0:
            return False
        nodes[node, field + BLOCK] = at << 8
        begin, end = at, at
        if chain < 62:
            nodes[node, STATE] |= 1 << chain
    else:
        begin, end = span >> 32, span & LOW
        at, size = block >> 8, block & 255
        if end == at + size_of(size):
            dropped = _passed(pool, begin, end, past)
            begin += dropped
            live = end - begin
            fitting = size
            if live * 4 >= size_of(size) * 3:
                fitting = size + 1
            else:
                while fitting > 0 and live * 3 < size_of(fitting - 1):
                    fitting -= 1
            to = at
            if fitting != size:
                to = take(pool, meta, fitting)
                if to == 0:
                    return False
            _move(pool, attrs, begin, live, to)
            if fitting != size:
                give(pool, meta, at, size)
                nodes[node, field + BLOCK] = to << 8 | fitting
            meta[STORED] -= dropped
            nodes[node, COUNT] -= dropped
            begin, end = to, to + live
    intervals, extra = pool.shape[1] == 3, attrs.shape[1]
    place = end
    while place > begin and pool[place - 1, 0] > t:
        pool[place, 0], pool[place, 1] = pool[place - 1, 0], pool[place - 1, 1]
        if intervals:
            pool[place, 2] = pool[place - 1, 2]
        for column in range(extra):
            attrs[place, column] = attrs[place - 1, column]
        place -= 1
    pool[place, 0], pool[place, 1] = t, index
    if intervals:
        pool[place, 2] = t_max
    for column in range(extra):
        attrs[place, column] = values[row, column]
    nodes[node, field + RANGE] = begin << 32 | (end + 1)
    if t > nodes[node, field + LAST]:
        nodes[node, field + LAST] = t
    nodes[node, COUNT] += 1
    if t < nodes[node, MINIMUM]:
        nodes[node, MINIMUM] = t
    if t_max > nodes[node, MAXIMUM]:
        nodes[node, MAXIMUM] = t_max
    meta[STORED] += 1
    return True


@bare
def _passed(pool: Array, begin: int, end: int, past: int) -> Any:
    """How many at the head of a chain are before `past`."""
    last = pool.shape[1] - 1 if pool.shape[1] == 3 else 0
    place = begin
    while place < end and pool[place, last] < past:
        place += 1
    return place - begin


@bare
def _move(pool: Array, attrs: Array, begin: int, count: int, to: int) -> None:
    """Copies entries to the head of a block, their own or another."""
    if begin == to:
        return
    for i in range(count):
        for column in range(pool.shape[1]):
            pool[to + i, column] = pool[begin + i, column]
        for column in range(attrs.shape[1]):
            attrs[to + i, column] = attrs[begin + i, column]


@bare
def sweep(slots: Array, nodes: Array, pool: Array, meta: Array, past: int, lately: int) -> None:
    """Drops what is before `past` from all nodes whose minimum time is before `lately`; takes away those left empty."""
    last = pool.shape[1] - 1 if pool.shape[1] == 3 else 0
    for node in range(meta[NODE_TOP]):
        if nodes[node, COUNT] < 0 or nodes[node, MINIMUM] >= lately:
            continue
        least, state = FOREVER, 0
        for field in range(NODE, nodes.shape[1], CHAIN_WORDS):
            block = nodes[node, field + BLOCK]
            if block == 0:
                continue
            begin, end = nodes[node, field + RANGE] >> 32, nodes[node, field + RANGE] & LOW
            dropped = end - begin if nodes[node, MAXIMUM] < past else 0
            while begin + dropped < end and pool[begin + dropped, last] < past:
                dropped += 1
            nodes[node, COUNT] -= dropped
            meta[STORED] -= dropped
            begin += dropped
            if begin == end:
                give(pool, meta, block >> 8, block & 255)
                nodes[node, field + BLOCK] = 0
                nodes[node, field + RANGE] = 0
                nodes[node, field + LAST] = NEVER
                continue
            nodes[node, field + RANGE] = begin << 32 | end
            least = min(least, pool[begin, 0])
            chain = (field - NODE) // CHAIN_WORDS
            if chain < 62:
                state |= 1 << chain
        nodes[node, MINIMUM] = least
        nodes[node, STATE] = state
        if node > 0 and nodes[node, COUNT] == 0 and nodes[node, MATCHES] == 0:
            forget(slots, nodes, meta, node)
        elif nodes[node, COUNT] == 0:
            nodes[node, MAXIMUM] = NEVER


@bare
def repack(nodes: Array, pool: Array, attrs: Array, meta: Array, new_pool: Array, new_attrs: Array) -> None:
    """Moves all chains into an empty pool, each into the smallest block that leaves it room to grow."""
    for size in range(64):
        meta[FREE + size] = 0
    meta[POOL_TOP] = 4
    width = pool.shape[1]
    for node in range(meta[NODE_TOP]):
        if nodes[node, COUNT] < 0:
            continue
        for field in range(NODE, nodes.shape[1], CHAIN_WORDS):
            if nodes[node, field + BLOCK] == 0:
                continue
            begin, end = nodes[node, field + RANGE] >> 32, nodes[node, field + RANGE] & LOW
            size = 0
            while size_of(size) <= end - begin:
                size += 1
            at = take(new_pool, meta, size)
            nodes[node, field + BLOCK] = at << 8 | size
            nodes[node, field + RANGE] = at << 32 | (at + end - begin)
            for i in range(end - begin):
                for column in range(width):
                    new_pool[at + i, column] = pool[begin + i, column]
                if width == 2 and new_pool.shape[1] == 3:
                    new_pool[at + i, 2] = pool[begin + i, 0]
                for column in range(attrs.shape[1]):
                    new_attrs[at + i, column] = attrs[begin + i, column]


@bare
def first_from(pool: Array, begin: int, end: int, t: int) -> Any:
    """The first entry of a chain at t or later: looked for from the head in short chains, else by halving."""
    while end - begin > 12:
        middle = (begin + end) >> 1
        if pool[middle, 0] < t:
            begin = middle + 1
        else:
            end = middle
    while begin < end and pool[begin, 0] < t:
        begin += 1
    return begin


@bare
def reach_back(meta: Array, pool: Array) -> Any:
    """How much earlier than its end an event may begin: the longest stamp seen; nothing among points."""
    return meta[LONGEST] if pool.shape[1] == 3 else 0
