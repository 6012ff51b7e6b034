"""Detects a conjunction of local predicates over a group: possibly and definitely, with no lattice (see the kernel)."""

import operator
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.latwin import conjunction_kernel as kernel
from whenabouts_cloud.latwin import layout as at
from whenabouts_cloud.latwin.group import Clock, Group


class Verdict(NamedTuple):
    """What is said of all windows that the last report made.

    Attributes:
        possibly: a consistent global state of the windows has all predicates true. It may be withdrawn (order "hybrid",
            eager) when a state comes that truly was before it.
        definitely: runs of true states, each with a state in the window, surely overlapped in time. Never withdrawn.
        definitely_in_window: the verdict of Yang et al. (2011): all ways through the windows' consistent global states meet
            one with all true. Something of which it is said may never have happened, as what happened may pass by the
            windows.
        withdrawn: what the verdict before called possible is refuted by this report. Of one that filled a gap, and so made
            several windows, what states gave that have left since is not followed up.
    """

    possibly: bool
    definitely: bool
    definitely_in_window: bool
    withdrawn: bool


Bools = npt.NDArray[np.bool_]
_BITS = (kernel.POSSIBLY, kernel.DEFINITELY, kernel.IN_WINDOW, kernel.WITHDRAWN)
_VERDICTS = tuple(Verdict(*(bool(code & bit) for bit in _BITS)) for code in range(sum(_BITS) + 1))
_NO_CLOCK = (struct.error, TypeError)


class Verdicts(NamedTuple):
    """Columns of `Verdict`, one row per report fed; `runs` (rows, n) as `ConjunctionDetector.runs`, -1 where it is None."""

    possibly: Bools
    definitely: Bools
    definitely_in_window: Bools
    withdrawn: Bools
    runs: npt.NDArray[np.int64]


class ConjunctionDetector(Group):
    """Tells after every report whether all local predicates of a group possibly and definitely held together.

    Arguments as `Group`. Nothing is said as long as nothing has come of a process. Below a microsecond a report.

    >>> detector = ConjunctionDetector(processes=2, window=4)
    >>> detector.push(0, 0, (0, 0), True).possibly
    False
    >>> detector.push(1, 0, (0, 0), True)
    Verdict(possibly=True, definitely=True, definitely_in_window=True, withdrawn=False)
    >>> detector.push(1, 1, (0, 1), False).definitely
    True
    >>> detector.push(1, 2, (0, 2), True), detector.runs
    (Verdict(possibly=True, definitely=True, definitely_in_window=True, withdrawn=False), (0, 0))
    """

    def __init__(
        self, processes: int, window: int | Sequence[int], order: str = "causal", patient: bool = False,
        room: int = at.ROOM,
    ) -> None:  # fmt: skip
        super().__init__(processes, window, order, patient, room)
        self._hybrid = order == "hybrid"
        self._work = np.zeros((kernel.WORK, processes), np.int64)
        self._put = struct.Struct(f"{processes}q").pack_into  # twice as fast as numpy's assignment
        self._bytes = self._row.data.cast("B")

    def push(
        self, process: int, state: int, clock: Clock, holds: bool, t_min: int | None = None, t_max: int | None = None
    ) -> Verdict:
        """A process began a state between t_min and t_max, with a dense clock; whether its predicate holds in it.

        Several windows may come of one report, when it fills a gap: the verdict is what is true of any. A repeated report
        changes nothing.

        Raises:
            ValueError: there is no such process, state or clock, or the times are in the wrong order; nothing has changed.
        """
        process, state = operator.index(process), operator.index(state)
        try:
            self._put(self._bytes, 0, *clock)
        except _NO_CLOCK:
            self._clock(process, state, clock)
        lo, hi = at.NEVER, at.FOREVER
        if self._hybrid:
            lo = lo if t_min is None else operator.index(t_min)
            hi = hi if t_max is None else operator.index(t_max)
        code: int = kernel.push_one(*self.ring, self._work, process, state, self._row, lo, hi, 1 if holds else 0)
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
        """Reports as columns, `clock` (rows, n); the same verdicts as `push` one by one.

        Raises:
            ValueError: columns of different lengths, or a row is wrong as in `push`; no row has been taken in then.
        """
        columns = [np.ascontiguousarray(column, np.int64) for column in (process, state, clock, holds)]
        rows, n = len(columns[0]), len(self._row)
        for column, bound in ((t_min, at.NEVER), (t_max, at.FOREVER)):
            given = column is not None and self._hybrid
            columns.append(np.ascontiguousarray(column, np.int64) if given else np.full(rows, bound))
        shapes = [column.shape for column in columns]
        if shapes != [(rows,), (rows,), (rows, n), (rows,), (rows,), (rows,)]:
            raise ValueError(f"columns: found shapes {shapes}, expected {rows} rows each and {n} entries of the clock")
        processes, states, clocks, true, lo, hi = columns
        first, status = kernel.first_wrong(processes, states, clocks, lo, hi)
        if status < 0:
            found = (column[first] for column in (processes, states, clocks, lo, hi))
            raise ValueError(f"row {first}: {self._error(status, *found)}")
        codes, runs = np.zeros(rows, np.int64), np.full((rows, n), -1)
        kernel.feed(self.ring, self._work, processes, states, clocks, lo, hi, true, codes, runs)
        possibly, definitely, in_window, withdrawn = (codes & bit != 0 for bit in _BITS)
        return Verdicts(possibly, definitely, in_window, withdrawn, runs)

    @property
    def verdict(self) -> Verdict:
        """What the last report made of it, be it one of a state, evidence or a renewal."""
        return _VERDICTS[int(self.ring.meta[at.CALLER])]

    @property
    def runs(self) -> tuple[int, ...] | None:
        """What `verdict.definitely` speaks of: the first state of each run, of the latest that overlap; else None.

        It changes exactly when a later overlap has become sure, and so names an occurrence.
        """
        if not self.verdict.definitely:
            return None
        return tuple(self.ring.heads[:, kernel.RUN].tolist())

    @property
    def witness(self) -> tuple[int, ...] | None:
        """What `verdict.possibly` speaks of: the least consistent global state with all true, of the latest such window."""
        if not self.verdict.possibly:
            return None
        return tuple(self.ring.heads[:, kernel.WITNESS].tolist())

    def _noted(self, process: int, number: int, lo: int) -> int:
        return int(kernel.push_evidence(self.ring, self._work, process, number, self._row, lo))

    def _renewed(self, process: int, number: int) -> int:
        return int(kernel.push_renewal(self.ring, self._work, process, number))

    def _rebuilt(self) -> None:
        """The ring is all there is."""
