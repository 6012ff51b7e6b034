"""Conversion of an engine's arrays when its patterns change: data of the remaining ones is moved, the rest freed."""

from collections.abc import Collection

import numpy as np

from whenabouts_cloud.cep.kernel.compile_plans import Compiled
from whenabouts_cloud.cep.kernel.finality import enter
from whenabouts_cloud.cep.kernel.hts import LOW, clear, forget
from whenabouts_cloud.cep.kernel.layout import (
    CHAIN,
    CHAIN_WORDS,
    CHAINS,
    META,
    NEVER,
    NODE,
    PENDING,
    PENDING_EVENTS,
    State,
)
from whenabouts_cloud.cep.runtime.store import WAITING, more_pool, new_recent
from whenabouts_cloud.jit import Array, compiled_noref


def changed(state: State, old: Compiled, new: Compiled, settled: Collection[int]) -> State:
    """Convert the state from `old` to `new`; events before the `settled` indices are past. Cost: a pass over the state."""
    meta, top = state.meta, int(state.meta[META.node_top])
    # The rings of recent events start anew: they name classes by numbers, which are different now.
    meta[META.recent_since] = state.nodes[:top, NODE.maximum].max(initial=NEVER)
    nodes = _nodes(state.nodes, top, _sources(old, new, settled))
    pending, pending_attrs = _pending(state, old, new)
    attrs = np.full((len(state.pool), len(new.attributes)), np.nan)
    for place, name in enumerate(new.attributes):
        if name in old.attributes:
            attrs[:, place] = state.attrs[:, old.attributes.index(name)]
    meta[META.stored] = nodes[:top, NODE.events][nodes[:top, NODE.events] > 0].sum()
    meta[[META.pending, META.heap, META.pending_top]], meta[META.pending_free] = 0, -1
    resized = state._replace(
        nodes=nodes, attrs=attrs, pending=pending, pending_attrs=pending_attrs,
        heap=np.zeros((len(pending), 2), np.int64), recent=new_recent(len(nodes), new.recent),
    )  # fmt: skip
    _enter_all(resized, int((pending[:, PENDING.serial] > 0).sum()))
    _forget_empty(resized.slots, nodes, meta)
    return more_pool(resized)


def _sources(old: Compiled, new: Compiled, settled: Collection[int]) -> list[int]:
    """For each new class, the old one whose chains it takes over, -1: none. Of several, the one that saw most events."""
    known: dict[object, int] = {}
    for kind in sorted(old.kinds, key=lambda kind: kind.since):
        since = 0 if kind.since in settled else kind.since
        known.setdefault(kind._replace(since=since), old.kinds.index(kind))
    return [known.get(kind, -1) for kind in new.kinds]


def _nodes(nodes: Array, top: int, sources: list[int]) -> Array:
    """The per-key event lists with the chains of the new classes."""
    moved = np.zeros((len(nodes), CHAINS + CHAIN_WORDS * len(sources)), np.int64)
    moved[:, :CHAINS] = nodes[:, :CHAINS]
    moved[:, NODE.matches] = 0
    used = nodes[:, NODE.events] >= 0
    used[top:] = False
    stored = np.zeros(len(nodes), np.int64)
    for c, source in enumerate(sources):
        into = slice(CHAINS + CHAIN_WORDS * c, CHAINS + CHAIN_WORDS * (c + 1))
        if source < 0:
            moved[:, into.start + CHAIN.last] = NEVER
            continue
        begin = CHAINS + CHAIN_WORDS * source
        chains = nodes[:, begin : begin + CHAIN_WORDS]
        moved[:, into] = chains
        held = used & (chains[:, CHAIN.block] != 0)
        stored += np.where(held, (chains[:, CHAIN.span] & LOW) - (chains[:, CHAIN.span] >> 32), 0)
    moved[used, NODE.events] = stored[used]
    return moved


def _pending(state: State, old: Compiled, new: Compiled) -> tuple[Array, Array]:
    """The pending matches of the remaining alternatives, at the head of their array."""
    place_of = {name: v for v, name in enumerate(new.alternatives)}
    alternatives = np.array([place_of.get(name, -1) for name in old.alternatives], np.int64)
    rows = state.pending[: int(state.meta[META.pending_top])]
    waiting = np.flatnonzero(rows[:, PENDING.node] >= 0)
    kept = waiting[alternatives[rows[waiting, PENDING.alternative]] >= 0]
    room = max(WAITING, len(kept) * 5 // 4)
    pending = np.zeros((room, PENDING_EVENTS + 3 * new.most), np.int64)
    columns = min(pending.shape[1], rows.shape[1])
    pending[: len(kept), :columns] = rows[kept, :columns]
    pending[: len(kept), PENDING.alternative] = alternatives[rows[kept, PENDING.alternative]]
    values = np.full((room, new.most, len(new.attributes)), np.nan)
    before = state.pending_attrs.reshape(len(state.pending), old.most, len(old.attributes))
    most = min(old.most, new.most)
    for place, name in enumerate(new.attributes):
        if name in old.attributes:
            values[: len(kept), :most, place] = before[kept, :most, old.attributes.index(name)]
    return pending, values.reshape(room, new.most * len(new.attributes))


@compiled_noref
def _enter_all(state: State, count: int) -> None:
    """Enter the first `count` matches as pending."""
    for place in range(count):
        enter(state, place)
    state.meta[META.pending_top] = count


@compiled_noref
def _forget_empty(slots: Array, nodes: Array, meta: Array) -> None:
    """Remove the empty per-key event lists."""
    for node in range(meta[META.node_top]):
        if nodes[node, NODE.events] == 0 and nodes[node, NODE.matches] == 0:
            if node > 1:
                forget(slots, nodes, meta, node)
            else:
                clear(nodes, node, 0)
