"""The definition of `|@a - @b| <= d OVER ct`, integrated piece by piece in exact fractions. Slow and obvious.

X is uniform in I1, Y in I2. For X = x the probability is the share of I2 within [x - d, x + d]; it is a piecewise linear
function of x, so its mean over I1 is exact by the trapezoid rule between its breaks.
"""

import itertools
from fractions import Fraction

Interval = tuple[int, int]


def probability(a: Interval, b: Interval, d: int) -> Fraction:
    """P(|Y - X| <= d) from the definition; a point is an atom."""
    a_min, a_max = a
    if a_min == a_max:
        return _share(Fraction(a_min), b, d)
    if b[0] == b[1]:
        return _share(Fraction(b[0]), a, d)
    breaks = {Fraction(a_min), Fraction(a_max)}
    breaks |= {Fraction(x) for end in b for x in (end - d, end + d) if a_min < x < a_max}
    ordered = sorted(breaks)
    area = sum(
        ((_share(x, b, d) + _share(y, b, d)) / 2 * (y - x) for x, y in itertools.pairwise(ordered)),
        Fraction(0),
    )
    return area / (a_max - a_min)


def pairs(
    a: list[tuple[object, Interval]], b: list[tuple[object, Interval]], d: int, ct: Fraction
) -> dict[tuple[int, int], Fraction]:
    """Every (i, j) with equal keys and a probability of at least ct, with the probability."""
    probabilities = {}
    for i, (a_key, x) in enumerate(a):
        for j, (b_key, y) in enumerate(b):
            if a_key == b_key:
                p = probability(x, y, d)
                if p >= ct:
                    probabilities[i, j] = p
    return probabilities


def _share(x: Fraction, interval: Interval, d: int) -> Fraction:
    low, high = interval
    if low == high:
        return Fraction(int(abs(low - x) <= d))
    overlap = min(Fraction(high), x + d) - max(Fraction(low), x - d)
    return max(overlap, Fraction(0)) / (high - low)
