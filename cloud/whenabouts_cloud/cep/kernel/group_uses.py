"""Groups of the uses of a class, for classes with many uses: an event decides all uses of a group at once.

The states of an automaton for each use are bits of some vectors (Shift-And; Baeza-Yates and Gonnet, CACM 35(10), 1992). It
reads the classes of the recent events, from the nearest on, away from the arrived event, and has a level for each positive
on this side. The vector of a level has the uses that have come so far; an event takes those to the next level that wait
there for its class. Uses without an order read the events once for each level, so they only wait until all classes were
there.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.program import BITS, GROUPED, HEAD, LEVELS, ROW, Group, Use
from whenabouts_cloud.jit import Array
from whenabouts_cloud.words import WORDS


class Placed(NamedTuple):
    """A use, and the classes that must have an event before and after this one, in a chain from the nearest on."""

    use: Use
    before: Sequence[int]
    after: Sequence[int]
    loose: bool  # True if not in a chain: any order will do


def in_chain(use: Use, classes: Sequence[int]) -> Placed:
    """A use in a chain of these classes."""
    return Placed(use, classes[: use.position][::-1], classes[use.position + 1 :], False)


class Groups:
    """Groups of all classes with many uses. First come those that need no event after the arrived one."""

    def __init__(self, classes: int) -> None:
        self._rows = min(classes, BITS)
        self.classes: list[tuple[int, int, int]] = []  # groups of each class: the first, the first `later`, the end
        self.groups: list[Group] = []
        self._levels: list[Array] = []

    def add(self, begin: int, uses: Iterable[Placed]) -> list[Placed]:
        """Group the uses of a class, which will be the rows from `begin` on; return them in the order of their rows."""
        placed = sorted(uses, key=lambda one: (len(one.after) > 0, one.loose, len(one.after)))
        first = later = len(self.groups)
        for (needs_after, loose), some in groupby(placed, key=lambda one: (len(one.after) > 0, one.loose)):
            rest = list(some)
            for n in range(0, len(rest), GROUPED):
                part = rest[n : n + GROUPED]
                fewest = min(len(set(one.after)) if loose else len(one.after) for one in part)
                self.groups.append(Group(begin, fewest, LEVELS if loose else 1))
                self._levels.append(self._levels_of(part))
                begin += len(part)
            later = later if needs_after else len(self.groups)
        self.classes.append((first, later, len(self.groups)))
        return placed

    @property
    def levels(self) -> Array:
        """`Program.levels`."""
        return np.array(self._levels, np.uint64).view(np.int64).reshape(-1, HEAD + self._rows * ROW)

    def _levels_of(self, part: Sequence[Placed]) -> Array:
        """By side: a vector for each level and the end of the uses that begin there, then by bit of a class and by level
        one of those that wait there for the class.

        All end at LEVELS, so a use with fewer positives on a side begins later; of more, only the nearest are asked for.
        """
        table = np.zeros((2, 1 + LEVELS + self._rows * LEVELS, WORDS), np.uint64)
        for n, one in enumerate(part):
            word, bit = n // 64, np.uint64(1 << n % 64)
            for side, classes in enumerate((one.before[:LEVELS], one.after[:LEVELS])):
                begin = LEVELS - len(classes)
                table[side, begin, word] |= bit
                for level, c in enumerate(classes, begin):
                    table[side, 1 + LEVELS + c % BITS * LEVELS + level, word] |= bit
        return table
