"""Walks over the consistent global states (CGSs) of a window, without storing the lattice.

A row is a global state as places: row[j] is the number of the state of process j less `first[j]`. Rows come in lexical
order, in blocks, so that numpy can evaluate them. A predicate is a function of a block of rows: `Truth`.

Possibly and Definitely are those of Cooper and Marzullo (1991), over the window only: `definitely_in_window` walks by
levels and keeps one. It gives the verdict of Yang et al. (2011), which is not sound: an execution may bypass the
window.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.latwin.model.frame import Frame, Ints, climb, descend
from whenabouts_cloud.latwin.windows.walk_kernel import (
    SLACK,
    WORD,
    Cursor,
    Masks,
    advance,
    begin,
    build,
    count_all,
    fill,
)

Rows = npt.NDArray[Any]  # (m, n) uint8, or uint16 where a process has more than 256 states
Bools = npt.NDArray[np.bool_]
Truth = Callable[[Rows], Bools]

BLOCK = 1 << 14  # rows: 128 or 256 KB, which stays in the L2 cache
HELD_MAX = 1 << 14  # states held in all: their masks take 32 MiB
LISTED_MAX = 1 << 26  # CGSs as one array: 8 GiB at 16 processes
LEVEL_MAX = 1 << 23  # CGSs of one level: 128 MiB


class WalkLimitError(ValueError):
    """A window is too long, or has too many CGSs, for the question."""


def count(window: Frame) -> int:
    """Number of CGSs. About 2 ns each; long runs of the last process cost nothing more.

    Raises:
        WalkLimitError: more than HELD_MAX states held.
    """
    fields = masks(window)
    return 0 if fields is None else int(count_all(fields))


def blocks(window: Frame, size: int = BLOCK) -> Iterator[Rows]:
    """Yields the CGSs in lexical order, in blocks of at most about `size` rows; each block is overwritten by the next.

    Raises:
        WalkLimitError: more than HELD_MAX states held.
    """
    fields = masks(window)
    if fields is None:
        return
    n, row_words, lanes = _row(window)
    may, head = np.empty((n, fields.masks.shape[2]), np.int64), np.empty((n, row_words), np.int64)
    cursor = Cursor(may, np.empty(n + 1, np.int64), np.empty(n, np.int64), head)
    out = np.empty((max(size, int(window.count[-1])) + SLACK, row_words), np.int64)
    begin(fields, cursor)
    while rows := fill(fields, cursor, lanes, out):
        yield _places(out[:rows], n, lanes)


def states(window: Frame) -> Ints:
    """All CGSs as state numbers (size, n), in lexical order.

    Raises:
        WalkLimitError: more than LISTED_MAX of them, or HELD_MAX states held.
    """
    size, n = count(window), len(window.first)
    if size > LISTED_MAX:
        raise WalkLimitError(
            f"walk: found {size} global states, expected at most {LISTED_MAX} in one array: take blocks()"
        )
    out, filled = np.empty((size, n), np.int64), 0
    for rows in blocks(window):
        out[filled : filled + len(rows)] = rows
        filled += len(rows)
    out += window.first
    return out


def levels(window: Frame, truth: Truth | None = None) -> Ints:
    """Number of CGSs on each level, C_min to C_max; with `truth`, of those that satisfy it. Empty if there is no CGS."""
    ends = _ends(window)
    if ends is None:
        return np.zeros(0, np.int64)
    bottom, top = (int(end.sum()) for end in ends)
    sizes = np.zeros(top - bottom + 1, np.int64)
    for rows in blocks(window):
        chosen = rows if truth is None else rows[truth(rows)]
        sizes += np.bincount(chosen.sum(axis=1, dtype=np.int64) - bottom, minlength=len(sizes))
    return sizes


def possibly(window: Frame, truth: Truth) -> bool:
    """True if some CGS satisfies `truth`; stops at the first block that has one."""
    return any(bool(truth(rows).any()) for rows in blocks(window))


def definitely_in_window(window: Frame, truth: Truth) -> bool:
    """True if every path from C_min to C_max passes a CGS that satisfies `truth`; False if there is no CGS.

    Keeps the CGSs of one level that can be reached without one that satisfies it. O(n^2) per CGS reached.

    Raises:
        WalkLimitError: more than LEVEL_MAX of them on one level.
    """
    ends = _ends(window)
    if ends is None:
        return False
    n, row_words, lanes = _row(window)
    place, key = np.empty(n, np.int64), np.empty((n, row_words), np.int64)
    level = _packed(ends[0], row_words, lanes)
    for step in range(int((ends[1] - ends[0]).sum()) + 1):
        if step:
            room = np.empty((min(len(level) * n, LEVEL_MAX), row_words), np.int64)
            rows = advance(*window, lanes, level, place, key, room)
            if rows < 0:
                raise WalkLimitError(f"walk: found a level of over {LEVEL_MAX} global states: shorten the windows")
            level = room[:rows]
        level = np.ascontiguousarray(level[~truth(_places(level, n, lanes))])
        if len(level) == 0:
            return True
    return False


def each(window: Frame, function: Callable[[tuple[int, ...]], bool]) -> Truth:
    """Converts a function of a tuple of state numbers to a `Truth`. About 1 us per CGS."""

    def truth(rows: Rows) -> Bools:
        numbers = (rows.astype(np.int64) + window.first).tolist()
        return np.fromiter((bool(function(tuple(row))) for row in numbers), np.bool_, len(rows))

    return truth


def masks(window: Frame) -> Masks | None:
    """The masks between C_min and C_max; None if there is no CGS.

    Raises:
        WalkLimitError: more than HELD_MAX states held.
    """
    if window.count.sum() > HELD_MAX:
        raise WalkLimitError(
            f"walk: found {window.count.sum()} states held, expected at most {HELD_MAX}: shorten the windows"
        )
    ends = _ends(window)
    if ends is None:
        return None
    word, shift, used = np.zeros_like(window.first), np.zeros_like(window.first), 0
    for j, size in enumerate(window.count.tolist()):
        if used % WORD + size > WORD:
            used += -used % WORD
        word[j], shift[j] = used // WORD, used % WORD
        used += size + (-size % WORD if size > WORD else 0)
    made = build(*window, *ends, word, shift, (used + WORD - 1) // WORD)
    return Masks(made, word, shift, window.count)


def _ends(window: Frame) -> tuple[Ints, Ints] | None:
    """C_min and C_max as places."""
    low, high = np.zeros_like(window.first), window.count - 1
    return (low, high) if climb(*window, low) and descend(*window, high) else None


def _row(window: Frame) -> tuple[int, int, int]:
    """Number of processes, of words in a row, of places in a word."""
    n, lanes = len(window.first), 8 if window.count.max() <= 256 else 4
    return n, (n + lanes - 1) // lanes, lanes


def _packed(places: Ints, row_words: int, lanes: int) -> Ints:
    row = np.zeros((1, row_words * lanes), "<u1" if lanes == 8 else "<u2")
    row[0, : len(places)] = places
    return row.view("<i8").astype(np.int64)


def _places(words: Ints, n: int, lanes: int) -> Rows:
    """A view of the places in rows of words."""
    little = words if sys.byteorder == "little" else words.astype("<i8")
    return little.view("<u1" if lanes == 8 else "<u2")[:, :n]
