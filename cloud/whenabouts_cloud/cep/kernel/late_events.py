"""Events that break the promise: not taken in, but noted with what they would have changed."""

from typing import Any

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel import program as of
from whenabouts_cloud.cep.kernel.emit import ADD, NO_POSITION, NOT_EAGER, REMOVE, negates
from whenabouts_cloud.cep.kernel.hts import find
from whenabouts_cloud.cep.kernel.layout import Block, Results, Scratch, State
from whenabouts_cloud.cep.kernel.program import Program
from whenabouts_cloud.cep.kernel.search import search
from whenabouts_cloud.jit import Array, bare


@bare
def note_late(
    p: Program, state: State, block: Block, out: Results, s: Scratch, i: int, t: int, t_max: int, index: int,
    longest: int, hold: int,
) -> Any:  # fmt: skip
    """Notes an event that came too late, with the matches it would have added or removed among what is held."""
    meta, nodes = state.meta, state.nodes
    begun = (meta[at.LATE], meta[at.ADDED], meta[at.REMOVED], meta[at.CANDIDATES], meta[at.NEGATED_EVENTS])
    if begun[0] >= len(out.late):
        return at.MORE_LATE
    for column in range(state.attrs.shape[1]):
        s.attrs[at.EVENT_PLACE, column] = block.attrs[i, column]
    oldest = max(meta[at.FRONTIER] - longest - hold, meta[at.FORGOTTEN])
    kind = block.type_code[i]
    for place in range(p.type_start[kind], p.type_start[kind + 1]):
        c = p.type_class[place]
        if p.klass[c, of.K_TRUE] >= 0 and not block.true[p.klass[c, of.K_TRUE], i]:
            continue
        node = 0
        if p.klass[c, of.K_KEYED]:
            node = find(state.slots, nodes, block.key[i])
            if node == 0:
                node = at.EMPTY_NODE
        for use in range(p.klass[c, of.K_USE], p.klass[c, of.K_USE_END]):
            status = search(
                p,
                state,
                out,
                s,
                p.use[use, of.U_VARIANT],
                p.use[use, of.U_POSITION],
                node,
                t,
                t_max,
                index,
                ADD,
                oldest,
                NOT_EAGER,
                longest,
                index,
            )
            if status != at.DONE:
                _forget_late(meta, begun)
                return status
        for v in range(len(p.variant)):
            if p.klass[c, of.K_FORBID] and p.variant[v, of.V_WINDOW] >= 0 and negates(p, v, c):
                status = search(
                    p, state, out, s, v, NO_POSITION, node, t, t_max, c, REMOVE, oldest, NOT_EAGER, longest, index
                )  # fmt: skip
                if status != at.DONE:
                    _forget_late(meta, begun)
                    return status
    out.late[begun[0]] = index
    meta[at.LATE] = begun[0] + 1
    meta[at.LATE_TOTAL] += 1
    return at.DONE


@bare
def _forget_late(meta: Array, begun: Any) -> None:
    """Takes back what was noted for a late event, for it will be noted anew."""
    meta[at.ADDED], meta[at.REMOVED], meta[at.CANDIDATES], meta[at.NEGATED_EVENTS] = (
        begun[1],
        begun[2],
        begun[3],
        begun[4],
    )
