"""What one event does to the matches that wait, until its search is through: then it holds, or it is undone and begun anew.

Matches found that must wait stand in a list (`meta[STAGED]`). A told one that the event violates, on arrival, has a row in
the results, whose `retracted_at` is -2 less the place where it waits until the event is through.
"""

from typing import Any

from whenabouts_cloud.cep.kernel import layout as at
from whenabouts_cloud.cep.kernel import program as of
from whenabouts_cloud.cep.kernel.emit import AGAIN, breaks, negates, offer
from whenabouts_cloud.cep.kernel.finality import bind_pending, enter, free_pending, is_own, leave
from whenabouts_cloud.cep.kernel.layout import Results, Scratch, State
from whenabouts_cloud.cep.kernel.program import Program
from whenabouts_cloud.jit import Array, bare, woven


@woven
def begin_stage(meta: Array) -> None:
    """Remembers where the results stand, to come back to."""
    meta[at.GROUP], meta[at.RETRACTED_GROUP] = meta[at.TOLD], meta[at.RETRACTED]
    meta[at.BEGUN_CANDIDATES], meta[at.BEGUN_NEGATED] = meta[at.CANDIDATES], meta[at.NEGATED_EVENTS]
    meta[at.STAGED] = -1


@bare
def undo(state: State) -> None:
    """Takes back what the search for this event has found, for it will begin anew."""
    meta = state.meta
    meta[at.TOLD], meta[at.RETRACTED] = meta[at.GROUP], meta[at.RETRACTED_GROUP]
    meta[at.CANDIDATES], meta[at.NEGATED_EVENTS] = meta[at.BEGUN_CANDIDATES], meta[at.BEGUN_NEGATED]
    while meta[at.STAGED] >= 0:
        place = meta[at.STAGED]
        meta[at.STAGED] = state.pending[place, at.P_NEXT]
        free_pending(state, place)


@bare
def retract(
    p: Program, state: State, out: Results, s: Scratch, node: int, c: int, t: int, t_max: int, index: int
) -> Any:
    """Told matches of the node that an event of a class violates: taken back, and named by where they wait."""
    meta, pending = state.meta, state.pending
    place = state.nodes[node, at.MATCHES]
    while place != 0:
        one = place - 1
        place = pending[one, at.P_NEXT]
        variant = pending[one, at.P_VARIANT]
        count = p.variant[variant, of.V_WIDTH]
        if p.variant[variant, of.V_REFINED]:
            if not negates(p, variant, c):
                continue
            bind_pending(state, one, count, s)
            status = offer(p, state, out, s, variant, node, AGAIN, pending[one, at.P_SERIAL], index)
            if status != at.DONE:
                return status
            continue
        bind_pending(state, one, count, s)
        if is_own(count, index, s) or not breaks(p, s, variant, t, t_max, c, state.attrs.shape[1]):
            continue
        row = meta[at.RETRACTED]
        seen = False  # by another class of the same event
        for other in range(meta[at.RETRACTED_GROUP], row):
            seen = seen or out.retracted_at[other] == -one - 2
        if seen:
            continue
        if row >= len(out.retracted):
            return at.MORE_RETRACTED
        for column in range(out.retracted.shape[1]):
            out.retracted[row, column] = -1
        for i in range(count):
            out.retracted[row, p.element[p.variant[variant, of.V_ELEMENT] + i, of.E_COLUMN]] = s.num[i, at.S_INDEX]
        out.retracted_which[row] = p.variant[variant, of.V_PLAN]
        out.retracted_at[row] = -one - 2
        meta[at.RETRACTED] = row + 1
    return at.DONE


@bare
def commit(state: State, out: Results) -> None:
    """The search is through: what was found waits from now on, what was taken back no longer does."""
    meta, pending = state.meta, state.pending
    for row in range(meta[at.RETRACTED_GROUP], meta[at.RETRACTED]):
        place = -out.retracted_at[row] - 2
        leave(state, place)
        pending[place, at.P_NODE] = -1  # its entry in the heap is dropped when its time comes
        pending[place, at.P_NEXT] = 0
    while meta[at.STAGED] >= 0:
        place = meta[at.STAGED]
        meta[at.STAGED] = pending[place, at.P_NEXT]
        enter(state, place)
