"""The hash table store (HTS): from a key to its event list, which has a chain per class in time order.

After section 3 of the paper (Wang, Wang, Cheng, Lu, KSII TIIS 10(9), 2016), which calls an event list a main node and
a chain a child chain. The paper leaves open the following. Keys are compared, not only hashed. Chains lie in blocks
of one pool, whose sizes grow by a half or a third. An out-of-order event is inserted from the end of the chain, ties
in order of arrival. Events that can be in no later match are evicted when their chain needs room, and otherwise by a
sweep over the nodes, once per quarter of the time that events are stored. So each node is visited a few times in its
life, and an idle key leaves nothing behind.
"""

from typing import Any

from whenabouts_cloud.cep.kernel.arguments import Event
from whenabouts_cloud.cep.kernel.layout import (
    BLOCK_SIZES,
    CHAIN,
    CHAIN_WORDS,
    CHAINS,
    FOREVER,
    FREE_BLOCKS,
    INTERVAL_WIDTH,
    META,
    NEVER,
    NODE,
    POINT_WIDTH,
    SLOT,
    STORED,
    State,
)
from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref, u

LOW = 0xFFFFFFFF
SPREAD = 0x9E3779B97F4A7C15 - (1 << 64)  # 2^64 / golden ratio, signed: multiplicative hashing (Knuth, vol. 3, 6.4)


@compiled_inline
def home(key: int, size: int) -> Any:
    """Place of a key in a table whose size is a power of two; keys that differ only in their high bits spread too."""
    mixed = key ^ (key >> 32)
    return ((mixed * SPREAD) >> 32) & (size - 1)


@compiled_inline
def size_of(size: int) -> int:
    """Places of a block of size number 0, 1, 2, ...: 4, 6, 8, 12, 16, 24, ..."""
    return (2 + (size & 1)) << ((size >> 1) + 1)


@compiled_inline
def place_of(slots: Array, nodes: Array, key: int) -> Any:
    """Place of the key in the hash table, or the empty one where it belongs."""
    mask = len(slots) - 1
    place = home(key, len(slots))
    while slots[u(place), SLOT.node] != 0 and slots[u(place), SLOT.key] != key:
        place = (place + 1) & mask
    return place


@compiled_inline
def find(slots: Array, nodes: Array, key: int) -> Any:
    """Node of the key, 0 if there is none."""
    return slots[place_of(slots, nodes, key), SLOT.node]


@compiled_inline
def find_or_add(slots: Array, nodes: Array, meta: Array, key: int) -> Any:
    """Node of the key, created if need be; 0 if there is no room for it."""
    place = place_of(slots, nodes, key)
    node = slots[u(place), SLOT.node]
    if node != 0:
        return node
    if (meta[META.nodes] + 2) * 2 > len(slots):
        return 0
    if meta[META.node_free] != 0:
        node = meta[META.node_free]
        meta[META.node_free] = nodes[u(node), NODE.key]
    elif meta[META.node_top] < len(nodes):
        node = meta[META.node_top]
        meta[META.node_top] += 1
    else:
        return 0
    meta[META.nodes] += 1
    slots[u(place), SLOT.key], slots[u(place), SLOT.node] = key, node
    clear(nodes, node, key)
    return node


@compiled_noref
def clear(nodes: Array, node: int, key: int) -> None:
    """Makes a node the empty event list of a key."""
    for field in range(nodes.shape[1]):
        nodes[node, field] = 0
    nodes[node, NODE.key] = key
    nodes[node, NODE.minimum] = FOREVER
    nodes[node, NODE.maximum] = NEVER
    for field in range(CHAINS + CHAIN.last, nodes.shape[1], CHAIN_WORDS):
        nodes[node, field] = NEVER


