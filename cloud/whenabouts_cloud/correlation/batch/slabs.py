"""Cuts two sides into slabs: ranges of A with all rows of B that can match them, each ordered by (key, doubled middle).

Readings mostly arrive nearly in the order of time. Then a slab is a range of consecutive rows, its part of B lies in a
few neighbouring zones, and both are sorted within the cache: the cost per row does not grow with the number of rows, and
only one slab is in memory. If slabs overlap in too many zones of B (rows in random order), both sides are first
distributed to buckets of time, in one pass each, which brings together rows that are near in time. Only row numbers are
stored, four bytes a row, as writing new memory costs more than looking up stamps in place. If that does not help (few
pairs because of keys, not of time), everything is sorted once, and slabs are ranges of that order.

Intervals longer than (hi - lo)/ct and rows without a key never match (`condition`) and are omitted here.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from whenabouts_cloud.arrays import Array
from whenabouts_cloud.correlation.batch.input import NO_KEY, ZONE, Side
from whenabouts_cloud.correlation.batch.reach import Terms

SLAB_ZONES = 8  # zones of A in a slab: 32768 rows, with their part of B some 2 MB
REPEATS = 3  # times that slabs may sort a row of B and still be cheaper than one sort of everything
BUCKET_ROWS = 2 * ZONE  # average of a bucket
MAX_BUCKETS = 2048  # more write positions would not stay in a core's cache


class Ordered(NamedTuple):
    """Rows of one side ordered by (code, middle): doubled middles minus twice a base, lengths, row numbers, key codes."""

    middle: Array
    length: Array
    row: Array
    code: Array | None

    def cut(self, start: int, stop: int) -> "Ordered":
        """The rows start .. stop - 1."""
        return self.pick(slice(start, stop))

    def pick(self, which: Any) -> "Ordered":
        """The rows that an index of numpy selects."""
        code = None if self.code is None else self.code[which]
        return Ordered(self.middle[which], self.length[which], self.row[which], code)


class Slab(NamedTuple):
    """A range of A with all rows of B that it can match; `b_start` is the place of the first of them in the order of B."""

    a: Ordered
    b: Ordered
    b_start: int


Dealt = tuple[Array, Array, Array]  # row numbers, `low` and `high` of `Side` for them in this order


Windows = list[tuple[int, int]]  # zones first .. last - 1 of B for each range of A
Arrange = Callable[
    [Array, Array, Array | None, Array | None, int, int, int], Ordered
]  # `by_row`, or an engine's `order`


class MatchFinder(Protocol):
    """Functions of `matches_numpy` or `matches_numba` that the cutter uses."""

    def deal(self, t_min: Array, t_max: Array, earliest: int, shift: int, buckets: int) -> Dealt:
        """Return the row numbers ordered by (t_min - earliest) >> shift, and the `survey` of the rows in that order."""

    def order(
        self, t_min: Array, t_max: Array, code: Array | None, row: Array | None, start: int, base: int, longest: int
    ) -> Ordered:
        """Return the rows up to length `longest` by (code, middle), middles minus twice the base, numbered row + start."""


class Cutter:
    """Slabs of two sides whose span fits int64 (`input.spans_too_much`), neither of them empty.

    Rows are counted from `starts`.
    """

    def __init__(self, a: Side, b: Side, terms: Terms, engine: MatchFinder, starts: tuple[int, int] = (0, 0)) -> None:
        self._sides, self._starts = (a, b), starts
        self._base = min(int(a.low.min()), int(b.low.min()))
        self._span = max(int(a.high.max()), int(b.high.max())) - self._base
        self._longest = min(terms.width * terms.q // terms.p, self._span)
        band = terms.width + max(0, -(-2 * self._longest * (terms.q - 2 * terms.p) // terms.q))
        self._nearest, self._farthest = terms.centre - band, terms.centre + band
        self._engine = engine
        self._windows = self._find_windows()
        self.rows_follow = self._windows is not None

    def slabs(self) -> Iterator[Slab]:
        """Yield slab after slab; if `rows_follow`, the row numbers of A in each are above those of the slab before."""
        if self._windows is None:
            self._sides = self._dealt(self._sides[0]), self._dealt(self._sides[1])
            self._windows = self._find_windows()
        if self._windows is None:
            yield from self.ordered_slabs(self.order(0), self.order(1))
            return
        yield from self._window_slabs(self._windows, self._engine.order)

    def slabs_by_row(self) -> Iterator[Slab]:
        """Yield the slabs with A in the order of its rows; only if `rows_follow`."""
        assert self._windows is not None
        return self._window_slabs(self._windows, by_row)

    def _window_slabs(self, windows: Windows, arranged: Arrange) -> Iterator[Slab]:
        for number, (first, last) in enumerate(windows):
            start = number * SLAB_ZONES * ZONE
            a = self._rows(arranged, 0, start, start + SLAB_ZONES * ZONE)
            b = self.order(1, first * ZONE, last * ZONE)
            if len(a.row) and len(b.row):
                yield Slab(a, b, 0)

    def ordered_slabs(self, a: Ordered, b: Ordered) -> Iterator[Slab]:
        """Yield the slabs of two sides that are already ordered."""
        for start in range(0, len(a.row), SLAB_ZONES * ZONE):
            part = a.cut(start, start + SLAB_ZONES * ZONE)
            first = _place(b, part, 0, int(part.middle[0]) + self._nearest, "left")
            last = _place(b, part, -1, int(part.middle[-1]) + self._farthest, "right")
            if first < last:
                yield Slab(part, b.cut(first, last), first)

    def order(self, which: int, start: int = 0, stop: int | None = None) -> Ordered:
        """Return the useful rows among start .. stop - 1 of A (0) or B (1), ordered by (code, middle)."""
        return self._rows(self._engine.order, which, start, stop)

    def _rows(self, arranged: Arrange, which: int, start: int, stop: int | None) -> Ordered:
        side, row, number = self._sides[which], None, start + self._starts[which]
        part: Any = slice(start, stop)
        if side.row is not None:
            part = row = side.row[start:stop].astype(np.int64)
            number = self._starts[which]
        code = None if side.code is None else side.code[part]
        return arranged(side.t_min[part], side.t_max[part], code, row, number, self._base, self._longest)

    def _dealt(self, side: Side) -> Side:
        """Distribute the rows of a side to buckets of time: only row numbers are stored, stamps stay in place."""
        buckets = min(MAX_BUCKETS, len(side.t_min) // BUCKET_ROWS + 1)
        shift = max(0, self._span.bit_length() - (buckets - 1).bit_length())
        row, low, high = self._engine.deal(side.t_min, side.t_max, self._base, shift, (self._span >> shift) + 1)
        return side._replace(low=low, high=high, row=row)

    def _find_windows(self) -> Windows | None:
        """For each range of A the zones first .. last - 1 of B that its rows can match; None if there are too many."""
        a, b = self._sides
        b_low, b_high = (b.low - self._base) * 2, (b.high - self._base) * 2
        windows, most = [], REPEATS * (len(b.low) + 1)
        for start in range(0, len(a.low), SLAB_ZONES):
            earliest = 2 * (int(a.low[start : start + SLAB_ZONES].min()) - self._base)
            latest = 2 * (int(a.high[start : start + SLAB_ZONES].max()) - self._base)
            near = np.flatnonzero((b_high >= earliest + self._nearest) & (b_low <= latest + self._farthest))
            windows.append((int(near[0]), int(near[-1]) + 1) if len(near) else (0, 0))
            most -= windows[-1][1] - windows[-1][0]
            if most < 0:
                return None
        return windows


def by_row(
    t_min: Array, t_max: Array, code: Array | None, row: Array | None, start: int, base: int, longest: int
) -> Ordered:
    """Return the rows up to length `longest` in the order given, middles minus twice the base, numbered row + start."""
    low, high = t_min - base, t_max - base
    length, middle = high - low, low + high
    number = (np.arange(len(length)) if row is None else row) + start
    useful = length <= longest
    if code is not None:
        useful &= code != NO_KEY
    every = Ordered(middle, length, number, code)
    return every if useful.all() else every.pick(useful)


def _place(b: Ordered, a: Ordered, at: int, middle: int, edge: Any) -> int:
    """Place of (code of row `at` of A, middle) in the order of B."""
    start, stop = 0, len(b.row)
    if a.code is not None and b.code is not None:
        start, stop = (int(np.searchsorted(b.code, a.code[at], side)) for side in ("left", "right"))
    return start + int(np.searchsorted(b.middle[start:stop], middle, edge))
