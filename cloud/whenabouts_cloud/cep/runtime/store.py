"""The arrays of an engine: creation, growth at the request of the machine code, counters, dump and load."""

import json
from typing import Any

import numpy as np

from whenabouts_cloud.cep.kernel.conditions import STEPS
from whenabouts_cloud.cep.kernel.hts import clear, packed_places, rehash, repack
from whenabouts_cloud.cep.kernel.layout import (
    BOUND,
    CANDIDATE_EVENTS,
    CHAIN_WORDS,
    CHAINS,
    CHANGE_INDICES,
    EMPTY_NODE,
    FOREVER,
    META,
    META_WORDS,
    NEGATED_EVENT,
    NEVER,
    NODE,
    PENDING,
    PENDING_EVENTS,
    POINT_WIDTH,
    RING,
    SLOT,
    TIMER,
    Results,
    Scratch,
    State,
)
from whenabouts_cloud.cep.runtime.checksum import opened, with_checksum
from whenabouts_cloud.jit import Array

POOL, EVENT_LISTS, WAITING, ROWS = 1 << 8, 1 << 5, 1 << 5, 1 << 10  # initial places
POOL_GROWTH = 1.1  # little, so that unused room stays small compared with the stored events
POOL_SPARE = 1.25  # a pool with more spare room than this shrinks when it is packed
NODE_GROWTH = 1.25
VERSION = 7


def new_state(classes: int, most: int, attributes: int, sources: int, recent: bool = False) -> State:
    """The arrays of a new engine."""
    meta = np.zeros(META_WORDS, np.int64)
    meta[[META.frontier, META.newest, META.swept, META.forgotten, META.recent_since]] = NEVER
    meta[META.pool_top], meta[META.node_top] = 4, 2
    meta[[META.pending_free, META.staged]] = -1
    nodes = np.zeros((EVENT_LISTS, CHAINS + CHAIN_WORDS * classes), np.int64)
    for node in range(2):
        clear(nodes, node, 0)
    leaves = 1 << max(0, sources - 1).bit_length()
    return State(
        np.zeros((4 * EVENT_LISTS, len(SLOT)), np.int64), nodes, np.zeros((POOL, POINT_WIDTH), np.int64),
        np.zeros((POOL, attributes)),
        np.zeros((WAITING, PENDING_EVENTS + 3 * most), np.int64), np.zeros((WAITING, most * attributes)),
        np.zeros((WAITING, len(TIMER)), np.int64), np.full(2 * leaves, FOREVER), meta,
        new_recent(EVENT_LISTS, recent),
    )  # fmt: skip


def new_recent(nodes: int, wanted: bool) -> Array:
    """Empty rings of recent events, of no width if they are not wanted."""
    return np.zeros((nodes, 1 + RING if wanted else 0), np.int64)


def new_results(width: int, most: int, plans: int, rows: int = ROWS) -> Results:
    """Arrays for results."""

    def table(columns: int) -> Array:
        return np.empty((min(rows, ROWS), columns), np.int64)

    return Results(
        np.empty((rows, width), np.int64), np.empty(rows, np.int64), np.empty(rows if plans > 1 else 0, np.int64),
        table(width), np.empty(ROWS, np.int64), np.empty(ROWS, np.int64), np.empty(ROWS, np.int64),
        table(CHANGE_INDICES + width),
        table(CHANGE_INDICES + width), table(CANDIDATE_EVENTS + 3 * most), table(len(NEGATED_EVENT)),
    )  # fmt: skip


def new_scratch(attributes: int, width: int, uses: int) -> Scratch:
    """Working arrays of a search."""
    return Scratch(
        np.zeros((64, len(BOUND)), np.int64),
        np.zeros((64, attributes)),
        np.zeros(STEPS),
        np.zeros(width, np.int64),
        np.zeros((2, RING), np.int64),
        np.zeros(uses + 1, np.int64),
    )