@compiled_noref
def forget(slots: Array, nodes: Array, meta: Array, node: int) -> None:
    """Removes an empty node from the table; moves up the entries behind it that a search would no longer reach."""
    mask = len(slots) - 1
    hole = place_of(slots, nodes, nodes[node, NODE.key])
    place = hole
    while True:
        place = (place + 1) & mask
        if slots[place, SLOT.node] == 0:
            break
        wanted = home(slots[place, SLOT.key], len(slots))
        if ((place - wanted) & mask) >= ((place - hole) & mask):
            slots[hole, SLOT.key], slots[hole, SLOT.node] = slots[place, SLOT.key], slots[place, SLOT.node]
            hole = place
    slots[hole, SLOT.node] = 0
    nodes[node, NODE.key] = meta[META.node_free]
    nodes[node, NODE.events] = -1
    meta[META.node_free] = node
    meta[META.nodes] -= 1


@compiled_noref
def rehash(slots: Array, nodes: Array, top: int) -> None:
    """Enters all nodes into an empty table."""
    for node in range(2, top):
        if nodes[node, NODE.events] >= 0:
            place = place_of(slots, nodes, nodes[node, NODE.key])
            slots[place, SLOT.key], slots[place, SLOT.node] = nodes[node, NODE.key], node


@compiled_inline
def take_block(pool: Array, meta: Array, size: int) -> Any:
    """Takes a free block, of one of the next two sizes if need be; returns its base and size, base 0 if there is none."""
    base = meta[u(FREE_BLOCKS + size)]
    top = meta[META.pool_top]
    if base == 0 and top + size_of(size) <= len(pool):
        meta[META.pool_top] = top + size_of(size)
        return top, size
    if base == 0:
        size += 1
        base = meta[u(FREE_BLOCKS + size)]
    if base == 0:
        size += 1
        base = meta[u(FREE_BLOCKS + size)]
    if base != 0:
        meta[u(FREE_BLOCKS + size)] = pool[u(base), STORED.arrival]
    return base, size


@compiled_inline
def free_block(pool: Array, meta: Array, base: int, size: int) -> None:
    """Frees a block."""
    pool[u(base), STORED.arrival] = meta[u(FREE_BLOCKS + size)]
    meta[u(FREE_BLOCKS + size)] = base


@compiled_inline
def end_of(pool: Array, place: int) -> Any:
    """Time by which a stored event has happened for certain: its t_max, which of a point is its t."""
    return pool[u(place), STORED.t_max] if pool.shape[1] == INTERVAL_WIDTH else pool[u(place), STORED.t]


@compiled_inline
def chain_of(nodes: Array, node: int, c: int) -> Any:
    """Begin and end in the pool of the chain of a class; they are equal if it has no events."""
    span = nodes[u(node), u(CHAINS + CHAIN_WORDS * c + CHAIN.span)]
    return span >> 32, span & LOW


@compiled_inline
def last_of(nodes: Array, node: int, c: int) -> Any:
    """Time of the last event of the chain of a class, NEVER if it has none."""
    return nodes[u(node), u(CHAINS + CHAIN_WORDS * c + CHAIN.last)]


@compiled_inline
def insert(state: State, node: int, c: int, event: Event, values: Array, past: int) -> bool:
    """Inserts an event into the chain of a class in time order; returns False if the pool has no room.

    May evict events before `past`. The event's attributes are in its row of `values`.
    """
    nodes, pool, attrs, meta = state.nodes, state.pool, state.attrs, state.meta
    begin, end = _make_room(state, node, c, past)
    if begin == 0:
        return False
    intervals, extra = pool.shape[1] == INTERVAL_WIDTH, attrs.shape[1]
    place = end
    while place > begin and pool[u(place - 1), STORED.t] > event.t:
        pool[u(place), STORED.t], pool[u(place), STORED.arrival] = (
            pool[u(place - 1), STORED.t],
            pool[u(place - 1), STORED.arrival],
        )
        if intervals:
            pool[u(place), STORED.t_max] = pool[u(place - 1), STORED.t_max]
        for column in range(extra):
            attrs[place, column] = attrs[place - 1, column]
        place -= 1
    pool[u(place), STORED.t], pool[u(place), STORED.arrival] = event.t, event.arrival
    if intervals:
        pool[u(place), STORED.t_max] = event.t_max
    for column in range(extra):
        attrs[place, column] = values[event.row, column]
    chain = CHAINS + CHAIN_WORDS * c
    nodes[u(node), u(chain + CHAIN.span)] = begin << 32 | (end + 1)
    nodes[u(node), u(chain + CHAIN.last)] = max(nodes[u(node), u(chain + CHAIN.last)], event.t)
    nodes[u(node), NODE.events] += 1
    if event.t < nodes[u(node), NODE.minimum]:
        nodes[u(node), NODE.minimum] = event.t
    nodes[u(node), NODE.maximum] = max(nodes[u(node), NODE.maximum], event.t_max)
    meta[META.stored] += 1
    return True


