"""Pairs of a slab, compiled with numba: from ordered middles directly to row numbers in a buffer.

A mispredicted branch costs a processor more than ten additions, and at a few matches a row the number of candidates is
unpredictable. The code therefore avoids branches that are often mispredicted. A first pass looks up the four places in B
between which a row has candidates and certain matches: an index over time gives the first row of a bucket, and a count
over the next four rows gives the place. A second pass copies the certain matches WIDE at a time beyond their end, where
later output overwrites the surplus. It writes every candidate, and keeps it by adding its decision (0 or 1) to the
length.

The decision compares areas, without a division: with N(s) = s^2 - (s - w_a)+^2 - (s - w_b)+^2, s from 0 to T = w_a + w_b,

    P >= ct   is   N(s_1) + N(s_2) - 2 w_a w_b (1 + ct) >= 0,      2 s = D + T -+ |M|

In floating point the left side is off by less than T^2 2^-48 (six squares and a product, each within T^2 2^-51). Closer to 0
than T^2 BAND, as always for points, `decide` decides. Source: correlation mathematics, section 7.

Cost: some 30 ns a row of A and half a nanosecond a pair; 16 bytes a row of A and some four a row of B.
"""

from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.correlation.batch.decide import Criterion, matches
from whenabouts_cloud.correlation.batch.matches_numpy import GUARD
from whenabouts_cloud.correlation.batch.reach import Reach, Terms, reach
from whenabouts_cloud.correlation.batch.slabs import Slab
from whenabouts_cloud.jit import Array, compiled, inlined

WIDE = 16  # rows copied at once
BAND = 2.0**-45
WIDEST_AXIS = 1 << 61  # of keys and middles as one number
MOST_ROWS = (1 << 31) - 1  # of B


class Axis(NamedTuple):
    """Rows of a side in order: places on the joint axis of keys and middles, lengths, row numbers."""

    place: Array
    length: Array
    row: Array


class Filler:
    """Fills buffers with the pairs of a slab, row by row of A; `row` is the next row of A. Made by `of`."""

    def __init__(self, slab: Slab, terms: Terms, table: Reach, a_axis: Array, b_axis: Array) -> None:
        self.row = 0
        lowest, highest = int(b_axis[0]), int(b_axis[-1])
        shift = max(0, (highest - lowest).bit_length() - len(b_axis).bit_length())
        index = np.empty(((highest - lowest) >> shift) + 2, np.int32)
        self._places = np.empty((4, len(a_axis)), np.int32)
        self._a = Axis(a_axis, slab.a.length, slab.a.row)
        self._b = Axis(b_axis, slab.b.length, slab.b.row)
        self._criterion = Criterion(terms.width, terms.p, terms.q, GUARD)
        _fill_index(b_axis, lowest, shift, index)
        _fill_places(self._a, b_axis, index, lowest, shift, table, self._places)

    def fill(self, i: Array, j: Array) -> tuple[int, int]:
        """Write pairs into i and j up to the first row that might not fit; return (pairs, probabilities evaluated)."""
        self.row, filled, probes = _fill_pairs(self.row, self._a, self._b, self._places, self._criterion, i, j)
        return filled, probes

    def prepared(self) -> tuple[Axis, Axis, Array, Criterion]:
        """Both sides on the axis, the places of `_fill_places`, and the condition."""
        return self._a, self._b, self._places, self._criterion

    def candidates(self, row: int) -> int:
        """Number of rows of B that a row of A has to be compared with or surely matches."""
        return int(self._places[3, row]) - int(self._places[0, row])

    @staticmethod
    def of(slab: Slab, terms: Terms) -> "Filler | None":
        """Return the filler, or None if B is too long or keys and middles do not fit one number; A may be in any order."""
        a, b = slab.a, slab.b
        if len(b.row) > MOST_ROWS:
            return None
        table = reach(a.length, b.length, terms)
        a_axis = a.middle + terms.centre
        if a.code is None or b.code is None:
            return Filler(slab, terms, table, a_axis, b.middle)
        # Spacing of keys: so large that no row reaches from one key to the next.
        low, high = min(int(a_axis.min()), int(b.middle.min())), max(int(a_axis.max()), int(b.middle.max()))
        apart = high - low + int(table.far.max()) + 2
        first, last = min(int(a.code.min()), int(b.code[0])), max(int(a.code.max()), int(b.code[-1]))
        if (last - first + 2) * apart > WIDEST_AXIS:
            return None
        a_axis += (a.code - first) * apart
        return Filler(slab, terms, table, a_axis, b.middle + (b.code - first) * apart)


@compiled
def _fill_index(axis: Array, lowest: int, shift: int, index: Array) -> None:
    """First place of each bucket or, if it is empty, of the next bucket that is not; the last entry is one past the end."""
    index[:] = len(axis)
    for place in range(len(axis) - 1, -1, -1):
        index[(axis[place] - lowest) >> shift] = place
    following = index[len(index) - 1]
    for bucket in range(len(index) - 1, -1, -1):
        following = min(following, index[bucket])
        index[bucket] = following


