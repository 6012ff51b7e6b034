"""Lat-Win: the lattice of all consistent global states (CGSs) over sliding windows, updated as states arrive.

After Yang et al. (2011), with two deliberate differences. States are compared by dense clocks, so no successor need be
known and happened-before never refutes a CGS later; with only the next state's clock, as printed, up to a sixth of the
arrivals leave a false one. And the paper's Def is named `definitely_in_window`, because it is not sound: an execution
can bypass the window, so it may be true although the predicate never held. Pos is sound.
"""

from collections.abc import Sequence
from operator import index

import numpy as np

from whenabouts_cloud.jit import Array
from whenabouts_cloud.latwin.model.group import MISFITS, Clock, Group
from whenabouts_cloud.latwin.model.layout import FOREVER, NEVER, ROOM
from whenabouts_cloud.latwin.model.predicate import Function, Numbers, Predicate
from whenabouts_cloud.latwin.windows.lattice_on_demand import Walked
from whenabouts_cloud.latwin.windows.lattice_stored import Stored
from whenabouts_cloud.latwin.windows.walk_box import greatest, least


class LatWin(Group):
    """The CGSs of a group's windows; tests whether a predicate is possible or unavoidable in them.

    Args: as `Group`, and `store`: True keeps the lattice. Then the box of all choices may have 2^26 cells and the windows
    64 states together; a push grows and prunes it, and questions are answered by word algebra. False walks the lattice on
    demand, at some nanoseconds per CGS. A conjunction of local predicates (`All` of `Local`) is decided from the clocks in
    O(n^2 w), whatever the number of CGSs.

    Raises:
        ValueError: an argument is out of range.
        BoxLimitError: the box is too large to be stored.

    >>> lattice = LatWin(processes=2, window=3)
    >>> for process, state, clock in [(0, 0, (0, 0)), (1, 0, (0, 0)), (0, 1, (1, 0)), (1, 1, (1, 1))]:
    ...     lattice.push(process, state, clock)
    >>> lattice.states().tolist()
    [[0, 0], [1, 0], [1, 1]]
    >>> lattice.possibly(lambda numbers: numbers == (0, 1)), lattice.definitely_in_window(lambda numbers: numbers == (1, 0))
    (False, True)
    """

    def __init__(
        self, processes: int, window: int | Sequence[int], order: str = "causal", patient: bool = False,
        room: int = ROOM, store: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(processes, window, order, patient, room)
        self._cgss: Stored | Walked = Stored(self.ring) if store else Walked()

    def push(self, process: int, state: int, clock: Clock, t_min: int | None = None, t_max: int | None = None) -> None:
        """Takes a report: `process` began `state`, knowing `clock`, between t_min and t_max (hybrid; otherwise ignored).

        State numbers count from 0. A clock has an entry per process, its newest state that began before; the own entry
        is the state. Reports may arrive in any order, and more than once.

        Raises:
            ValueError: no such process, or an impossible state, clock or times; nothing has changed then.
        """
        lo, hi = NEVER if t_min is None else t_min, FOREVER if t_max is None else t_max
        try:
            if isinstance(clock, np.ndarray):
                self._entries[:] = clock
            else:
                self._put(self._bytes, 0, *clock)
            status = self._cgss.push(self.ring, index(process), index(state), self._row, index(lo), index(hi))
        except MISFITS:
            self._clock(process, state, clock)
            lo, hi = self._times(lo, hi)
            status = self._cgss.push(self.ring, process, self._state(state), self._row, lo, hi)
        if status < 0:
            raise self._error(status, process, state, clock, t_min, t_max)

    @property
    def size(self) -> int:
        """Number of CGSs."""
        return self._cgss.size(self.ring)

    @property
    def minimal(self) -> Numbers | None:
        """C_min, the numbers of its states; None if there is no CGS."""
        choice = np.zeros_like(self._row)
        return tuple(choice.tolist()) if least(self.ring, choice) else None

    @property
    def maximal(self) -> Numbers | None:
        """C_max, the numbers of its states; None if there is no CGS."""
        choice = np.zeros_like(self._row)
        return tuple(choice.tolist()) if greatest(self.ring, choice) else None

    @property
    def retracted(self) -> int | None:
        """Number of CGSs that the last report retracted: emitted before, now known never to have been. None: not stored."""
        return self._cgss.retracted()

    def states(self) -> Array:
        """The CGSs in lexicographic order, (size, n) state numbers."""
        return self._cgss.states(self.ring)

    def edges(self) -> Array:
        """The steps of one state of one process between CGSs, (edges, 2) rows of `states()`, sorted."""
        rows = self.states()
        if not len(rows):
            return np.zeros((0, 2), np.int64)
        places = (rows - rows.min(axis=0)).astype(">u2", "C")
        keys, edges = _keys(places), []
        for process in range(places.shape[1]):
            places[:, process] += 1
            wanted = _keys(places)
            places[:, process] -= 1
            onward = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            source = np.flatnonzero(keys[onward] == wanted)
            edges.append(np.stack([source, onward[source]], axis=1))
        steps = np.concatenate(edges)
        return np.asarray(steps[np.lexsort((steps[:, 1], steps[:, 0]))])

    def possibly(self, predicate: Predicate | Function) -> bool:
        """Pos: True if the predicate holds in a CGS, that is in a global state that may have occurred."""
        return self._cgss.possibly(self.ring, predicate)

    def definitely_in_window(self, predicate: Predicate | Function) -> bool:
        """Def over the window: True if each path from C_min to C_max passes a CGS where the predicate holds.

        False without CGSs. Not sound: the true execution may have passed outside of the window.
        """
        return self._cgss.definitely(self.ring, predicate)

    def _noted(self, process: int, number: int, lo: int) -> int:
        return self._cgss.note(self.ring, process, number, self._row, lo)

    def _renewed(self, process: int, number: int) -> int:
        return self._cgss.renew(self.ring, process, number)

    def _rebuilt(self) -> None:
        self._cgss.rebuild(self.ring)


def _keys(places: Array) -> Array:
    """Rows as bytes that sort like the rows."""
    return places.copy().view(f"S{2 * places.shape[1]}").ravel()