@compiled_inline
def _make_room(state: State, node: int, c: int, past: int) -> Any:
    """Begin and end of a chain whose block has room for one more event; 0 and 0 if the pool has none.

    A full block is kept if evicting events before `past` makes enough room; else the chain moves to a block that fits.
    """
    nodes, pool, attrs, meta = state.nodes, state.pool, state.attrs, state.meta
    chain = CHAINS + CHAIN_WORDS * c
    block = nodes[u(node), u(chain + CHAIN.block)]
    if block == 0:
        base, size = take_block(pool, meta, 0)
        if base != 0:
            nodes[u(node), u(chain + CHAIN.block)] = base << 8 | size
        return base, base
    begin, end = chain_of(nodes, node, c)
    base, size = block >> 8, block & 255
    if end < base + size_of(size):
        return begin, end
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
        to, taken = take_block(pool, meta, fitting)
        if to == 0 and fitting > size:
            return 0, 0
        # Without room for a smaller block the chain stays where it is: moving is only an optimisation.
        to, fitting = (base, size) if to == 0 else (to, taken)
    _move(pool, attrs, begin, live, to)
    if to != base:
        free_block(pool, meta, base, size)
        nodes[u(node), u(chain + CHAIN.block)] = to << 8 | fitting
    meta[META.stored] -= dropped
    nodes[u(node), NODE.events] -= dropped
    return to, to + live


@compiled_noref
def _passed(pool: Array, begin: int, end: int, past: int) -> Any:
    """Number of events at the head of a chain that ended before `past`."""
    place = begin
    while place < end and end_of(pool, place) < past:
        place += 1
    return place - begin


@compiled_noref
def _move(pool: Array, attrs: Array, begin: int, count: int, to: int) -> None:
    """Copies entries to the head of a block, the same one or another."""
    if begin == to:
        return
    for i in range(count):
        for column in range(pool.shape[1]):
            pool[to + i, column] = pool[begin + i, column]
        for column in range(attrs.shape[1]):
            attrs[to + i, column] = attrs[begin + i, column]


@compiled_noref
def sweep(state: State, past: int) -> None:
    """Evicts events that ended before `past` from all nodes; removes the nodes that are left empty."""
    slots, nodes, pool, meta = state.slots, state.nodes, state.pool, state.meta
    for node in range(meta[META.node_top]):
        if nodes[u(node), NODE.events] < 0 or nodes[u(node), NODE.minimum] >= past:
            continue
        least = FOREVER
        for field in range(CHAINS, nodes.shape[1], CHAIN_WORDS):
            block = nodes[u(node), u(field + CHAIN.block)]
            if block == 0:
                continue
            span = nodes[u(node), u(field + CHAIN.span)]
            begin, end = span >> 32, span & LOW
            if pool.shape[1] == POINT_WIDTH:
                first = _first_kept(pool, begin, end, past) if nodes[u(node), u(field + CHAIN.last)] >= past else end
            else:
                first = begin + _passed(pool, begin, end, past) if nodes[u(node), NODE.maximum] >= past else end
            nodes[u(node), NODE.events] -= first - begin
            meta[META.stored] -= first - begin
            if first == end:
                free_block(pool, meta, block >> 8, block & 255)
                nodes[u(node), u(field + CHAIN.block)] = 0
                nodes[u(node), u(field + CHAIN.span)] = 0
                nodes[u(node), u(field + CHAIN.last)] = NEVER
                continue
            nodes[u(node), u(field + CHAIN.span)] = first << 32 | end
            least = min(least, pool[u(first), STORED.t])
        nodes[u(node), NODE.minimum] = least
        if node > 0 and nodes[u(node), NODE.events] == 0 and nodes[u(node), NODE.matches] == 0:
            forget(slots, nodes, meta, node)
        elif nodes[u(node), NODE.events] == 0:
            nodes[u(node), NODE.maximum] = NEVER


