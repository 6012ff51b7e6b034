"""The states of a group held at one moment: per process the last states without a gap, with their clocks.

The walks, the picture and the probability take this value, whatever stores the states. A clock is dense: entry i is the
number of the latest state of process i that had begun when this one began, so a global state G is consistent (a CGS)
iff clock of G[j] at i <= G[i] for all i != j (Yang et al. 2011, Section III, decided by the receiver's clock only).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.jit import Array, compiled_noref

Ints = npt.NDArray[np.int64]


class Frame(NamedTuple):
    """State `first[j] + k` of process j, k < count[j], has the clock clocks[j, k]; entries beyond are ignored.

    Clocks never fall from one state of a process to its next. The own entry of a clock is ignored.
    """

    first: Ints  # (n,)
    count: Any  # (n,) int64
    clocks: Ints  # (n, w, n)


def frame(first: Sequence[int], clocks: Sequence[Sequence[Sequence[int]]]) -> Frame:
    """A frame from the clocks of each process, in the order of its states; a state keeps what earlier ones knew.

    Raises:
        ValueError: fewer than two processes, or a clock of another length than there are processes.
    """
    n = len(first)
    if n < 2 or len(clocks) != n:
        raise ValueError(
            f"frame: found {n} first states and clocks of {len(clocks)} processes, expected the same number, 2 or more"
        )
    held = np.zeros((n, max(1, *map(len, clocks)), n), np.int64)
    for j, own in enumerate(clocks):
        for k, clock in enumerate(own):
            if len(clock) != n:
                raise ValueError(f"frame: found a clock of {len(clock)} entries, expected {n}, one for each process")
            held[j, k] = clock
        np.maximum.accumulate(held[j, : len(own)], axis=0, out=held[j, : len(own)])
    return Frame(np.array(first, np.int64), np.array([len(own) for own in clocks], np.int64), held)


def least(window: Frame) -> tuple[int, ...] | None:
    """The least CGS, C_min, as state numbers; None if there is none. O(n^2 w)."""
    places = np.zeros(len(window.first), np.int64)
    return _numbers(window, places) if climb(*window, places) else None


def greatest(window: Frame) -> tuple[int, ...] | None:
    """The greatest CGS, C_max, as state numbers; None if there is none. O(n^2 w)."""
    places = window.count - 1
    return _numbers(window, places) if descend(*window, places) else None


def _numbers(window: Frame, places: Ints) -> tuple[int, ...]:
    return tuple((window.first + places).tolist())


@compiled_noref
def climb(first: Array, count: Array, clocks: Array, places: Array) -> bool:
    """Raises `places` to the least CGS above them; False if there is none.

    Every greater global state, too, must satisfy what the clock of a state demands of another process.
    """
    n = len(first)
    for i in range(n):
        if places[i] >= count[i]:
            return False
    settled, j = 0, 0
    while settled < n:  # the clock of each process has been checked since the last change
        moved = False
        for i in range(n):
            needed = clocks[j, places[j], i] - first[i]
            if i != j and needed > places[i]:
                if needed >= count[i]:
                    return False
                places[i] = needed
                moved = True
        settled = 1 if moved else settled + 1
        j = j + 1 if j + 1 < n else 0
    return True


@compiled_noref
def descend(first: Array, count: Array, clocks: Array, places: Array) -> bool:
    """Lowers `places` to the greatest CGS below them; False if there is none."""
    n = len(first)
    settled, j = 0, 0
    while settled < n:
        moved = False
        if places[j] < 0:
            return False
        for i in range(n):
            while i != j and clocks[j, places[j], i] > first[i] + places[i]:
                places[j] -= 1
                moved = True
                if places[j] < 0:
                    return False
        settled = 1 if moved else settled + 1
        j = j + 1 if j + 1 < n else 0
    return True
