"""Detects a conjunction of local predicates over a group: possibly and definitely, without a lattice (see `queues`)."""

import struct
from collections.abc import Sequence
from operator import index
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.jit import entry
from whenabouts_cloud.latwin.conjunction import overlaps as runs
from whenabouts_cloud.latwin.conjunction import queues as kernel
from whenabouts_cloud.latwin.model.group import Clock, Group
from whenabouts_cloud.latwin.model.layout import FOREVER, HEAD, META, NEVER, ROOM


class Verdict(NamedTuple):
    """Verdict over all windows that the last report produced.

    Attributes:
        possibly: a consistent global state of the windows satisfies all predicates. It may be retracted (order
            "hybrid", eager) when a state arrives that in truth came before it.
        definitely: runs of true states, each with a state in the window, certainly overlapped in time. Never retracted.
        definitely_in_window: the verdict of Yang et al. (2011): all paths through the windows' consistent global states
            meet one that satisfies all predicates. They may never have held together, since the actual execution may
            bypass the windows.
        retracted: this report refutes the `possibly` of the previous verdict. After a report that filled a gap, and so
            produced several windows, global states with states that have left the windows since are not tracked.
    """

    possibly: bool
    definitely: bool
    definitely_in_window: bool
    retracted: bool


Bools = npt.NDArray[np.bool_]
_BITS = (kernel.POSSIBLY, kernel.DEFINITELY, kernel.IN_WINDOW, kernel.RETRACTED)
_VERDICTS = tuple(Verdict(*(bool(code & bit) for bit in _BITS)) for code in range(sum(_BITS) + 1))


class Verdicts(NamedTuple):
    """Columns of `Verdict`, one row per report; `overlaps` (.., n) that became certain, and the row that decided each."""

    possibly: Bools
    definitely: Bools
    definitely_in_window: Bools
    retracted: Bools
    overlaps: npt.NDArray[np.int64]
    overlap_row: npt.NDArray[np.int64]


