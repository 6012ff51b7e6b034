"""The arrays of an engine: made, grown when the machine code asks, counted, written out and read back."""

import json
from typing import Any

import numpy as np

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel.conditions import STEPS
from whenabouts_cloud.cep.kernel.hts import clear, packed_places, rehash, repack
from whenabouts_cloud.cep.kernel.layout import Results, Scratch, State
from whenabouts_cloud.cep.runtime.checksum import opened, sealed
from whenabouts_cloud.jit import Array

POOL, MAIN_NODES, WAITING, ROWS = 1 << 8, 1 << 5, 1 << 5, 1 << 10  # places at first
POOL_GROWTH = 1.1  # little, so that the room behind the top stays small beside what is stored
POOL_SPARE = 1.25  # beyond that it shrinks when it is packed
NODE_GROWTH = 1.25
VERSION = 3


def new_state(classes: int, most: int, attributes: int, sources: int) -> State:
    """The arrays of an engine that has seen nothing."""
    meta = np.zeros(at.META, np.int64)
    meta[[at.FRONTIER, at.NEWEST, at.SWEPT, at.FORGOTTEN]] = at.NEVER
    meta[at.POOL_TOP], meta[at.NODE_TOP] = 4, 2
    meta[[at.PENDING_FREE, at.STAGED]] = -1
    nodes = np.zeros((MAIN_NODES, at.NODE + at.CHAIN_WORDS * classes), np.int64)
    for node in range(2):
        clear(nodes, node, 0)
    leaves = 1 << max(0, sources - 1).bit_length()
    return State(
        np.zeros((4 * MAIN_NODES, 2), np.int64), nodes, np.zeros((POOL, 2), np.int64), np.zeros((POOL, attributes)),
        np.zeros((WAITING, at.P_EVENTS + 3 * most), np.int64), np.zeros((WAITING, most * attributes)),
        np.zeros((WAITING, 2), np.int64), np.full(2 * leaves, at.FOREVER), meta,
    )  # fmt: skip


def new_results(width: int, most: int, plans: int, rows: int = ROWS) -> Results:
    """Room for results."""

    def table(columns: int) -> Array:
        return np.empty((min(rows, ROWS), columns), np.int64)

    return Results(
        np.empty((rows, width), np.int64), np.empty(rows, np.int64), np.empty(rows if plans > 1 else 0, np.int64),
        table(width), np.empty(ROWS, np.int64), np.empty(ROWS, np.int64), np.empty(ROWS, np.int64), table(width + 2),
        table(width + 2), table(at.CANDIDATE + 3 * most), table(4),
    )  # fmt: skip


def new_scratch(attributes: int, width: int) -> Scratch:
    """Room for a search."""
    return Scratch(
        np.zeros((64, at.SCRATCH), np.int64), np.zeros((64, attributes)), np.zeros(STEPS), np.zeros(width, np.int64)
    )


def larger(array: Array, factor: float = 2.0) -> Array:
    """The array with more room behind."""
    grown = np.zeros((int(len(array) * factor) + 64, *array.shape[1:]), array.dtype)
    grown[: len(array)] = array
    return grown


def more_nodes(state: State) -> State:
    """More room for main nodes, and a hash table that is less than half full."""
    nodes = larger(state.nodes, NODE_GROWTH)
    slots = np.zeros((1 << (2 * len(nodes) + 4).bit_length(), 2), np.int64)
    rehash(slots, nodes, int(state.meta[at.NODE_TOP]))
    return state._replace(slots=slots, nodes=nodes)


def more_pool(state: State, columns: int | None = None) -> State:
    """More room for events, all blocks packed anew; `columns` 3 from when on events have a length."""
    needed, largest = packed_places(state.nodes, state.meta)
    places = max(POOL, int(needed * POOL_GROWTH) + largest + 64)
    if places < len(state.pool) < places * POOL_SPARE:  # what is held swings with each sweep
        places = len(state.pool)
    pool = np.zeros((places, columns or state.pool.shape[1]), np.int64)
    attrs = np.zeros((places, state.attrs.shape[1]))
    repack(state.nodes, state.pool, state.attrs, state.meta, pool, attrs)
    return state._replace(pool=pool, attrs=attrs)


def more_pending(state: State) -> State:
    """Twice the room for matches that wait."""
    return state._replace(
        pending=larger(state.pending), pending_attrs=larger(state.pending_attrs), heap=larger(state.heap)
    )


