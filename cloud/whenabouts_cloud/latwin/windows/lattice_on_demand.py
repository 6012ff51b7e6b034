"""The lattice of a group's windows without storing it: walked for each question.

For more processes or longer windows than the box may have. A conjunction of local predicates needs no walk (`all_true`).
Another predicate is called once per question for each state (or combination) of the windows, and then evaluated for
blocks of global states by table.
"""

from itertools import product
from typing import Any

import numpy as np

from whenabouts_cloud.jit import Array, compiled_noref
from whenabouts_cloud.latwin.model.frame import Frame
from whenabouts_cloud.latwin.model.layout import CLOCK, HEAD, NO_ROOM, Ring
from whenabouts_cloud.latwin.model.predicate import All, AtLeast, Function, Not, Predicate, Related
from whenabouts_cloud.latwin.model.predicate import Any as Either
from whenabouts_cloud.latwin.windows import walk
from whenabouts_cloud.latwin.windows.all_true import CLOCKS_DISAGREE, IMPOSSIBLE, UNAVOIDABLE
from whenabouts_cloud.latwin.windows.bound_conjunction import OTHER, Conjunctions
from whenabouts_cloud.latwin.windows.ring import accept, note, release, renew


class Walked:
    """The CGSs of the windows, walked on demand."""

    def __init__(self) -> None:
        self._conjunctions = Conjunctions()

    def push(self, ring: Ring, process: int, state: int, clock: Array, lo: int, hi: int) -> int:
        """Takes a report, see `ring.accept`."""
        return int(push(ring, process, state, clock, lo, hi))

    def note(self, ring: Ring, process: int, state: int, clock: Array, lo: int) -> int:
        """Takes a clock heartbeat, see `ring.note`."""
        status = int(note(ring, process, state, clock, lo))
        if status >= 0:
            let_in(ring)
        return status

    def renew(self, ring: Ring, process: int, state: int) -> int:
        """Takes a renewal, see `ring.renew`."""
        status = int(renew(ring, process, state))
        if status >= 0:
            let_in(ring)
        return status

    def rebuild(self, ring: Ring) -> None:
        """Forgets the predicates, which are bound to the ring; nothing else is stored."""
        self._conjunctions.clear()

    def size(self, ring: Ring) -> int:
        """Number of CGSs."""
        return walk.count(frame_of(ring))

    def retracted(self) -> None:
        """Returns None: earlier CGSs are not stored. The counter `cuts` shows that some were retracted."""

    def states(self, ring: Ring) -> Array:
        """The CGSs in lexicographic order, (size, n) state numbers."""
        return walk.states(frame_of(ring))

    def possibly(self, ring: Ring, predicate: Predicate | Function) -> bool:
        """Pos: True if the predicate holds in a CGS; stops at the first block of CGSs with such a one."""
        verdict = self._conjunctions.verdict(ring, predicate)
        if verdict != OTHER:
            return verdict != IMPOSSIBLE
        window = frame_of(ring)
        return walk.possibly(window, truth_of(predicate, window))

    def definitely(self, ring: Ring, predicate: Predicate | Function) -> bool:
        """Def over the window, as `LatWin.definitely_in_window`, level by level."""
        verdict = self._conjunctions.verdict(ring, predicate)
        if verdict not in (OTHER, CLOCKS_DISAGREE):
            return verdict == UNAVOIDABLE
        window = frame_of(ring)
        return walk.definitely_in_window(window, truth_of(predicate, window))


def frame_of(ring: Ring) -> Frame:
    """The current windows, each from its oldest state."""
    first = ring.heads[:, HEAD.first].copy()
    count = ring.heads[:, HEAD.next] - first
    numbers = first[:, None] + np.arange(ring.window.shape[1])
    places = numbers % ring.heads[:, HEAD.width, None]
    clocks = ring.window[np.arange(len(first))[:, None], places, CLOCK:]
    return Frame(first, count, np.ascontiguousarray(clocks))


def truth_of(predicate: Predicate | Function, window: Frame) -> walk.Truth:
    """A predicate as a function of blocks of rows of places."""
    if not isinstance(predicate, Predicate):
        return walk.each(window, predicate)
    if isinstance(predicate, Related):
        return _looked_up(predicate, window)
    parts = [truth_of(part, window) for part in predicate.parts()]
    if isinstance(predicate, Not):
        return lambda rows: ~parts[0](rows)
    least = predicate.least if isinstance(predicate, AtLeast) else len(parts) if isinstance(predicate, All) else 1
    if not isinstance(predicate, AtLeast | All | Either):
        raise ValueError(f"predicate: found {predicate!r}, expected Local, Related, All, Any, Not or AtLeast")

    def enough(rows: walk.Rows) -> walk.Bools:
        true = np.zeros(len(rows), np.int64)
        for part in parts:
            true += part(rows)
        holds: walk.Bools = true >= least
        return holds

    return enough


def _looked_up(leaf: Related, window: Frame) -> walk.Truth:
    """A leaf as a table of the combinations of its processes' states."""
    chosen = list(leaf.processes)
    if not all(0 <= p < len(window.first) for p in chosen):
        raise ValueError(f"predicate: found one of processes {chosen}, expected 0 to {len(window.first) - 1}")
    numbers = [range(int(window.first[p]), int(window.first[p] + window.count[p])) for p in chosen]
    table = np.array([bool(leaf.function(*one)) for one in product(*numbers)], bool)
    table = table.reshape([len(one) for one in numbers])
    return lambda rows: table[tuple(rows[:, p] for p in chosen)]


@compiled_noref
def push(ring: Ring, process: int, number: int, clock: Array, lo: int, hi: int) -> Any:
    """Takes one report and performs all releases."""
    status = accept(ring, process, number, clock, lo, hi, 0)
    if status < 0:
        return status
    let_in(ring)
    while status == NO_ROOM:
        status = accept(ring, process, number, clock, lo, hi, 0)
        let_in(ring)
    return status


@compiled_noref
def let_in(ring: Ring) -> None:
    """Performs all releases that are due."""
    while release(ring) >= 0:
        pass
