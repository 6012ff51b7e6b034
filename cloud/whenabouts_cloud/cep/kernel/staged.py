"""Staging of one event's changes to the pending matches: committed when its search is complete, undone before a repetition.

New matches that must wait are in a list (`META.staged`). An emitted match that the event violates, on arrival, has a row in
the results, whose `retracted_at` is -2 minus its place in `pending` until the event is complete.
"""

from typing import Any

from whenabouts_cloud.cep.kernel.arguments import Event, Machine, Site, alternative_of
from whenabouts_cloud.cep.kernel.emit import AGAIN, NO_POSITION, breaks, negates, offer
from whenabouts_cloud.cep.kernel.finality import bind_pending, enter, free_pending, is_own, leave
from whenabouts_cloud.cep.kernel.layout import BOUND, DONE, META, MORE_RETRACTED, NODE, PENDING, Results, State
from whenabouts_cloud.cep.kernel.program import ELEMENT
from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref, inlined


@compiled_inline
def begin_stage(meta: Array) -> None:
    """Remembers the number of filled rows of the results, for `undo`."""
    meta[META.group], meta[META.retracted_group] = meta[META.emitted], meta[META.retracted]
    meta[META.begun_candidates], meta[META.begun_negated] = meta[META.candidates], meta[META.negated_events]
    meta[META.staged] = -1


@compiled_noref
def undo(state: State) -> None:
    """Undoes the changes of this event's search, which will be repeated."""
    meta = state.meta
    meta[META.emitted], meta[META.retracted] = meta[META.group], meta[META.retracted_group]
    meta[META.candidates], meta[META.negated_events] = meta[META.begun_candidates], meta[META.begun_negated]
    while meta[META.staged] >= 0:
        place = meta[META.staged]
        meta[META.staged] = state.pending[place, PENDING.next]
        free_pending(state, place)


@compiled_noref
def retract(machine: Machine, node: int, c: int, event: Event) -> Any:
    """Retracts the emitted matches of the node that an event of a class violates; names them by their place in `pending`."""
    program, state, scratch = machine.program, machine.state, machine.scratch
    pending, following = state.pending, state.nodes[node, NODE.matches]
    while following != 0:
        place = following - 1
        following = pending[place, PENDING.next]
        v = pending[place, PENDING.alternative]
        alternative, status = alternative_of(program.alternatives, v), DONE
        if alternative.refined:
            if negates(program, v, c):
                bind_pending(state, place, alternative.width, scratch)
                serial = pending[place, PENDING.serial]
                status = offer(machine, Site(v, NO_POSITION, node), AGAIN, serial, event.arrival)
        else:
            bind_pending(state, place, alternative.width, scratch)
            own = is_own(scratch.bound, alternative.width, event.arrival)
            if not own and breaks(program, scratch, v, event, c):
                status = _write_retraction(machine, v, place)
        if status != DONE:
            return status
    return DONE


@inlined
def _write_retraction(machine: Machine, v: int, place: int) -> Any:
    """Writes the bound pending match to the retractions, unless another class of the same event has done so."""
    out, meta = machine.out, machine.state.meta
    row, named = meta[META.retracted], -place - 2
    for other in range(meta[META.retracted_group], row):
        if out.retracted_at[other] == named:
            return DONE
    if row >= len(out.retracted):
        return MORE_RETRACTED
    alternative = alternative_of(machine.program.alternatives, v)
    for column in range(out.retracted.shape[1]):
        out.retracted[row, column] = -1
    for i in range(alternative.width):
        column = machine.program.elements[alternative.element + i, ELEMENT.column]
        out.retracted[row, column] = machine.scratch.bound[i, BOUND.arrival]
    out.retracted_which[row], out.retracted_at[row] = alternative.plan, named
    meta[META.retracted] = row + 1
    return DONE


@compiled_inline
def commit(state: State, out: Results) -> None:
    """Commits a complete search: its new matches become pending, the retracted ones no longer are."""
    meta, pending = state.meta, state.pending
    for row in range(meta[META.retracted_group], meta[META.retracted]):
        place = -out.retracted_at[row] - 2
        leave(state, place)
        pending[place, PENDING.node] = -1  # its entry in the heap is dropped when it is due
        pending[place, PENDING.next] = 0
    while meta[META.staged] >= 0:
        place = meta[META.staged]
        meta[META.staged] = pending[place, PENDING.next]
        enter(state, place)


@compiled_inline
def number_rows(meta: Array, out: Results, spare: Array, arrival: int) -> None:
    """Writes the event's index to the rows emitted and retracted at it, and sorts them lexicographically."""
    if meta[META.emitted] > meta[META.group]:
        for row in range(meta[META.group], meta[META.emitted]):
            out.emitted_at[row] = arrival
        if meta[META.emitted] > meta[META.group] + 1:
            sort_rows(out.emitted, out.emitted_which, meta[META.group], meta[META.emitted], spare)
    if meta[META.retracted] > meta[META.retracted_group]:
        for row in range(meta[META.retracted_group], meta[META.retracted]):
            out.retracted_at[row] = arrival
        sort_rows(out.retracted, out.retracted_which, meta[META.retracted_group], meta[META.retracted], spare)


@compiled_noref
def sort_rows(rows: Array, which: Array, first: int, last: int, spare: Array) -> None:
    """Sorts rows [first, last) lexicographically, then by pattern: by Shell sort (insertion sort for up to 16 rows)."""
    step = 1
    while step * 16 < last - first:
        step = step * 3 + 1
    while step > 0:
        for i in range(first + step, last):
            if not _later(rows, which, i - step, i):
                continue
            for column in range(rows.shape[1]):
                spare[column] = rows[i, column]
            own = which[i] if len(which) else 0
            j = i
            while j - step >= first and _behind(rows, which, j - step, spare, own):
                for column in range(rows.shape[1]):
                    rows[j, column] = rows[j - step, column]
                if len(which):
                    which[j] = which[j - step]
                j -= step
            for column in range(rows.shape[1]):
                rows[j, column] = spare[column]
            if len(which):
                which[j] = own
        step //= 3


@compiled_noref
def _later(rows: Array, which: Array, a: int, b: int) -> bool:
    """True if row a belongs behind row b."""
    for column in range(rows.shape[1]):
        if rows[a, column] != rows[b, column]:
            return bool(rows[a, column] > rows[b, column])
    return bool(len(which) > 0 and which[a] > which[b])


@compiled_noref
def _behind(rows: Array, which: Array, a: int, spare: Array, own: int) -> bool:
    """True if row a belongs behind the spare row."""
    for column in range(rows.shape[1]):
        if rows[a, column] != spare[column]:
            return bool(rows[a, column] > spare[column])
    return bool(len(which) > 0 and which[a] > own)
