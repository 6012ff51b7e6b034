"""The hash table store (HTS): from a key to its main node, from a main node to a child chain per class, in time order.

After section 3 of the paper (Wang, Wang, Cheng, Lu, KSII TIIS 10(9), 2016), with what it leaves open: keys are compared, not
only hashed; chains lie in blocks of one pool, whose sizes grow by a half or a third; an event that comes late is put in its
place from the end of the chain, ties in order of arrival. Events that nothing can join any more are dropped when their chain
needs room, and all else that is past by a sweep over the main nodes, once per quarter of the time that is held: each
node is looked at a few times in its life, and an idle key leaves nothing behind.
"""

from typing import Any

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel.hashing import home
from whenabouts_cloud.jit import Array, bare, woven

LOW = 0xFFFFFFFF


@woven
def size_of(size: int) -> int:
    """Places of a block: 4, 6, 8, 12, 16, 24, ..."""
    return (2 + (size & 1)) << ((size >> 1) + 1)


@woven
def place_of(slots: Array, nodes: Array, key: int) -> Any:
    """Place of the key in the hash table, or the empty one where it belongs."""
    mask = len(slots) - 1
    place = home(key, len(slots))
    while slots[place, 1] != 0 and slots[place, 0] != key:
        place = (place + 1) & mask
    return place


@woven
def find(slots: Array, nodes: Array, key: int) -> Any:
    """Main node of the key, 0 if there is none."""
    return slots[place_of(slots, nodes, key), 1]


@woven
def find_or_add(slots: Array, nodes: Array, meta: Array, key: int) -> Any:
    """Main node of the key, made if need be; 0 if there is no room for it."""
    place = place_of(slots, nodes, key)
    node = slots[place, 1]
    if node != 0:
        return node
    if (meta[at.NODES] + 2) * 2 > len(slots):
        return 0
    if meta[at.NODE_FREE] != 0:
        node = meta[at.NODE_FREE]
        meta[at.NODE_FREE] = nodes[node, at.KEY]
    elif meta[at.NODE_TOP] < len(nodes):
        node = meta[at.NODE_TOP]
        meta[at.NODE_TOP] += 1
    else:
        return 0
    meta[at.NODES] += 1
    slots[place, 0], slots[place, 1] = key, node
    clear(nodes, node, key)
    return node


@bare
def clear(nodes: Array, node: int, key: int) -> None:
    """An empty main node."""
    for field in range(nodes.shape[1]):
        nodes[node, field] = 0
    nodes[node, at.KEY] = key
    nodes[node, at.MINIMUM] = at.FOREVER
    nodes[node, at.MAXIMUM] = at.NEVER
    for field in range(at.NODE + at.LAST, nodes.shape[1], at.CHAIN_WORDS):
        nodes[node, field] = at.NEVER


@bare
def forget(slots: Array, nodes: Array, meta: Array, node: int) -> None:
    """Takes an empty main node out of the table; those that stand behind it for its sake move up."""
    mask = len(slots) - 1
    hole = place_of(slots, nodes, nodes[node, at.KEY])
    place = hole
    while True:
        place = (place + 1) & mask
        if slots[place, 1] == 0:
            break
        wanted = home(slots[place, 0], len(slots))
        if ((place - wanted) & mask) >= ((place - hole) & mask):
            slots[hole, 0], slots[hole, 1] = slots[place, 0], slots[place, 1]
            hole = place
    slots[hole, 1] = 0
    nodes[node, at.KEY] = meta[at.NODE_FREE]
    nodes[node, at.COUNT] = -1
    meta[at.NODE_FREE] = node
    meta[at.NODES] -= 1


@bare
def rehash(slots: Array, nodes: Array, top: int) -> None:
    """Enters all main nodes into an empty table."""
    for node in range(2, top):
        if nodes[node, at.COUNT] >= 0:
            place = place_of(slots, nodes, nodes[node, at.KEY])
            slots[place, 0], slots[place, 1] = nodes[node, at.KEY], node


@woven
def take(pool: Array, meta: Array, size: int) -> Any:
    """Base and size of a free block, base 0 if there is none. Where none is left of a size, it is one of the next two."""
    base = meta[at.FREE + size]
    top = meta[at.POOL_TOP]
    if base == 0 and top + size_of(size) <= len(pool):
        meta[at.POOL_TOP] = top + size_of(size)
        return top, size
    if base == 0:
        size += 1
        base = meta[at.FREE + size]
    if base == 0:
        size += 1
        base = meta[at.FREE + size]
    if base != 0:
        meta[at.FREE + size] = pool[base, 1]
    return base, size


@woven
def give(pool: Array, meta: Array, base: int, size: int) -> None:
    """Returns a block."""
    pool[base, 1] = meta[at.FREE + size]
    meta[at.FREE + size] = base


