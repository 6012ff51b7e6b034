"""The arrays of an engine when its patterns change: what those that stay need is moved to its new places, the rest freed."""

from collections.abc import Collection

import numpy as np

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel.finality import enter
from whenabouts_cloud.cep.kernel.hts import LOW, clear, forget
from whenabouts_cloud.cep.kernel.layout import State
from whenabouts_cloud.cep.kernel.program import Compiled
from whenabouts_cloud.cep.runtime.store import WAITING, more_pool
from whenabouts_cloud.jit import Array, bare


def changed(state: State, old: Compiled, new: Compiled, settled: Collection[int]) -> State:
    """The state of `old` as that of `new`; events before the `settled` indices are past. Cost: a pass over all of it."""
    meta, top = state.meta, int(state.meta[at.NODE_TOP])
    nodes = _nodes(state.nodes, top, _sources(old, new, settled))
    pending, pending_attrs = _pending(state, old, new)
    attrs = np.full((len(state.pool), len(new.attributes)), np.nan)
    for place, name in enumerate(new.attributes):
        if name in old.attributes:
            attrs[:, place] = state.attrs[:, old.attributes.index(name)]
    meta[at.STORED] = nodes[:top, at.COUNT][nodes[:top, at.COUNT] > 0].sum()
    meta[[at.PENDING, at.HEAP, at.PENDING_TOP]], meta[at.PENDING_FREE] = 0, -1
    found = state._replace(
        nodes=nodes, attrs=attrs, pending=pending, pending_attrs=pending_attrs,
        heap=np.zeros((len(pending), 2), np.int64),
    )  # fmt: skip
    _enter_all(found, int((pending[:, at.P_SERIAL] > 0).sum()))
    _forget_empty(found.slots, nodes, meta)
    return more_pool(found)


def _sources(old: Compiled, new: Compiled, settled: Collection[int]) -> list[int]:
    """Of each new class the old one whose chains it takes over, -1: none. Of several the one that has seen most."""
    found: dict[object, int] = {}
    for kind in sorted(old.kinds, key=lambda kind: kind.since):
        since = 0 if kind.since in settled else kind.since
        found.setdefault(kind._replace(since=since), old.kinds.index(kind))
    return [found.get(kind, -1) for kind in new.kinds]


def _nodes(nodes: Array, top: int, sources: list[int]) -> Array:
    """The main nodes with the chains of other classes."""
    found = np.zeros((len(nodes), at.NODE + at.CHAIN_WORDS * len(sources)), np.int64)
    found[:, : at.NODE] = nodes[:, : at.NODE]
    found[:, [at.STATE, at.MATCHES]] = 0
    used = nodes[:, at.COUNT] >= 0
    used[top:] = False
    stored = np.zeros(len(nodes), np.int64)
    for c, source in enumerate(sources):
        into = slice(at.NODE + at.CHAIN_WORDS * c, at.NODE + at.CHAIN_WORDS * (c + 1))
        if source < 0:
            found[:, into.start + at.LAST] = at.NEVER
            continue
        begin = at.NODE + at.CHAIN_WORDS * source
        chains = nodes[:, begin : begin + at.CHAIN_WORDS]
        found[:, into] = chains
        held = used & (chains[:, at.BLOCK] != 0)
        stored += np.where(held, (chains[:, at.RANGE] & LOW) - (chains[:, at.RANGE] >> 32), 0)
        if c < 62:
            found[:, at.STATE] |= held.astype(np.int64) << c
    found[used, at.COUNT] = stored[used]
    return found


def _pending(state: State, old: Compiled, new: Compiled) -> tuple[Array, Array]:
    """The waiting matches of those variants that are left, at the head of their array."""
    place_of = {name: v for v, name in enumerate(new.variants)}
    variants = np.array([place_of.get(name, -1) for name in old.variants], np.int64)
    rows = state.pending[: int(state.meta[at.PENDING_TOP])]
    waiting = np.flatnonzero(rows[:, at.P_NODE] >= 0)
    kept = waiting[variants[rows[waiting, at.P_VARIANT]] >= 0]
    room = max(WAITING, len(kept) * 5 // 4)
    pending = np.zeros((room, at.P_EVENTS + 3 * new.most), np.int64)
    columns = min(pending.shape[1], rows.shape[1])
    pending[: len(kept), :columns] = rows[kept, :columns]
    pending[: len(kept), at.P_VARIANT] = variants[rows[kept, at.P_VARIANT]]
    values = np.full((room, new.most, len(new.attributes)), np.nan)
    before = state.pending_attrs.reshape(len(state.pending), old.most, len(old.attributes))
    most = min(old.most, new.most)
    for place, name in enumerate(new.attributes):
        if name in old.attributes:
            values[: len(kept), :most, place] = before[kept, :most, old.attributes.index(name)]
    return pending, values.reshape(room, new.most * len(new.attributes))


@bare
def _enter_all(state: State, count: int) -> None:
    """Lets the first `count` matches wait."""
    for place in range(count):
        enter(state, place)
    state.meta[at.PENDING_TOP] = count


@bare
def _forget_empty(slots: Array, nodes: Array, meta: Array) -> None:
    """Takes away the main nodes that hold nothing."""
    for node in range(meta[at.NODE_TOP]):
        if nodes[node, at.COUNT] == 0 and nodes[node, at.MATCHES] == 0:
            if node > 1:
                forget(slots, nodes, meta, node)
            else:
                clear(nodes, node, 0)