@compiled_inline
def _first_kept(pool: Array, begin: int, end: int, past: int) -> int:
    """The first point at `past` or later in a chain whose last one is. Branch-free: the branches would be mispredicted."""
    last, passed = end - 1, 4
    while passed == 4:
        passed = 0
        for i in range(4):
            passed += int(pool[u(min(begin + i, last)), STORED.t] < past)
        begin += passed
    return begin


@compiled_inline
def _fitting(count: int) -> int:
    """The smallest size of block that leaves room after `count` events."""
    size = 0
    while size_of(size) <= count:
        size += 1
    return size


@compiled_noref
def packed_places(nodes: Array, meta: Array) -> Any:
    """Places of the pool that all chains need when packed, and of the block that the longest grows into next."""
    needed, largest = 0, 0
    for node in range(meta[META.node_top]):
        if nodes[node, NODE.events] < 0:
            continue
        for field in range(CHAINS, nodes.shape[1], CHAIN_WORDS):
            if nodes[node, field + CHAIN.block] != 0:
                span = nodes[node, field + CHAIN.span]
                size = _fitting((span & LOW) - (span >> 32))
                needed, largest = needed + size_of(size), max(largest, size)
    return needed, size_of(largest + 1)


@compiled_noref
def repack(nodes: Array, pool: Array, attrs: Array, meta: Array, new_pool: Array, new_attrs: Array) -> None:
    """Moves all chains into an empty pool, each into the smallest block that leaves it room to grow."""
    for size in range(BLOCK_SIZES):
        meta[FREE_BLOCKS + size] = 0
    meta[META.pool_top] = 4
    width = pool.shape[1]
    for node in range(meta[META.node_top]):
        if nodes[node, NODE.events] < 0:
            continue
        for field in range(CHAINS, nodes.shape[1], CHAIN_WORDS):
            if nodes[node, field + CHAIN.block] == 0:
                continue
            begin, end = nodes[node, field + CHAIN.span] >> 32, nodes[node, field + CHAIN.span] & LOW
            size = _fitting(end - begin)
            base, _ = take_block(new_pool, meta, size)
            nodes[node, field + CHAIN.block] = base << 8 | size
            nodes[node, field + CHAIN.span] = base << 32 | (base + end - begin)
            for i in range(end - begin):
                for column in range(width):
                    new_pool[base + i, column] = pool[begin + i, column]
                if width == POINT_WIDTH and new_pool.shape[1] == INTERVAL_WIDTH:
                    new_pool[base + i, STORED.t_max] = pool[begin + i, STORED.t]
                for column in range(attrs.shape[1]):
                    new_attrs[base + i, column] = attrs[begin + i, column]


@compiled_inline
def first_from(pool: Array, begin: int, end: int, t: int) -> Any:
    """The first entry of a chain at t or later: by linear search in short chains, by bisection in long ones."""
    while end - begin > 12:
        middle = (begin + end) >> 1
        if pool[u(middle), STORED.t] < t:
            begin = middle + 1
        else:
            end = middle
    while begin < end and pool[begin, STORED.t] < t:
        begin += 1
    return begin


@compiled_inline
def recent_from(pool: Array, begin: int, end: int, t: int) -> Any:
    """The first entry of a chain at t or later, searched from the end with growing steps: most are recent."""
    step = 1
    while end - step >= begin and pool[u(end - step), STORED.t] >= t:
        end -= step
        step *= 2
    begin = max(begin, end - step + 1)
    while begin < end:
        middle = (begin + end) >> 1
        if pool[u(middle), STORED.t] < t:
            begin = middle + 1
        else:
            end = middle
    return begin


@compiled_noref
def reach_back(meta: Array, pool: Array) -> Any:
    """The longest stamp seen: an event begins at most so much before its end; 0 if all are points."""
    return meta[META.longest] if pool.shape[1] == INTERVAL_WIDTH else 0
