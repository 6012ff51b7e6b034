"""All pairs of two sets of intervals that satisfy a condition, with a shape for each side.

Intervals too long to match are omitted. Side B is ordered by (key, doubled middle), and the candidates of a row of A are
one range of it (`Bounds.middle_band`). Pairs that can never match are dropped, pairs that must match are taken, and only
the others are evaluated.

*Ties.* Two piecewise linear shapes: a probability within GUARD of ct is computed again on fractions, so the result is
exact, including ties. With a truncated normal there is no exact value: the pair is a result if its computed
probability is at least ct - PROBABILITY_ERROR. So a pair whose true probability reaches ct is always a result, and
every result has a true probability of at least ct - 2 PROBABILITY_ERROR. The verdict depends only on the pair itself.

Cost: measured on one core with 10^5 tuples a side and 0.9 million pairs at ct 0.8, without probabilities: 0.5 us a pair for
triangles, 2 us for truncated normals; the bounds take 0.1 us a candidate. Memory of one chunk and the result.
"""

from fractions import Fraction
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.correlation.distributions.probability import (
    PROBABILITY_ERROR,
    Shape,
    check_limits,
    checked_stamps,
    exact_probability,
)
from whenabouts_cloud.correlation.distributions.probability import probability as _probability
from whenabouts_cloud.correlation.distributions.quantile_bounds import Bounds
from whenabouts_cloud.correlation.distributions.shapes import PiecewiseLinear
from whenabouts_cloud.pattern.condition import Condition

CHUNK_CANDIDATES = 1 << 18  # candidate pairs held at once
GUARD = 1e-9  # probabilities closer to ct are decided on fractions where possible

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class _Side(NamedTuple):
    """Stamps of one side, and its keys as numbers."""

    t_min: Ints
    t_max: Ints
    code: Ints

    @property
    def length(self) -> Ints:
        """Lengths of the stamps."""
        return self.t_max - self.t_min

    def take(self, rows: Ints) -> "_Side":
        """Return these rows."""
        return _Side(self.t_min[rows], self.t_max[rows], self.code[rows])

    def check(self) -> None:
        """Raise ValueError if the columns differ in length or an interval ends before it begins."""
        if not len(self.t_min) == len(self.t_max) == len(self.code):
            lengths = f"{len(self.t_min)}, {len(self.t_max)}, {len(self.code)}"
            raise ValueError(f"columns: found lengths {lengths}, expected equal ones")
        if (self.t_min > self.t_max).any():
            at = int(np.flatnonzero(self.t_min > self.t_max)[0])
            raise ValueError(f"interval {at}: found [{self.t_min[at]}, {self.t_max[at]}], expected the minimum first")


@overload
def correlate_distributed(
    a_min: Any, a_max: Any, b_min: Any, b_max: Any, condition: Condition, a_shape: Shape, b_shape: Shape,
    *, key_a: Any = None, key_b: Any = None, probability: Literal[False] = False,
) -> tuple[Ints, Ints]: ...  # fmt: skip
@overload
def correlate_distributed(
    a_min: Any, a_max: Any, b_min: Any, b_max: Any, condition: Condition, a_shape: Shape, b_shape: Shape,
    *, key_a: Any = None, key_b: Any = None, probability: Literal[True],
) -> tuple[Ints, Ints, Floats]: ...  # fmt: skip
def correlate_distributed(
    a_min: Any,
    a_max: Any,
    b_min: Any,
    b_max: Any,
    condition: Condition,
    a_shape: Shape,
    b_shape: Shape,
    *,
    key_a: Any = None,
    key_b: Any = None,
    probability: bool = False,
) -> tuple[Ints, Ints] | tuple[Ints, Ints, Floats]:
    """Indices i into A, j into B, and the probability, of all pairs that satisfy the condition, ordered by (i, j).

    Stamps are integers up to 2^60 in magnitude, in any order. Keys are arrays of one comparable type; only equal keys pair
    up. The probability is returned on request; without it, pairs that the bounds decide are not evaluated.

    Raises:
        ValueError: a key column is missing, columns differ in length, or an interval ends before it begins.

    >>> from whenabouts_cloud.correlation.distributions.shapes import triangular
    >>> within = Condition("within", d=25, confidence="0.75")
    >>> shapes = triangular(), triangular()
    >>> i, j, p = correlate_distributed([0], [100], [50, 51], [50, 51], within, *shapes, probability=True)
    >>> i.tolist(), j.tolist(), p.tolist()
    ([0], [0], [0.75])
    """
    a_low, a_high, b_low, b_high = (checked_stamps(x) for x in (a_min, a_max, b_min, b_max))
    a_code, b_code = _codes(key_a, key_b, len(a_low), len(b_low))
    a, b = _Side(a_low, a_high, a_code), _Side(b_low, b_high, b_code)
    a.check()
    b.check()
    check_limits(condition)
    bounds = Bounds(condition, a_shape, b_shape)
    a_rows = np.flatnonzero(a.length <= bounds.longest_us(a_shape))
    b_rows = np.flatnonzero(b.length <= bounds.longest_us(b_shape))
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    if len(a_rows) and len(b_rows):
        a, b = a.take(a_rows), b.take(b_rows)
        first, count, order = _stretches(bounds, a, b)
        for row, place in _chunks(first, count):
            i, j, p = _decide(row, order[place], a, b, bounds, probability)
            parts.append((a_rows[i], b_rows[j], p))
    i, j, p = (np.concatenate(column) for column in zip(*parts, strict=True))
    by_index = np.lexsort((j, i))
    i, j, p = i[by_index], j[by_index], p[by_index]
    return (i, j, p) if probability else (i, j)


