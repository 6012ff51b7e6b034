"""Matches of a slab, with numpy only.

For each row of A, four binary searches in the middles of B give the candidates and, inside them, the certain matches
(`reach`). Only the candidates left and right of the certain matches are evaluated, in chunks of bounded size. The result
is a list of runs: ranges in the order of B in which every row matches one row of A. Pairs are made from the runs.

The probability is F + G - 1 in the branch form of the trapezoid, within 1e-15; closer to the threshold than GUARD, exact
integers decide, computed once for each distinct (length, length, distance).
"""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.arrays import Array
from whenabouts_cloud.correlation.batch.input import survey
from whenabouts_cloud.correlation.batch.reach import Terms, reach
from whenabouts_cloud.correlation.batch.slabs import Dealt, Ordered, Slab, by_row
from whenabouts_protocol import ratio_within

PROBES = 1 << 14  # candidates evaluated at once, each in some fifteen arrays of eight bytes
PAIRS = 1 << 17  # written at once
GUARD = 1e-12  # probabilities closer to the threshold are decided exactly; the float error is below 1e-15


class Runs(NamedTuple):
    """Places of A with ranges [first, last) of places of B that match them; maximal, ordered by (a, first)."""

    a: Array
    first: Array
    last: Array
    probes: int  # probabilities evaluated to find them


class Part(NamedTuple):
    """Pairs as distances of their row numbers from `i_start` and `j_start`."""

    i_start: int
    j_start: int
    i: Array
    j: Array


def runs(slab: Slab, terms: Terms) -> Iterator[Runs]:
    """Yield all matches of the slab."""
    a, b = slab.a, slab.b
    table = reach(a.length, b.length, terms)
    kind = (a.length - table.shortest) >> table.shift
    far, sure = table.far[kind], table.sure[kind]
    centre = a.middle + terms.centre
    place = _Places(a, b)
    first, last = place(centre - far, "left"), place(centre + far, "right")
    none = far < 0
    last[none] = first[none]
    sure_first, sure_last = place(centre - sure, "left"), place(centre + sure, "right")
    unsure = sure < 0
    sure_first[unsure] = sure_last[unsure] = first[unsure]
    row = np.flatnonzero(sure_last > sure_first)
    parts = [(row, sure_first[row], sure_last[row])]
    probes = 0
    for start, stop in ((first, sure_first), (sure_last, last)):
        for row, at in expanded(start, stop - start, PROBES):
            probes += len(row)
            hit = matches(b.middle[at] - centre[row], a.length[row], b.length[at], terms)
            parts.append((row[hit], at[hit], at[hit] + 1))
    a_place, first, last = (np.concatenate(column) for column in zip(*parts, strict=True))
    yield _joined(a_place, first, last, probes)


def pairs(slab: Slab, terms: Terms, i: Array, j: Array) -> Iterator[tuple[int, int]]:
    """Write the row numbers of the slab's pairs into i and j; yield (pairs, probabilities evaluated) of each filling."""
    return by_runs(runs, expand, slab, terms, i, j)


def counts(slab: Slab, terms: Terms) -> Iterator[tuple[int, int]]:
    """Yield numbers of pairs of the slab and of probabilities evaluated, in parts."""
    return ((int((part.last - part.first).sum()), part.probes) for part in runs(slab, terms))


def in_order(slabs: Iterable[Slab], terms: Terms) -> Iterator[Part]:
    """Yield the pairs of slabs with A in the order of its rows, in parts, ordered by (i, j) within and between parts."""
    for slab in slabs:
        i_start, j_start = int(slab.a.row[0]), int(slab.b.row.min())
        rows, bits = int(slab.a.row[-1]) - i_start, (int(slab.b.row.max()) - j_start).bit_length()
        # Both numbers packed into one are twice as fast to sort as two.
        packed = [
            (slab.a.row[part.a[run]] - i_start) << bits | (slab.b.row[at] - j_start)
            for part in runs(slab, terms)
            for run, at in expanded(part.first, part.last - part.first, PAIRS)
        ]
        if packed:
            both = np.concatenate(packed)
            both.sort()
            kind = np.min_scalar_type(max(rows, (1 << bits) - 1))
            yield Part(i_start, j_start, (both >> bits).astype(kind), (both & ((1 << bits) - 1)).astype(kind))


def by_runs(
    runs: Callable[[Slab, Terms], Iterator[Runs]], expand: Callable[[Runs, Slab, Array, Array], Iterator[int]],
    slab: Slab, terms: Terms, i: Array, j: Array,
) -> Iterator[tuple[int, int]]:  # fmt: skip
    """Yield the output of `pairs` from the runs of an engine."""
    for part in runs(slab, terms):
        probes = part.probes
        for filled in expand(part, slab, i, j):
            yield filled, probes
            probes = 0
        if probes:
            yield 0, probes


def expand(part: Runs, slab: Slab, i: Array, j: Array) -> Iterator[int]:
    """Write the row numbers of the runs' pairs into i and j; yield their number when the buffers are full and at the end."""
    for run, at in expanded(part.first, part.last - part.first, len(i)):
        i[: len(run)] = slab.a.row[part.a[run]]
        j[: len(run)] = slab.b.row[at]
        yield len(run)


def order(
    t_min: Array, t_max: Array, code: Array | None, row: Array | None, start: int, base: int, longest: int
) -> Ordered:
    """Return the rows up to length `longest` by (code, middle), middles minus twice the base, numbered row + start."""
    rows = by_row(t_min, t_max, code, row, start, base, longest)
    return rows.pick(_order(rows.middle, rows.code))


