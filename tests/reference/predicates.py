"""The definition of every timing predicate, integrated piece by piece in exact fractions. Slow and obvious.

X is uniform in I1, Y in I2, and a predicate is a set of distances Z = Y - X. For X = x the probability is the share of I2
in [x + lo, x + hi]; it is a piecewise linear function of x, so its mean over I1 is exact by the trapezoid rule between its
breaks. No closed form of the distribution of Z is used.
"""

import itertools
from fractions import Fraction

Interval = tuple[int, int]


def limits(kind: str, d: int = 0, lo: int = 0, hi: int = 0, window: int = 0) -> tuple[int, int]:
    """The set of distances as [lo, hi]; deadline and delay look back or ahead as far as their window."""
    return {"within": (-d, d), "between": (lo, hi), "deadline": (-window, d), "delay": (d, window)}[kind]


def probability(a: Interval, b: Interval, lo: int, hi: int) -> Fraction:
    """P(lo <= Y - X <= hi) from the definition; a point is an atom."""
    if a[0] == a[1]:
        return _share(Fraction(a[0]), b, lo, hi)
    if b[0] == b[1]:  # lo <= y - X <= hi is y - hi <= X <= y - lo
        return _share(Fraction(b[0]), a, -hi, -lo)
    breaks = {Fraction(x) for x in a}
    breaks |= {Fraction(x) for end in b for x in (end - lo, end - hi) if a[0] < x < a[1]}
    area = Fraction(0)
    for x, y in itertools.pairwise(sorted(breaks)):
        area += (_share(x, b, lo, hi) + _share(y, b, lo, hi)) / 2 * (y - x)
    return area / (a[1] - a[0])


def pairs(
    a: list[tuple[object, Interval]], b: list[tuple[object, Interval]], lo: int, hi: int, ct: Fraction
) -> dict[tuple[int, int], Fraction]:
    """Every (i, j) with equal keys and a probability of at least ct, with the probability, in the order of (i, j)."""
    probabilities = {}
    for i, (a_key, x) in enumerate(a):
        for j, (b_key, y) in enumerate(b):
            if a_key == b_key:
                p = probability(x, y, lo, hi)
                if p >= ct:
                    probabilities[i, j] = p
    return probabilities


def _share(x: Fraction, interval: Interval, lo: int, hi: int) -> Fraction:
    """The share of the interval in [x + lo, x + hi]."""
    first, last = interval
    if first == last:
        return Fraction(int(x + lo <= first <= x + hi))
    overlap = min(Fraction(last), x + hi) - max(Fraction(first), x + lo)
    return max(overlap, Fraction(0)) / (last - first)