def _codes(key_a: Any, key_b: Any, a_count: int, b_count: int) -> tuple[Ints, Ints]:
    if (key_a is None) != (key_b is None):
        raise ValueError("keys: found them on one side, expected them on both or on none")
    if key_a is None:
        return np.zeros(a_count, np.int64), np.zeros(b_count, np.int64)
    _, code = np.unique(np.concatenate([np.asarray(key_a), np.asarray(key_b)]), return_inverse=True)
    return code[: len(key_a)], code[len(key_a) :]


def _stretches(bounds: Bounds, a: _Side, b: _Side) -> tuple[Ints, Ints, Ints]:
    """For each row of A its range [first, first + count) in the order of B by (key, doubled middle)."""
    low, high = bounds.middle_band(float(a.length.max()), float(b.length.max()))
    middles, b_rank = np.unique(b.t_min + b.t_max, return_inverse=True)
    ranks = len(middles) + 1
    order = np.argsort(b.code * ranks + b_rank, kind="stable")
    place = (b.code * ranks + b_rank)[order]
    a_middle = a.t_min + a.t_max
    lowest = np.searchsorted(middles, a_middle + _integer(low), side="left")
    beyond = np.searchsorted(middles, a_middle + _integer(high), side="right")
    first = np.searchsorted(place, a.code * ranks + lowest, side="left")
    last = np.searchsorted(place, a.code * ranks + beyond, side="left")
    return first, last - first, order


def _integer(band: float) -> int:
    """Round outwards to an integer; a band beyond 2^61 covers every doubled middle anyway and would overflow."""
    return int(min(max(np.floor(band) if band < 0 else np.ceil(band), -(2.0**62)), 2.0**62 - 1024))


def _chunks(first: Ints, count: Ints) -> Any:
    """The candidates as (row of A, place in B's order), at most CHUNK_CANDIDATES at a time; long ranges are split."""
    ends = np.cumsum(count)
    starts = ends - count
    for begin in range(0, int(ends[-1]), CHUNK_CANDIDATES):
        flat = np.arange(begin, min(begin + CHUNK_CANDIDATES, int(ends[-1])))
        row = np.searchsorted(ends, flat, side="right")
        yield row, first[row] + flat - starts[row]


def _decide(i: Ints, j: Ints, a: _Side, b: _Side, bounds: Bounds, everywhere: bool) -> tuple[Ints, Ints, Floats]:
    """The candidates that satisfy the condition; all probabilities are evaluated if `everywhere`."""
    v, w = a.length.astype(float), b.length.astype(float)
    maybe = ~bounds.never(a.t_min[i], v[i], b.t_min[j], w[j])
    i, j = i[maybe], j[maybe]
    keep = bounds.sure(a.t_min[i], v[i], b.t_min[j], w[j])
    p = np.ones(len(i))
    at = np.arange(len(i)) if everywhere else np.flatnonzero(~keep)
    stamps = (a.t_min[i[at]], a.t_max[i[at]], b.t_min[j[at]], b.t_max[j[at]])
    p[at] = _probability(bounds.a_shape, *stamps[:2], bounds.b_shape, *stamps[2:], bounds.condition)
    ct = float(bounds.condition.ct)
    keep |= p >= ct - PROBABILITY_ERROR
    if isinstance(bounds.a_shape, PiecewiseLinear) and isinstance(bounds.b_shape, PiecewiseLinear):
        near = np.flatnonzero(np.abs(p[at] - ct) < GUARD)
        near_stamps = tuple(x[near] for x in stamps)
        keep[at[near]], p[at[near]] = _exactly(near_stamps, bounds.a_shape, bounds.b_shape, bounds.condition)
    return i[keep], j[keep], p[keep]


def _exactly(
    stamps: tuple[Ints, ...], a_shape: PiecewiseLinear, b_shape: PiecewiseLinear, condition: Condition
) -> tuple[Any, Any]:
    """Decision and probability by fractions, once for each distinct (length, length, distance)."""
    known: dict[tuple[int, int, int], Fraction] = {}
    exact: list[Fraction] = []
    for a, a_end, b, b_end in zip(*(x.tolist() for x in stamps), strict=True):
        case = (a_end - a, b_end - b, b - a)
        if case not in known:
            known[case] = exact_probability(a_shape, (0, case[0]), b_shape, (case[2], case[2] + case[1]), condition)
        exact.append(known[case])
    return [x >= condition.ct for x in exact], [float(x) for x in exact]