def more_sources(state: State, sources: int) -> State:
    """Room for at least so many sources."""
    leaves = len(state.tree) // 2
    if sources <= leaves:
        return state
    wide = 1 << (sources - 1).bit_length()
    tree = np.full(2 * wide, at.FOREVER)
    tree[wide : wide + leaves] = state.tree[leaves:]
    for i in range(wide - 1, 0, -1):
        tree[i] = min(tree[2 * i], tree[2 * i + 1])
    return state._replace(tree=tree)


def state_bytes(state: State) -> int:
    """Bytes of everything that is kept."""
    return sum(array.nbytes for array in state)


def dump(state: State, more: dict[str, Array], header: dict[str, Any]) -> bytes:
    """The state as bytes: a line of JSON that says what follows, then the arrays, as far as they are filled."""
    packed = more_pool(_without_empty(state))
    meta = packed.meta
    parts = {
        "nodes": packed.nodes[: meta[at.NODE_TOP]], "pool": packed.pool[: meta[at.POOL_TOP]],
        "attrs": packed.attrs[: meta[at.POOL_TOP]], "pending": packed.pending[: meta[at.PENDING_TOP]],
        "pending_attrs": packed.pending_attrs[: meta[at.PENDING_TOP]], "heap": packed.heap[: meta[at.HEAP]],
        "tree": packed.tree, "meta": meta, **more,
    }  # fmt: skip
    shapes = {name: [part.dtype.str, *part.shape] for name, part in parts.items()}
    line = json.dumps({**header, "version": VERSION, "arrays": shapes}).encode() + b"\n"
    return sealed([line, *(np.ascontiguousarray(part).tobytes() for part in parts.values())])


def _without_empty(state: State) -> State:
    """A copy without main nodes that hold nothing; the others move up."""
    meta, pending = state.meta.copy(), state.pending.copy()
    nodes = state.nodes[: int(meta[at.NODE_TOP])]
    held = (nodes[:, at.COUNT] > 0) | ((nodes[:, at.COUNT] == 0) & (nodes[:, at.MATCHES] != 0))
    held[: at.EMPTY_NODE + 1] = True
    waiting = pending[: int(meta[at.PENDING_TOP])]
    mine = waiting[:, at.P_NODE] >= 0
    waiting[mine, at.P_NODE] = (np.cumsum(held) - 1)[waiting[mine, at.P_NODE]]
    kept = nodes[held]
    meta[[at.NODE_TOP, at.NODES, at.NODE_FREE]] = len(kept), len(kept) - at.EMPTY_NODE - 1, 0
    return state._replace(nodes=kept, meta=meta, pending=pending)


def load(blob: bytes) -> tuple[dict[str, Any], State, dict[str, Array]]:
    """Header, state and further arrays from bytes.

    Raises:
        ValueError: it is no snapshot, of another version, or damaged.
    """
    line, found, _ = blob.partition(b"\n")
    try:
        header = json.loads(line)
    except ValueError:
        header = None
    if not found or not isinstance(header, dict) or header.get("version") != VERSION:
        raise ValueError(
            f"snapshot: found {line[:40]!r}, expected the header of an engine's snapshot of version {VERSION}"
        )
    rest, arrays, place = opened(blob)[len(line) + 1 :], {}, 0
    for name, (kind, *shape) in header["arrays"].items():
        arrays[name] = np.frombuffer(rest, kind, int(np.prod(shape)), place).reshape(shape).copy()
        place += arrays[name].nbytes
    arrays["nodes"] = larger(arrays["nodes"], 1.0)
    for name in ("pending", "pending_attrs", "heap"):
        arrays[name] = larger(arrays[name], 1.0)
    heap_room = max(len(arrays["pending"]), len(arrays["heap"]))
    arrays["heap"] = larger(arrays["heap"], heap_room / max(1, len(arrays["heap"])))
    slots = np.zeros((1 << (2 * len(arrays["nodes"]) + 4).bit_length(), 2), np.int64)
    rehash(slots, arrays["nodes"], int(arrays["meta"][at.NODE_TOP]))
    more = {name: arrays.pop(name) for name in list(arrays) if name not in State._fields}
    return header, State(slots=slots, **arrays), more


def counters(state: State) -> dict[str, int]:
    """What is held now."""
    meta = state.meta
    waiting = state.pending[: meta[at.PENDING_TOP]]
    return {
        "stored_events": int(meta[at.STORED]), "keys": int(meta[at.NODES]), "longest_stamp": int(meta[at.LONGEST]),
        "waiting_matches": int((waiting[:, at.P_NODE] >= 0).sum()), "state_bytes": state_bytes(state),
    }  # fmt: skip
