"""All pairs of two sets of intervals that satisfy a `Condition`, decided exactly, with numpy and no loop over rows.

Side B is ordered by (key, doubled middle). The candidates of a row of A are one contiguous range of B, found by binary
search with the band of `condition`. They are expanded in chunks of bounded size, and the probability is evaluated in the
branch form of the trapezoid, which is within 1e-15. Where it is closer to ct than GUARD, the decision is made on exact
integers, once for each distinct (length, length, distance). Source: correlation mathematics, sections 2, 5 and 7.

Limits. Stamps and limits within +-2^60 us (36 000 years) keep every intermediate value inside int64. Larger
values run through the same code as Python integers in object arrays: equally exact, about three times slower.

Cost: sorting, then 0.3 to 0.5 us a candidate on one core; besides inputs and result, the memory of one chunk.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.arrays import Array
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_protocol import ratio_within

CHUNK_CANDIDATES = 1 << 18  # candidate pairs held at once, each in some twenty arrays of eight bytes
GUARD = 1e-9  # probabilities closer to ct are decided exactly; the float error is below 1e-15
INT64_SAFE = 1 << 60  # |stamp| and d up to here: 2^60 + 2 * 2^61 and every sum below stay under 2^63

Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]


def pairs(
    a_key: Array | None,
    a_min: Array,
    a_max: Array,
    b_key: Array | None,
    b_min: Array,
    b_max: Array,
    condition: Condition,
) -> Pairs:
    """Indices i into A, j into B and probabilities of all pairs that satisfy the condition, ordered by (i, j).

    Stamps are integer arrays of equal length per side (int64, or object arrays of Python integers). Keys are arrays of one
    comparable type without nulls; only equal keys pair up; None on both sides: keys are not compared.

    Raises:
        ValueError: one key is missing, or an interval ends before it begins.

    >>> within = Condition("within", d=10, confidence="0.2")
    >>> pairs(None, np.array([0]), np.array([100]), None, np.array([40]), np.array([41]), within)
    (array([0]), array([0]), array([0.2]))
    """
    if (a_key is None) != (b_key is None):
        raise ValueError("keys: found them on one side, expected them on both or on none")
    a_index, a_min, a_max = _useful(np.asarray(a_min), np.asarray(a_max), condition.longest_us)
    b_index, b_min, b_max = _useful(np.asarray(b_min), np.asarray(b_max), condition.longest_us)
    if not len(a_index) or not len(b_index):
        return _no_pairs()
    if not _fits(condition, a_min, a_max, b_min, b_max):
        a_min, a_max, b_min, b_max = (x.astype(object) for x in (a_min, a_max, b_min, b_max))
    a_code, b_code = _codes(
        None if a_key is None else np.asarray(a_key)[a_index], None if b_key is None else np.asarray(b_key)[b_index]
    )
    first, count, order = _candidates(a_code, a_min, a_max, b_code, b_min, b_max, condition)
    parts = [
        _evaluate(i, order[j], a_min, a_max, b_min, b_max, condition)
        for i, j in _chunks(first, count, CHUNK_CANDIDATES)
    ]
    if not parts:
        return _no_pairs()
    i, j, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
    i, j = a_index[i], b_index[j]
    by_index = np.lexsort((j, i))
    return i[by_index], j[by_index], probability[by_index]


def _no_pairs() -> Pairs:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64)


def _useful(t_min: Array, t_max: Array, longest: int) -> tuple[Array, Array, Array]:
    """Return positions and stamps of the intervals short enough to match."""
    if (t_min > t_max).any():
        at = int(np.flatnonzero(t_min > t_max)[0])
        raise ValueError(f"interval {at}: found [{t_min[at]}, {t_max[at]}], expected the minimum first")
    if t_min.dtype == object or t_max.dtype == object:
        short = np.fromiter((b - a <= longest for a, b in zip(t_min, t_max, strict=True)), bool, len(t_min))
    else:
        # Two's complement: the difference of any two int64 is right as uint64.
        length = t_max.astype(np.int64).view(np.uint64) - t_min.astype(np.int64).view(np.uint64)
        short = length <= np.uint64(min(longest, (1 << 64) - 1))
    index = np.flatnonzero(short)
    return index, t_min[index], t_max[index]


def _fits(condition: Condition, *stamps: Array) -> bool:
    """Return True if int64 is wide enough for every intermediate value."""
    return max(abs(condition.lo_us), abs(condition.hi_us)) <= INT64_SAFE and all(
        x.dtype != object and int(x.min()) >= -INT64_SAFE and int(x.max()) <= INT64_SAFE for x in stamps
    )


def _codes(a_key: Array | None, b_key: Array | None) -> tuple[Array | int, Array | int]:
    """Keys as small integers, the same for both sides."""
    if a_key is None or b_key is None:
        return 0, 0
    _, code = np.unique(np.concatenate([a_key, b_key]), return_inverse=True)
    return code[: len(a_key)], code[len(a_key) :]


def _candidates(
    a_code: Array | int,
    a_min: Array,
    a_max: Array,
    b_code: Array | int,
    b_min: Array,
    b_max: Array,
    condition: Condition,
) -> tuple[Array, Array, Array]:
    """For each row of A its range [first, first + count) in the order of B by (key, doubled middle).

    Ranks replace the middles, so that key and rank fit one int64 for all stamps.
    """
    a_middle, b_middle = a_min + a_max, b_min + b_max
    longest_a, longest_b = int((a_max - a_min).max()), int((b_max - b_min).max())
    band = condition.band(longest_a + longest_b)
    middles, b_rank = np.unique(b_middle, return_inverse=True)
    ranks = len(middles) + 1
    b_place = b_code * ranks + b_rank
    order = np.argsort(b_place, kind="stable")
    b_place = b_place[order]
    centre = condition.doubled_centre
    lowest = np.searchsorted(middles, a_middle + (centre - band), side="left")
    beyond = np.searchsorted(middles, a_middle + (centre + band), side="right")
    first = np.searchsorted(b_place, a_code * ranks + lowest, side="left")
    last = np.searchsorted(b_place, a_code * ranks + beyond, side="left")
    return first, last - first, order


def _chunks(first: Array, count: Array, size: int) -> "list[tuple[Array, Array]] | Any":
    """The candidates as (row of A, place in B's order), at most `size` at a time; long ranges are split."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    starts = ends - count
    for begin in range(0, total, size):
        end = min(begin + size, total)
        low = int(np.searchsorted(ends, begin, side="right"))
        high = int(np.searchsorted(starts, end, side="left"))
        from_here = np.maximum(starts[low:high], begin)
        here = np.minimum(ends[low:high], end) - from_here
        row = np.repeat(np.arange(low, high), here)
        yield row, np.arange(begin, end) - np.repeat((starts - first)[low:high], here)


def _evaluate(
    i: Array, j: Array, a_min: Array, a_max: Array, b_min: Array, b_max: Array, condition: Condition
) -> tuple[Array, Array, Array]:
    """The candidate pairs that satisfy the condition, with their probability."""
    w_a, w_b = (a_max - a_min)[i], (b_max - b_min)[j]
    low, high = np.minimum(w_a, w_b), np.maximum(w_a, w_b)
    probability = (
        _distribution(condition.hi_us + a_max[i] - b_min[j], low, high)
        + _distribution(b_max[j] - a_min[i] - condition.lo_us, low, high)
        - 1.0
    )
    threshold = condition.ct.numerator / condition.ct.denominator
    keep = probability >= threshold
    near = np.flatnonzero(np.abs(probability - threshold) < GUARD)
    if len(near):
        distance = np.abs((b_min + b_max)[j[near]] - (a_min + a_max)[i[near]] - condition.doubled_centre)
        keep[near], probability[near] = _decide(low[near], high[near], distance, condition)
    return i[keep], j[keep], probability[keep]


def _distribution(s: Array, low: Array, high: Array) -> npt.NDArray[np.float64]:
    """P(U(0, low) + U(0, high) <= s), low <= high. The first test decides the tie of two points."""
    total = low + high
    lo, hi, s_f = (np.maximum(low, 1)).astype(float), (np.maximum(high, 1)).astype(float), s.astype(float)
    rest = (total - s).astype(float)
    area = 2.0 * lo * hi
    rising = s_f * s_f / area
    middle = (s_f - low.astype(float) / 2.0) / hi
    falling = 1.0 - rest * rest / area
    tests = [np.asarray(test, dtype=bool) for test in (s >= total, s <= 0, s < low, s <= high)]
    one, zero = np.ones(len(s)), np.zeros(len(s))
    return np.select(tests, [one, zero, rising, middle], default=falling)


def _decide(low: Array, high: Array, distance: Array, condition: Condition) -> tuple[Array, Array]:
    """Exact decision and correctly rounded probability; they depend on the lengths and |M| of `condition` only."""
    cases: dict[tuple[int, int, int], tuple[bool, float]] = {}
    keep, probability = np.empty(len(low), bool), np.empty(len(low))
    for at, case in enumerate(zip(low.tolist(), high.tolist(), distance.tolist(), strict=True)):
        if case not in cases:
            w_a, w_b, m2 = case
            # Scaled by two, so that intervals of these lengths with this distance of middles have integer ends.
            num, den = ratio_within(-w_a, w_a, m2 - w_b, m2 + w_b, condition.width)
            cases[case] = condition.is_met(num, den), num / den
        keep[at], probability[at] = cases[case]
    return keep, probability