class ConjunctionDetector(Group):
    """Decides after every report whether all local predicates of a group possibly and definitely held together.

    Arguments as `Group`. All verdicts are false until a state of every process has arrived. `evidence` (a clock
    heartbeat) and `renew` are reports too: their results are in `verdict` and `overlaps`. About a microsecond per report,
    in any order of arrival.

    >>> detector = ConjunctionDetector(processes=2, window=4)
    >>> detector.push(0, 0, (0, 0), True).possibly
    False
    >>> detector.push(1, 0, (0, 0), True)
    Verdict(possibly=True, definitely=True, definitely_in_window=True, retracted=False)
    >>> detector.overlaps  # the runs, by their first states
    [(0, 0)]
    >>> detector.push(1, 1, (0, 1), False).definitely
    True
    >>> detector.overlaps
    []
    >>> detector.push(1, 2, (0, 2), True).definitely, detector.overlaps  # of the overlap from before
    (True, [])
    >>> detector.push(0, 1, (1, 2), False).definitely, detector.overlaps  # it knows that state 2 of process 1 had begun
    (True, [(0, 2)])
    """

    def __init__(
        self, processes: int, window: int | Sequence[int], order: str = "causal", patient: bool = False,
        room: int = ROOM,
    ) -> None:  # fmt: skip
        super().__init__(processes, window, order, patient, room)
        self._hybrid = order == "hybrid"
        self._work = np.zeros((len(runs.WORK), processes), np.int64)
        # One report closes at most one gap, and each state that enters adds one run: this bounds its overlaps.
        most = int((self.ring.heads[:, HEAD.width] // 2 + 1).sum()) + self.ring.room.shape[1]
        self._emitted = np.zeros((most, processes), np.int64)
        self.ring.heads[:, [HEAD.newest_run, HEAD.emitted_run]] = -1
        self._detection = kernel.Detection(self.ring, self._work, self._emitted)
        self._push = entry(kernel.push, self._detection, 0, 0, self._row, 0, 0, 0)

    def push(
        self, process: int, state: int, clock: Clock, holds: bool, t_min: int | None = None, t_max: int | None = None
    ) -> Verdict:
        """Takes a report: `process` began `state`, with a dense clock, between t_min and t_max; `holds`: its predicate.

        A report that fills a gap may produce several windows: the verdict is then true if it is for any of them. A
        repeated report changes nothing.

        Raises:
            ValueError: there is no such process, state or clock, or the times are in the wrong order; nothing has
                changed.
        """
        given = self._hybrid
        lo = t_min if given and t_min is not None else NEVER
        hi = t_max if given and t_max is not None else FOREVER
        try:
            self._put(self._bytes, 0, *clock)
            code: int = self._push(
                self._detection, index(process), index(state), self._row, index(lo), index(hi), 1 if holds else 0
            )
        except (struct.error, TypeError, OverflowError):
            state = self._clock(process, self._state(state), clock)
            lo, hi = self._times(lo, hi)
            code = self._push(self._detection, process, state, self._row, lo, hi, 1 if holds else 0)
        if code < 0:
            raise self._error(code, process, state, clock, t_min, t_max)
        verdict: Verdict = _VERDICTS[code]
        return verdict

    def feed(
        self,
        process: npt.ArrayLike,
        state: npt.ArrayLike,
        clock: npt.ArrayLike,
        holds: npt.ArrayLike,
        t_min: npt.ArrayLike | None = None,
        t_max: npt.ArrayLike | None = None,
    ) -> Verdicts:
        """Takes reports as columns, `clock` (rows, n); the verdicts equal those of `push` row by row.

        Raises:
            ValueError: columns of different lengths or not of integers, or a row is wrong as in `push`; then no row has
                been taken in.
        """
        given = {"process": process, "state": state, "clock": clock, "holds": holds}
        columns = [_whole(name, column) for name, column in given.items()]
        rows, n = columns[0].size, len(self._row)
        for name, column, bound in (("t_min", t_min, NEVER), ("t_max", t_max, FOREVER)):
            timed = column is not None and self._hybrid
            columns.append(_whole(name, column) if timed else np.full(rows, bound))
        shapes = [column.shape for column in columns]
        if shapes != [(rows,), (rows,), (rows, n), (rows,), (rows,), (rows,)]:
            raise ValueError(f"columns: found shapes {shapes}, expected {rows} rows each and {n} entries of the clock")
        processes, states, clocks, true, lo, hi = columns
        reports = kernel.Reports(processes, states, clocks, lo, hi, true)
        first, status = kernel.first_wrong(reports)
        if status < 0:
            raise ValueError(f"row {first}: {self._error(status, *(column[first] for column in reports[:5]))}")
        codes, done, emitted = np.zeros(rows, np.int64), 0, 0
        overlaps, overlap_row = (
            np.zeros((2 * len(self._emitted), n), np.int64),
            np.zeros(2 * len(self._emitted), np.int64),
        )
        while True:
            answers = kernel.Answers(codes, overlaps, overlap_row)
            done, emitted = kernel.feed(self._detection, reports, done, answers, emitted)
            if done == rows:
                break
            overlaps, overlap_row = np.concatenate([overlaps] * 2), np.concatenate([overlap_row] * 2)
        possibly, definitely, in_window, retracted = (codes & bit != 0 for bit in _BITS)
        return Verdicts(
            possibly, definitely, in_window, retracted, overlaps[:emitted].copy(), overlap_row[:emitted].copy()
        )

    @property
    def verdict(self) -> Verdict:
        """The verdict of the last report: of a state, a clock heartbeat or a renewal."""
        return _VERDICTS[int(self.ring.meta[META.verdict])]

    @property
    def overlaps(self) -> list[tuple[int, ...]]:
        """Overlaps that the last report made certain, the earliest first: the first state of each run that overlapped.

        Each is emitted once. (Late times may make an overlap certain after a later one: then it is not emitted.)
        """
        count = int(self._work[runs.WORK.overlaps, 0])
        return [tuple(row) for row in self._emitted[:count].tolist()]

    @property
    def witness(self) -> tuple[int, ...] | None:
        """The witness of `verdict.possibly`: the least consistent global state with all true, of the latest such window."""
        if not self.verdict.possibly:
            return None
        return tuple(self.ring.heads[:, HEAD.witness].tolist())

    def _noted(self, process: int, number: int, lo: int) -> int:
        return int(kernel.push_heartbeat(self._detection, process, number, self._row, lo))

    def _renewed(self, process: int, number: int) -> int:
        return int(kernel.push_renewal(self._detection, process, number))

    def _rebuilt(self) -> None:
        """Takes over the restored ring; nothing else is kept."""
        self._detection = self._detection._replace(ring=self.ring)


def _whole(name: str, column: npt.ArrayLike | None) -> npt.NDArray[np.int64]:
    """A column as int64 for machine code; fractions are refused, not truncated."""
    numbers = np.asarray(column)
    if numbers.size and numbers.dtype.kind not in "iub":
        raise ValueError(f"{name}: found a column of {numbers.dtype}, expected whole numbers")
    return np.ascontiguousarray(numbers, np.int64)