@woven
def insert(
    nodes: Array, pool: Array, attrs: Array, meta: Array, node: int, chain: int, t: int, t_max: int, index: int,
    row: int, values: Array, past: int,
) -> bool:  # fmt: skip
    """Puts an event into the chain of a class in its place; false if the pool has no room. Drops what is before `past`."""
    field = at.NODE + at.CHAIN_WORDS * chain
    block, span = nodes[node, field + at.BLOCK], nodes[node, field + at.RANGE]
    if block == 0:
        base, size = take(pool, meta, 0)
        if base == 0:
            return False
        nodes[node, field + at.BLOCK] = base << 8 | size
        begin, end = base, base
        if chain < 62:
            nodes[node, at.STATE] |= 1 << chain
    else:
        begin, end = span >> 32, span & LOW
        base, size = block >> 8, block & 255
        if end == base + size_of(size):
            dropped = _passed(pool, begin, end, past)
            begin += dropped
            live = end - begin
            fitting = size
            if live * 8 >= size_of(size) * 7:
                fitting = size + 1
            else:
                while fitting > 0 and live * 3 < size_of(fitting - 1):
                    fitting -= 1
            to = base
            if fitting != size:
                to, found = take(pool, meta, fitting)
                if to == 0 and fitting > size:
                    return False
                if to == 0:  # a smaller one would only have been better
                    to, fitting = base, size
                else:
                    fitting = found
            _move(pool, attrs, begin, live, to)
            if to != base:
                give(pool, meta, base, size)
                nodes[node, field + at.BLOCK] = to << 8 | fitting
            meta[at.STORED] -= dropped
            nodes[node, at.COUNT] -= dropped
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
    nodes[node, field + at.RANGE] = begin << 32 | (end + 1)
    nodes[node, field + at.LAST] = max(nodes[node, field + at.LAST], t)
    nodes[node, at.COUNT] += 1
    if t < nodes[node, at.MINIMUM]:
        nodes[node, at.MINIMUM] = t
    nodes[node, at.MAXIMUM] = max(nodes[node, at.MAXIMUM], t_max)
    meta[at.STORED] += 1
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
    for node in range(meta[at.NODE_TOP]):
        if nodes[node, at.COUNT] < 0 or nodes[node, at.MINIMUM] >= lately:
            continue
        least, state = at.FOREVER, 0
        for field in range(at.NODE, nodes.shape[1], at.CHAIN_WORDS):
            block = nodes[node, field + at.BLOCK]
            if block == 0:
                continue
            begin, end = nodes[node, field + at.RANGE] >> 32, nodes[node, field + at.RANGE] & LOW
            dropped = end - begin if nodes[node, at.MAXIMUM] < past else 0
            while begin + dropped < end and pool[begin + dropped, last] < past:
                dropped += 1
            nodes[node, at.COUNT] -= dropped
            meta[at.STORED] -= dropped
            begin += dropped
            if begin == end:
                give(pool, meta, block >> 8, block & 255)
                nodes[node, field + at.BLOCK] = 0
                nodes[node, field + at.RANGE] = 0
                nodes[node, field + at.LAST] = at.NEVER
                continue
            nodes[node, field + at.RANGE] = begin << 32 | end
            least = min(least, pool[begin, 0])
            chain = (field - at.NODE) // at.CHAIN_WORDS
            if chain < 62:
                state |= 1 << chain
        nodes[node, at.MINIMUM] = least
        nodes[node, at.STATE] = state
        if node > 0 and nodes[node, at.COUNT] == 0 and nodes[node, at.MATCHES] == 0:
            forget(slots, nodes, meta, node)
        elif nodes[node, at.COUNT] == 0:
            nodes[node, at.MAXIMUM] = at.NEVER


@woven
def _fitting(count: int) -> int:
    """The smallest size of block that leaves room behind so many events."""
    size = 0
    while size_of(size) <= count:
        size += 1
    return size


@bare
def packed_places(nodes: Array, meta: Array) -> Any:
    """Places of the pool that all chains need when packed, and of the block that the longest grows into next."""
    needed, largest = 0, 0
    for node in range(meta[at.NODE_TOP]):
        if nodes[node, at.COUNT] < 0:
            continue
        for field in range(at.NODE, nodes.shape[1], at.CHAIN_WORDS):
            if nodes[node, field + at.BLOCK] != 0:
                span = nodes[node, field + at.RANGE]
                size = _fitting((span & LOW) - (span >> 32))
                needed, largest = needed + size_of(size), max(largest, size)
    return needed, size_of(largest + 1)


@bare
def repack(nodes: Array, pool: Array, attrs: Array, meta: Array, new_pool: Array, new_attrs: Array) -> None:
    """Moves all chains into an empty pool, each into the smallest block that leaves it room to grow."""
    for size in range(64):
        meta[at.FREE + size] = 0
    meta[at.POOL_TOP] = 4
    width = pool.shape[1]
    for node in range(meta[at.NODE_TOP]):
        if nodes[node, at.COUNT] < 0:
            continue
        for field in range(at.NODE, nodes.shape[1], at.CHAIN_WORDS):
            if nodes[node, field + at.BLOCK] == 0:
                continue
            begin, end = nodes[node, field + at.RANGE] >> 32, nodes[node, field + at.RANGE] & LOW
            size = _fitting(end - begin)
            base, _ = take(new_pool, meta, size)
            nodes[node, field + at.BLOCK] = base << 8 | size
            nodes[node, field + at.RANGE] = base << 32 | (base + end - begin)
            for i in range(end - begin):
                for column in range(width):
                    new_pool[base + i, column] = pool[begin + i, column]
                if width == 2 and new_pool.shape[1] == 3:
                    new_pool[base + i, 2] = pool[begin + i, 0]
                for column in range(attrs.shape[1]):
                    new_attrs[base + i, column] = attrs[begin + i, column]


@woven
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


@woven
def recent_from(pool: Array, begin: int, end: int, t: int) -> Any:
    """As `first_from`, looked for from the end with growing steps: most that is asked for is recent."""
    step = 1
    while end - step >= begin and pool[end - step, 0] >= t:
        end -= step
        step *= 2
    begin = max(begin, end - step + 1)
    while begin < end:
        middle = (begin + end) >> 1
        if pool[middle, 0] < t:
            begin = middle + 1
        else:
            end = middle
    return begin


@bare
def reach_back(meta: Array, pool: Array) -> Any:
    """How much earlier than its end an event may begin: the longest stamp seen; nothing among points."""
    return meta[at.LONGEST] if pool.shape[1] == 3 else 0
