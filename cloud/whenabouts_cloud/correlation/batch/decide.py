"""Decision on a pair of intervals, compiled with numba; shared by the kernels of `matches_numba` and `pairs_numba`.

The probability is F + G - 1 in the branch form of the trapezoid, within 1e-15; where it is closer to the threshold than a
guard, exact integers of 128 bits and their product with the confidence decide. Source: correlation mathematics, section 7.
"""

from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.jit import compiled

Limbs = tuple[Any, Any]  # uint64: high, low


class Criterion(NamedTuple):
    """Width of the condition in ticks, confidence p/q, and the distance from it below which floats do not decide."""

    width: int
    p: int
    q: int
    guard: float


@compiled
def _distribution(s: int, low: int, high: int) -> float:
    """P(U(0, low) + U(0, high) <= s), low <= high. The first test decides the tie of two points."""
    if s >= low + high:
        return 1.0
    if s <= 0:
        return 0.0
    if s < low:
        return float(s) * float(s) / (2.0 * float(low) * float(high))
    if s <= high:
        return (float(s) - float(low) / 2.0) / float(high)
    rest = float(low + high - s)
    return 1.0 - rest * rest / (2.0 * float(low) * float(high))


@compiled
def probability(apart: int, w_a: int, w_b: int, width: int) -> float:
    """P for |M| and two lengths, within 1e-15."""
    low, high = min(w_a, w_b), max(w_a, w_b)
    reached = width + w_a + w_b
    return _distribution((reached - apart) >> 1, low, high) + _distribution((reached + apart) >> 1, low, high) - 1.0


@compiled
def matches(apart: int, w_a: int, w_b: int, threshold: float, criterion: Criterion) -> Any:
    """True if the pair satisfies the condition; `threshold` is p / q, divided once."""
    above = probability(apart, w_a, w_b, criterion.width) - threshold
    if abs(above) >= criterion.guard:
        return above > 0.0
    return exactly(apart, w_a, w_b, criterion.width, criterion.p, criterion.q)


@compiled
def _product(x: Any, y: Any) -> Limbs:
    """x * y of two uint64 as (high, low)."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    x_high, x_low, y_high, y_low = x >> half, x & mask, y >> half, y & mask
    low = x_low * y_low
    cross = x_high * y_low + (low >> half)
    other = x_low * y_high + (cross & mask)
    return x_high * y_high + (cross >> half) + (other >> half), (other << half) | (low & mask)


@compiled
def _plus(x: Limbs, y: Limbs) -> Limbs:
    low = x[1] + y[1]
    return x[0] + y[0] + np.uint64(low < x[1]), low


@compiled
def _minus(x: Limbs, y: Limbs) -> Limbs:
    return x[0] - y[0] - np.uint64(x[1] < y[1]), x[1] - y[1]


@compiled
def _square(x: int) -> Limbs:
    return _product(np.uint64(max(x, 0)), np.uint64(max(x, 0)))


@compiled
def _area(s: int, w_a: int, w_b: int) -> Limbs:
    """2 w_a w_b times the distribution at s, from 0 to w_a + w_b: s^2 - (s - w_a)+^2 - (s - w_b)+^2."""
    return _minus(_minus(_square(s), _square(s - w_a)), _square(s - w_b))


@compiled
def _at_least(x: Limbs, q: int, y: Limbs, p: int) -> Any:
    """x * q >= y * p, numbers of 192 bits."""
    x_low, y_low = _product(x[1], np.uint64(q)), _product(y[1], np.uint64(p))
    x_high = _plus(_product(x[0], np.uint64(q)), (np.uint64(0), x_low[0]))
    y_high = _plus(_product(y[0], np.uint64(p)), (np.uint64(0), y_low[0]))
    if x_high[0] != y_high[0]:
        return x_high[0] > y_high[0]
    if x_high[1] != y_high[1]:
        return x_high[1] > y_high[1]
    return x_low[1] >= y_low[1]


@compiled
def exactly(apart: int, w_a: int, w_b: int, width: int, p: int, q: int) -> Any:
    """Decision in whole numbers: F + G - 1 as a ratio of areas, or of lengths for a point; all lengths are below 2^62."""
    total = w_a + w_b
    before, after = (width + total - apart) >> 1, (width + total + apart) >> 1
    if total == 0:
        return before >= 0 and after >= 0
    before, after = min(max(before, 0), total), min(max(after, 0), total)
    none = np.uint64(0)
    if w_a == 0 or w_b == 0:
        if before + after < total:
            return False
        return _at_least((none, np.uint64(before + after - total)), q, (none, np.uint64(total)), p)
    whole = _product(np.uint64(2 * w_a), np.uint64(w_b))
    both = _plus(_area(before, w_a, w_b), _area(after, w_a, w_b))
    if both[0] < whole[0] or (both[0] == whole[0] and both[1] < whole[1]):
        return False
    return _at_least(_minus(both, whole), q, whole, p)