def larger(array: Array, factor: float = 2.0) -> Array:
    """A copy of the array with more room at its end."""
    grown = np.zeros((int(len(array) * factor) + 64, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def more_nodes(state: State) -> State:
    """Room for more keys, and a hash table that is less than half full."""
    nodes = larger(state.nodes, NODE_GROWTH)
    slots = np.zeros((1 << (2 * len(nodes) + 4).bit_length(), len(SLOT)), np.int64)
    rehash(slots, nodes, int(state.meta[META.node_top]))
    return state._replace(slots=slots, nodes=nodes, recent=larger(state.recent, NODE_GROWTH))


def more_pool(state: State, columns: int | None = None) -> State:
    """Room for more events, with all blocks repacked; `columns` is INTERVAL_WIDTH once stamps are intervals."""
    needed, largest = packed_places(state.nodes, state.meta)
    places = max(POOL, int(needed * POOL_GROWTH) + largest + 64)
    if places < len(state.pool) < places * POOL_SPARE:  # the number of stored events swings with each sweep
        places = len(state.pool)
    pool = np.zeros((places, columns or state.pool.shape[1]), np.int64)
    attrs = np.zeros((places, state.attrs.shape[1]))
    repack(state.nodes, state.pool, state.attrs, state.meta, pool, attrs)
    return state._replace(pool=pool, attrs=attrs)


def more_pending(state: State) -> State:
    """Twice the room for pending matches."""
    return state._replace(
        pending=larger(state.pending), pending_attrs=larger(state.pending_attrs), heap=larger(state.heap)
    )


def more_sources(state: State, sources: int) -> State:
    """Room for at least `sources` sources."""
    leaves = len(state.tree) // 2
    if sources <= leaves:
        return state
    wide = 1 << (sources - 1).bit_length()
    tree = np.full(2 * wide, FOREVER)
    tree[wide : wide + leaves] = state.tree[leaves:]
    for i in range(wide - 1, 0, -1):
        tree[i] = min(tree[2 * i], tree[2 * i + 1])
    return state._replace(tree=tree)


def state_bytes(state: State) -> int:
    """Bytes of all arrays."""
    return sum(array.nbytes for array in state)


def dump(state: State, more: dict[str, Array], header: dict[str, Any]) -> bytes:
    """The state as bytes: a line of JSON with the shapes of the arrays, then their filled parts."""
    packed = more_pool(_without_empty(_without_gaps(state)))
    meta = packed.meta
    parts = {
        "nodes": packed.nodes[: meta[META.node_top]], "pool": packed.pool[: meta[META.pool_top]],
        "attrs": packed.attrs[: meta[META.pool_top]], "pending": packed.pending[: meta[META.pending_top]],
        "pending_attrs": packed.pending_attrs[: meta[META.pending_top]], "heap": packed.heap[: meta[META.heap]],
        "tree": packed.tree, "meta": meta, "recent": packed.recent[: meta[META.node_top]], **more,
    }  # fmt: skip
    shapes = {name: [part.dtype.str, *part.shape] for name, part in parts.items()}
    line = json.dumps({**header, "version": VERSION, "arrays": shapes}).encode() + b"\n"
    return with_checksum([line, *(np.ascontiguousarray(part).tobytes() for part in parts.values())])


def _without_gaps(state: State) -> State:
    """A copy without the free places among the pending matches, of which a burst leaves as many as it had matches."""
    meta, nodes = state.meta.copy(), state.nodes[: int(state.meta[META.node_top])].copy()
    pending, heap = state.pending[: int(meta[META.pending_top])], state.heap[: int(meta[META.heap])].copy()
    held = pending[:, PENDING.node] >= 0
    held[heap[:, TIMER.place]] = True  # also of retracted matches, which are dropped when they are due
    place = np.append(0, np.cumsum(held))  # counted from 1, and 0 for none, as the lists of matches have it
    pending = pending[held]
    for field in (PENDING.before, PENDING.next):
        pending[:, field] = place[pending[:, field]]
    nodes[:, NODE.matches] = place[nodes[:, NODE.matches]]
    heap[:, TIMER.place] = place[heap[:, TIMER.place] + 1] - 1
    meta[[META.pending_top, META.pending_free]] = len(pending), -1
    attrs = state.pending_attrs[: len(held)][held]
    return state._replace(nodes=nodes, pending=pending, pending_attrs=attrs, heap=heap, meta=meta)


def _without_empty(state: State) -> State:
    """The state without empty per-key event lists; the others move up."""
    meta, pending, nodes = state.meta, state.pending, state.nodes
    held = (nodes[:, NODE.events] > 0) | ((nodes[:, NODE.events] == 0) & (nodes[:, NODE.matches] != 0))
    held[: EMPTY_NODE + 1] = True
    mine = pending[:, PENDING.node] >= 0
    pending[mine, PENDING.node] = (np.cumsum(held) - 1)[pending[mine, PENDING.node]]
    kept = nodes[held]
    meta[[META.node_top, META.nodes, META.node_free]] = len(kept), len(kept) - EMPTY_NODE - 1, 0
    return state._replace(nodes=kept, recent=state.recent[: len(held)][held])


def load(blob: bytes) -> tuple[dict[str, Any], State, dict[str, Array]]:
    """Header, state and further arrays from bytes.

    Raises:
        ValueError: the bytes are no snapshot, of another version, or damaged.
    """
    line, separator, _ = blob.partition(b"\n")
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not separator or not isinstance(header, dict) or header.get("version") != VERSION:
        raise ValueError(
            f"snapshot: found {line[:40]!r}, expected the header of an engine's snapshot of version {VERSION}"
        )
    rest, arrays, place = opened(blob)[len(line) + 1 :], {}, 0
    for name, (kind, *shape) in header["arrays"].items():
        arrays[name] = np.frombuffer(rest, kind, int(np.prod(shape)), place).reshape(shape).copy()
        place += arrays[name].nbytes
    for name in ("nodes", "recent", "pending", "pending_attrs", "heap"):
        arrays[name] = larger(arrays[name], 1.0)
    heap_room = max(len(arrays["pending"]), len(arrays["heap"]))
    arrays["heap"] = larger(arrays["heap"], heap_room / max(1, len(arrays["heap"])))
    slots = np.zeros((1 << (2 * len(arrays["nodes"]) + 4).bit_length(), len(SLOT)), np.int64)
    rehash(slots, arrays["nodes"], int(arrays["meta"][META.node_top]))
    more = {name: arrays.pop(name) for name in list(arrays) if name not in State._fields}
    return header, State(slots=slots, **arrays), more


def counters(state: State) -> dict[str, int]:
    """Sizes of the state."""
    meta = state.meta
    waiting = state.pending[: meta[META.pending_top]]
    return {
        "stored_events": int(meta[META.stored]), "keys": int(meta[META.nodes]), "longest_stamp": int(meta[META.longest]),
        "waiting_matches": int((waiting[:, PENDING.node] >= 0).sum()), "state_bytes": state_bytes(state),
    }  # fmt: skip
