"""Lat-Win: the lattice of all consistent global states (CGSs) over sliding windows, kept as states arrive.

After Yang et al. (2011). Two things are different on purpose. States are compared by dense clocks, so no successor need be
known and no CGS is refuted by happened-before later; with only the next state's clock, as printed, up to a sixth of the
arrivals leave a false one. And `definitely_in_window` is the paper's Def, which is not sound: an execution can bypass the
window, so it may be true although the predicate never held. Pos is sound.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from whenabouts_cloud.compiled import Array, bare
from whenabouts_cloud.latwin import layout as at
from whenabouts_cloud.latwin.algebra import Code, evaluate
from whenabouts_cloud.latwin.bound import Bound
from whenabouts_cloud.latwin.box import SIZE, WITHDRAWN, Box, drop, new_box, rebuild, step
from whenabouts_cloud.latwin.group import Clock, Group
from whenabouts_cloud.latwin.layout import Ring
from whenabouts_cloud.latwin.predicate import Numbers, Predicate
from whenabouts_cloud.latwin.ring import accept, note, release, renew
from whenabouts_cloud.latwin.walk_box import greatest, least, listed, marked, meets, unavoidable

KEPT = 16  # predicates whose leaves are kept from call to call; beyond, the one bound first is bound anew


class LatWin(Group):
    """The CGSs of a group's windows, and what is possible or unavoidable in them.

    Args: as `Group`. The box of all choices may hold 2^26 cells, the windows 64 states together.

    Raises:
        ValueError: an argument there is not.
        LimitError: the box is larger than that.
    """

    def __init__(
        self, processes: int, window: int | Sequence[int], order: str = "causal", patient: bool = False,
        room: int = at.ROOM,
    ) -> None:  # fmt: skip
        super().__init__(processes, window, order, patient, room)
        self.box = new_box([int(w) for w in self.ring.heads[:, at.WIDTH]])
        self._low, self._high, self._numbers = np.zeros((3, processes), np.int64)
        self._true, self._reached = np.zeros((2, 1), np.int64)
        self._bound: dict[int, tuple[Any, Bound]] = {}
        self._marked: Any = None  # the predicate that `_true` is of, until the next change

    def push(self, process: int, state: int, clock: Clock, t_min: int | None = None, t_max: int | None = None) -> None:
        """Takes in that `process` began `state`, knowing `clock`, between t_min and t_max (hybrid; else not looked at).

        State numbers count from 0. A clock has an entry per process, the newest state of it that began before; the own one
        is the state. Reports may come in any order, and more than once.

        Raises:
            ValueError: no such process, or a state, a clock or times that cannot be; nothing has changed then.
        """
        self._clock(process, state, clock)
        lo, hi = at.NEVER if t_min is None else t_min, at.FOREVER if t_max is None else t_max
        status = _push(self.ring, self.box, process, state, self._row, lo, hi)
        if status < 0:
            raise self._error(status, process, state, clock, t_min, t_max)
        self._marked = None

    @property
    def size(self) -> int:
        """How many CGSs there are."""
        return int(self.box.facts[SIZE])

    @property
    def minimal(self) -> Numbers | None:
        """C_min, the numbers of its states."""
        return tuple(self._low.tolist()) if least(self.ring, self._low) else None

    @property
    def maximal(self) -> Numbers | None:
        """C_max, the numbers of its states."""
        return tuple(self._high.tolist()) if greatest(self.ring, self._high) else None

    @property
    def withdrawn(self) -> int:
        """How many CGSs the last report took back: they were let in, and it shows that they never were."""
        return int(self.box.facts[WITHDRAWN])

    def states(self) -> Array:
        """The CGSs in lexicographic order, (size, n) state numbers."""
        rows = np.zeros((self.size, len(self._row)), np.int64)
        if least(self.ring, self._low) and greatest(self.ring, self._high):
            listed(self.box, self._low, self._high, self._numbers, rows)
        return rows

    def edges(self) -> Array:
        """The steps of one state of one process between CGSs, (edges, 2) rows of `states()`, sorted."""
        rows = self.states()
        if not len(rows):
            return np.zeros((0, 2), np.int64)
        low = rows.min(axis=0)
        widths = rows.max(axis=0) - low + 2
        strides = np.append(np.cumprod(widths[:0:-1])[::-1], 1)
        keys = (rows - low) @ strides
        found = []
        for stride in strides:
            onward = np.minimum(np.searchsorted(keys, keys + stride), len(keys) - 1)
            source = np.flatnonzero(keys[onward] == keys + stride)
            found.append(np.stack([source, onward[source]], axis=1))
        steps = np.concatenate(found)
        return np.asarray(steps[np.lexsort((steps[:, 1], steps[:, 0]))])

    def possibly(self, predicate: Predicate | Callable[[Numbers], bool]) -> bool:
        """Pos: whether it holds in a CGS, so in a global state that may have been."""
        if not isinstance(predicate, Predicate):
            return any(predicate(tuple(row)) for row in self.states().tolist())
        return self.size > 0 and self._mark(predicate)

    def definitely_in_window(self, predicate: Predicate | Callable[[Numbers], bool]) -> bool:
        """Def over the window: whether each path from C_min to C_max passes a CGS in which it holds; false without CGSs.

        Not sound: the true execution may have passed outside of the window.
        """
        if not self.size or not self._mark(predicate):
            return False
        if len(self._reached) < len(self.box.words):
            self._reached = np.zeros_like(self.box.words)
        return bool(_unavoidable(self.ring, self.box, self._low, self._high, self._true, self._reached, self._numbers))

    def _mark(self, predicate: Any) -> bool:
        """Sets the bits of `_true` where a predicate holds; whether it does in a CGS."""
        if self._marked is not None and self._marked[0] is predicate and isinstance(predicate, Predicate):
            return bool(self._marked[1])
        if len(self._true) < len(self.box.words):
            self._true = np.zeros_like(self.box.words)
        if isinstance(predicate, Predicate):
            found = evaluate(self._code(predicate), self.box, self._true)
        else:
            rows = self.states()
            marked(self.box, rows, np.array([bool(predicate(tuple(row))) for row in rows.tolist()], bool), self._true)
            found = meets(self.box, self._true)
        self._marked = (predicate, found)
        return bool(found)

    def _code(self, predicate: Predicate) -> Code:
        key = id(predicate)
        if key not in self._bound:
            if len(self._bound) == KEPT:
                del self._bound[next(iter(self._bound))]
            self._bound[key] = predicate, Bound(predicate, self.box)  # held, so that its id stays its own
        return self._bound[key][1].refresh(self.ring)

    def _noted(self, process: int, number: int, lo: int) -> int:
        self._marked = None
        return int(_note(self.ring, self.box, process, number, self._row, lo))

    def _renewed(self, process: int, number: int) -> int:
        self._marked = None
        return int(_renew(self.ring, self.box, process, number))

    def _rebuilt(self) -> None:
        self._marked = None
        self._bound.clear()
        rebuild(self.ring, self.box)


@bare
def _push(ring: Ring, box: Box, process: int, number: int, clock: Array, lo: int, hi: int) -> Any:
    """One report, whole."""
    begun = False
    while True:
        status = accept(ring, process, number, clock, lo, hi, 0)
        if status < 0:
            return status
        if not begun:
            box.facts[WITHDRAWN] = 0
            begun = True
        _follow(ring, box)
        if status != at.NO_ROOM:
            return status


@bare
def _note(ring: Ring, box: Box, process: int, number: int, clock: Array, lo: int) -> Any:
    """Evidence, whole."""
    status = note(ring, process, number, clock, lo)
    if status >= 0:
        box.facts[WITHDRAWN] = 0
        _follow(ring, box)
    return status


@bare
def _renew(ring: Ring, box: Box, process: int, number: int) -> Any:
    """A renewal, whole."""
    status = renew(ring, process, number)
    if status >= 0:
        box.facts[WITHDRAWN] = 0
        _follow(ring, box)
    return status


@bare
def _follow(ring: Ring, box: Box) -> None:
    """The lattice after what was taken in, release by release."""
    if ring.meta[at.EMPTIED] >= 0:
        drop(box, ring.meta[at.EMPTIED])
    process = release(ring)
    while process >= 0:
        step(ring, box, process)
        process = release(ring)


@bare
def _unavoidable(ring: Ring, box: Box, low: Array, high: Array, true: Array, reached: Array, numbers: Array) -> bool:
    """`walk_box.unavoidable` between the ends of the lattice as it is."""
    least(ring, low)
    greatest(ring, high)
    return unavoidable(box, low, high, true, reached, numbers)