def deal(t_min: Array, t_max: Array, earliest: int, shift: int, buckets: int) -> Dealt:
    """Return the row numbers ordered by (t_min - earliest) >> shift, and the `survey` of the rows in that order."""
    bucket = ((t_min - earliest) >> shift).astype(np.min_scalar_type(buckets))
    row = np.argsort(bucket, kind="stable")  # a radix sort, as 16 bits are enough
    return row, *survey(t_min[row], t_max[row])


def _order(middle: Array, code: Array | None) -> Array:
    """Return the row numbers ordered by (code, middle, row).

    Sorting numbers packed from all three is four times faster than sorting indices by a key.
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


def expanded(first: Array, count: Array, size: int) -> Iterator[tuple[Array, Array]]:
    """Yield the ranges [first, first + count) as (row, place), at most `size` at a time; long ranges are split."""
    ends = np.cumsum(count)
    starts = ends - count
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, size):
        end = min(begin + size, total)
        low, high = int(np.searchsorted(ends, begin, "right")), int(np.searchsorted(starts, end, "left"))
        here = np.minimum(ends[low:high], end) - np.maximum(starts[low:high], begin)
        yield (
            np.repeat(np.arange(low, high), here),
            np.arange(begin, end) - np.repeat((starts - first)[low:high], here),
        )


def matches(distance: Array, w_a: Array, w_b: Array, terms: Terms) -> npt.NDArray[np.bool_]:
    """Return a mask of the pairs that satisfy the condition; distance is M of `condition`, positive or negative."""
    apart = np.abs(distance)
    chance = probability(apart, w_a, w_b, terms)
    hit: npt.NDArray[np.bool_] = chance >= terms.threshold
    near = np.flatnonzero(np.abs(chance - terms.threshold) < GUARD)
    known: dict[tuple[int, int, int], bool] = {}
    for at in near.tolist():
        case = (int(apart[at]), int(w_a[at]), int(w_b[at]))
        if case not in known:
            known[case] = exactly(*case, terms)
        hit[at] = known[case]
    return hit


def exactly(apart: int, w_a: int, w_b: int, terms: Terms) -> bool:
    """Decide in whole numbers, for the distance M of `condition`."""
    # Scaled by two, so that intervals of these lengths with this distance of middles have whole ends.
    ratio = Fraction(*ratio_within(-w_a, w_a, apart - w_b, apart + w_b, terms.width))
    return ratio >= Fraction(terms.p, terms.q)


def probability(apart: Array, w_a: Array, w_b: Array, terms: Terms) -> npt.NDArray[np.float64]:
    """P for |M| and two lengths, within 1e-15."""
    low, high = np.minimum(w_a, w_b), np.maximum(w_a, w_b)
    reached = terms.width + low + high
    return _distribution((reached - apart) >> 1, low, high) + _distribution((reached + apart) >> 1, low, high) - 1.0


def pair_probability(i: Array, j: Array, stamps: tuple[Array, Array, Array, Array], terms: Terms) -> Array:
    """Return P of pairs of row numbers that satisfy the condition: never below the threshold, within 1e-15.

    stamps: a_min, a_max, b_min, b_max as given, with a span that fits int64.
    """
    a_min, a_max, b_min, b_max = stamps
    chance = np.empty(len(i))
    for start in range(0, len(i), PROBES):
        i_part, j_part = i[start : start + PROBES], j[start : start + PROBES]
        x_min, x_max, y_min, y_max = a_min[i_part], a_max[i_part], b_min[j_part], b_max[j_part]
        apart = np.abs((y_min - x_min) + (y_max - x_max) - terms.centre)
        part = probability(apart, x_max - x_min, y_max - y_min, terms)
        np.maximum(part, terms.threshold, out=chance[start : start + PROBES])
    return chance


class _Places:
    """Binary search in the middles of B, for each row of A among the rows with its key."""

    def __init__(self, a: Ordered, b: Ordered) -> None:
        self._middle, self._code = b.middle, None
        if a.code is not None and b.code is not None:
            # Ranks replace middles, so that key and rank fit one number for all stamps.
            self._middle, rank = np.unique(b.middle, return_inverse=True)
            self._ranks = len(self._middle) + 1
            self._code, self._place = a.code * self._ranks, b.code * self._ranks + rank

    def __call__(self, middle: Array, edge: Any) -> Array:
        place: Array = np.searchsorted(self._middle, middle, edge)
        return place if self._code is None else np.searchsorted(self._place, self._code + place, "left")


def _joined(a: Array, first: Array, last: Array, probes: int) -> Runs:
    """Return the runs in order, adjacent ones merged."""
    order = np.lexsort((first, a))
    a, first, last = a[order], first[order], last[order]
    if not len(a):
        return Runs(a, first, last, probes)
    new = np.ones(len(a), bool)
    new[1:] = (a[1:] != a[:-1]) | (first[1:] != last[:-1])
    starts = np.flatnonzero(new)
    return Runs(a[starts], first[starts], last[np.append(starts[1:], len(a)) - 1], probes)


def _distribution(s: Array, low: Array, high: Array) -> npt.NDArray[np.float64]:
    """P(U(0, low) + U(0, high) <= s), low <= high. The first test decides the tie of two points."""
    total = low + high
    lo, hi = np.maximum(low, 1).astype(float), np.maximum(high, 1).astype(float)
    s_f, rest, area = s.astype(float), (total - s).astype(float), 2.0 * lo * hi
    falling = 1.0 - rest * rest / area
    middle = (s_f - low.astype(float) / 2.0) / hi
    chance: npt.NDArray[np.float64] = np.where(s < low, s_f * s_f / area, np.where(s <= high, middle, falling))
    chance[s <= 0] = 0.0
    chance[s >= total] = 1.0
    return chance