@inlined
def _place(axis: Array, index: Array, lowest: int, shift: int, value: int) -> Any:
    """First place with axis[place] >= value."""
    # Unsigned indices avoid the test for negative ones.
    bucket = np.uintp(min(max((value - lowest) >> shift, 0), len(index) - 1))
    place = np.int64(index[bucket])
    if place + 4 <= len(axis):
        before = np.int64(axis[np.uintp(place)] < value)
        before += np.int64(axis[np.uintp(place + 1)] < value)
        before += np.int64(axis[np.uintp(place + 2)] < value)
        before += np.int64(axis[np.uintp(place + 3)] < value)
        place += before
        if before < 4:
            return place
    # All rows before `place` are below the value: advance in doubling steps while that holds, then halve the step.
    step = 1
    while place + step < len(axis) and axis[np.uintp(place + step)] < value:
        place += step
        step += step
    while step > 0:
        if place + step <= len(axis) and axis[np.uintp(place + step - 1)] < value:
            place += step
        step >>= 1
    return place


@compiled
def _fill_places(a: Axis, b_axis: Array, index: Array, lowest: int, shift: int, table: Reach, places: Array) -> None:
    """For each row of A the places of its first candidate, its first certain match, and the ends of both ranges."""
    a_axis, a_length, sure, far = a.place, a.length, table.sure, table.far
    for row in range(len(a_axis)):
        kind, target = np.uintp((a_length[row] - table.shortest) >> table.shift), a_axis[row]
        reached, certain = far[kind], sure[kind]
        # Without certain matches the two middle places are equal; without candidates all four are.
        first = _place(b_axis, index, lowest, shift, target - max(reached, 0))
        last = _place(b_axis, index, lowest, shift, target + reached + 1)
        sure_first = _place(b_axis, index, lowest, shift, target - max(certain, 0))
        sure_last = _place(b_axis, index, lowest, shift, target + certain + 1)
        places[0, row], places[1, row], places[2, row], places[3, row] = first, sure_first, sure_last, last


@inlined
def _area(s: int, w_a: float, w_b: float) -> float:
    """N(s): 2 w_a w_b times the distribution."""
    whole = float(s)
    over_a, over_b = max(whole - w_a, 0.0), max(whole - w_b, 0.0)
    return whole * whole - over_a * over_a - over_b * over_b


@inlined
def decided(offset: int, w_a: int, w_b: int, threshold: float, criterion: Criterion) -> Any:
    """Decide whether a candidate matches, from M and the lengths."""
    total, apart = w_a + w_b, abs(offset)
    before = min(max((criterion.width + total - apart) >> 1, 0), total)
    after = min((criterion.width + total + apart) >> 1, total)
    side_a, side_b = float(w_a), float(w_b)
    above = _area(before, side_a, side_b) + _area(after, side_a, side_b)
    above -= 2.0 * side_a * side_b * (1.0 + threshold)
    hit = above > 0.0
    if abs(above) <= BAND * (side_a + side_b) * (side_a + side_b):
        hit = matches(apart, w_a, w_b, threshold, criterion)
    return hit


@compiled
def _fill_pairs(
    row: int, a: Axis, b: Axis, places: Array, criterion: Criterion, i: Array, j: Array
) -> tuple[Any, Any, Any]:
    """Write the pairs of the rows of A from `row` on; return next row, pairs, probes."""
    # Local names for the arrays: numba would update a reference count at each access through the tuple.
    a_axis, a_length, a_row, b_axis, b_length, b_row = a.place, a.length, a.row, b.place, b.length, b.row
    filled: Any = 0  # places are numpy's integers for mypy and the machine's for numba
    first: Any
    probes, threshold = 0, criterion.p / criterion.q
    while row < len(a_row):
        first, sure_first = np.int64(places[0, row]), np.int64(places[1, row])
        sure_last, last = np.int64(places[2, row]), np.int64(places[3, row])
        if filled + last - first + WIDE > len(i):
            break
        own, w_a, target = a_row[row], a_length[row], a_axis[row]
        certain, copied = sure_last - sure_first, 0
        if sure_first + WIDE <= len(b_row):
            copied = WIDE
            for n in range(WIDE):
                i[np.uintp(filled + n)] = own
            for n in range(WIDE):
                j[np.uintp(filled + n)] = b_row[np.uintp(sure_first + n)]
        for n in range(copied, certain):
            i[np.uintp(filled + n)] = own
            j[np.uintp(filled + n)] = b_row[np.uintp(sure_first + n)]
        filled += certain
        left = sure_first - first
        unsure = left + last - sure_last
        probes += unsure
        for probe in range(unsure):
            place = np.uintp(first + probe + (certain if probe >= left else 0))
            hit = decided(b_axis[place] - target, w_a, b_length[place], threshold, criterion)
            i[np.uintp(filled)], j[np.uintp(filled)] = own, b_row[place]
            filled += np.int64(hit)
        row += 1
    return row, filled, probes
