"""Cuts two sides into slabs: stretches of A with all of B that can match them, each ordered by (key, doubled middle).

Readings mostly come in the order of time, nearly. Then a slab is a stretch of consecutive rows, its part of B lies in a few
neighbouring zones, and both are ordered while they fit into the cache: the cost per row does not grow with their number and
no memory is needed beside one slab. Where the zones of B are asked for too often (rows in random order), both sides are
first dealt out into buckets of time, one pass through each, which makes neighbours of rows that are near in time. Where that
does not help (keys that keep apart what time does not), everything is ordered once, and slabs are stretches of that order.

Intervals longer than (hi - lo)/ct and rows without a key never match (`condition`) and are left out here.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.correlation.kernel_input import NO_KEY, ZONE, Side, survey
from whenabouts_cloud.correlation.kernel_reach import Terms

SLAB_ZONES = 8  # zones of A in a slab: 32768 rows, with their part of B some 2 MB
REPEATS = 3  # orderings of a row of B in slabs that are still cheaper than one of everything
BUCKET_ROWS = 2 * ZONE  # of a bucket on average
MAX_BUCKETS = 2048  # more places to write to at once than a core keeps near

Array = npt.NDArray[Any]


class Ordered(NamedTuple):
    """Rows of one side ordered by (code, middle): doubled middles less twice a base, lengths, row numbers, key codes."""

    middle: Array
    length: Array
    row: Array
    code: Array | None

    def cut(self, start: int, stop: int) -> "Ordered":
        """The rows start .. stop - 1."""
        code = None if self.code is None else self.code[start:stop]
        return Ordered(self.middle[start:stop], self.length[start:stop], self.row[start:stop], code)


class Slab(NamedTuple):
    """A stretch of A with everything of B that it can match; `b_start` is the place of its first row in the order of B."""

    a: Ordered
    b: Ordered
    b_start: int


# (t_min, t_max, code, earliest, shift, buckets) -> the same rows by (t_min - earliest) >> shift, and their numbers
Deal = Callable[[Array, Array, "Array | None", int, int, int], tuple[Array, Array, "Array | None", Array]]


class Cutter:
    """The slabs of two sides that span little enough for int64 (`kernel_input.spans_too_much`), neither of them empty."""

    def __init__(self, a: Side, b: Side, terms: Terms, deal: Deal) -> None:
        self._sides = a, b
        self._base = min(int(a.low.min()), int(b.low.min()))
        self._span = max(int(a.high.max()), int(b.high.max())) - self._base
        self._longest = min(terms.width * terms.q // terms.p, self._span)
        band = terms.width + max(0, -(-2 * self._longest * (terms.q - 2 * terms.p) // terms.q))
        self._nearest, self._farthest = terms.centre - band, terms.centre + band
        self._deal = deal
        self._windows = self._find_windows()
        self.rows_follow = self._windows is not None

    def slabs(self) -> Iterator[Slab]:
        """Slab after slab; where `rows_follow`, the row numbers of A in each are above those of the slab before."""
        if self._windows is None:
            self._sides = self._dealt(self._sides[0]), self._dealt(self._sides[1])
            self._windows = self._find_windows()
        if self._windows is None:
            yield from self.ordered_slabs(self.order(0), self.order(1))
            return
        for number, (first, last) in enumerate(self._windows):
            start = number * SLAB_ZONES * ZONE
            a = self.order(0, start, start + SLAB_ZONES * ZONE)
            b = self.order(1, first * ZONE, last * ZONE)
            if len(a.row) and len(b.row):
                yield Slab(a, b, 0)

    def ordered_slabs(self, a: Ordered, b: Ordered) -> Iterator[Slab]:
        """Slabs of two sides that are ordered already."""
        for start in range(0, len(a.row), SLAB_ZONES * ZONE):
            part = a.cut(start, start + SLAB_ZONES * ZONE)
            first = _place(b, part, 0, int(part.middle[0]) + self._nearest, "left")
            last = _place(b, part, -1, int(part.middle[-1]) + self._farthest, "right")
            if first < last:
                yield Slab(part, b.cut(first, last), first)

    def order(self, which: int, start: int = 0, stop: int | None = None) -> Ordered:
        """The useful ones of the rows start .. stop - 1 of A (0) or B (1), ordered by (code, middle)."""
        side = self._sides[which]
        t_min, t_max = side.t_min[start:stop] - self._base, side.t_max[start:stop] - self._base
        code = None if side.code is None else side.code[start:stop]
        length, middle = t_max - t_min, t_min + t_max
        useful = length <= self._longest
        if code is not None:
            useful &= code != NO_KEY
        if useful.all():
            at = _order(middle, code)
        else:
            at = np.flatnonzero(useful)
            at = at[_order(middle[at], None if code is None else code[at])]
        row = at + start if side.row is None else side.row[start:stop][at]
        return Ordered(middle[at], length[at], row, None if code is None else code[at])

    def _dealt(self, side: Side) -> Side:
        """The rows of a side by buckets of time."""
        buckets = min(MAX_BUCKETS, len(side.t_min) // BUCKET_ROWS + 1)
        shift = max(0, self._span.bit_length() - (buckets - 1).bit_length())
        t_min, t_max, code, row = self._deal(
            side.t_min, side.t_max, side.code, self._base, shift, (self._span >> shift) + 1
        )
        return Side(t_min, t_max, *survey(t_min, t_max), code, row)

    def _find_windows(self) -> list[tuple[int, int]] | None:
        """For each stretch of A the zones first .. last - 1 of B that its rows can match; None where they are too many."""
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


def _order(middle: Array, code: Array | None) -> Array:
    """Row numbers ordered by (code, middle, row).

    Sorting numbers that hold all three is four times faster than sorting indices by a key.
    """
    if not len(middle):
        return np.empty(0, np.int64)
    if code is None and (middle[1:] >= middle[:-1]).all():
        return np.arange(len(middle))
    lowest = int(middle.min())
    row_bits = len(middle).bit_length()
    middle_bits = (int(middle.max()) - lowest).bit_length()
    code_bits = 0 if code is None else int(code.max()).bit_length()
    if row_bits + middle_bits + code_bits > 63:
        return np.argsort(middle, kind="stable") if code is None else np.lexsort((middle, code))
    packed = (middle - lowest) << row_bits
    if code is not None:
        packed |= code << (row_bits + middle_bits)
    packed |= np.arange(len(middle))
    packed.sort()
    packed &= (1 << row_bits) - 1
    return packed


def _place(b: Ordered, a: Ordered, at: int, middle: int, edge: Any) -> int:
    """Where (code of row `at` of A, middle) belongs in the order of B."""
    start, stop = 0, len(b.row)
    if a.code is not None and b.code is not None:
        start, stop = (int(np.searchsorted(b.code, a.code[at], side)) for side in ("left", "right"))
    return start + int(np.searchsorted(b.middle[start:stop], middle, edge))
