"""Conditions for reusing the verdict on a pair: the look-up rule of the 2010 paper for any shapes, and where it fails.

An interval [a, b] with shape U is a (1 - U) + b U, and U is in [0, 1]: moving either end up moves it up for every U. So
with the same shape, or a shape that is stochastically above, moving both ends up moves X up in the stochastic order
(compare both at the quantile of one random number). Then P(Y - X >= lo) falls and P(Y - X <= hi) rises. Hence, for the
same e = Y:

*left*   a pair (X, e) that satisfies Z >= lo stays satisfied for X' stochastically below X;
*right*  a pair (X, e) that satisfies Z <= hi stays satisfied for X' stochastically above X.

Two things break the rule. *Another shape*: an interval that lies lower may have a higher true moment (uniform on [0, 10]
against a mode at the end of [0, 9]); `stochastically_below` checks this. *The other limit* of a two-sided condition may
cut off the gain of the move; the guard requires that it cannot: on the left e_max - X'_min <= hi, on the right e_min -
X'_max >= lo.
Only "satisfied" carries over; a violated pair may be satisfied after the move.
"""

from fractions import Fraction
from itertools import pairwise
from typing import Literal

from whenabouts_cloud.correlation.distributions.normal import TruncatedNormal
from whenabouts_cloud.correlation.distributions.probability import Shape
from whenabouts_cloud.correlation.distributions.shapes import PiecewiseLinear
from whenabouts_cloud.pattern.condition import Condition

Stamp = tuple[int, int]


def stochastically_below(low: Shape, high: Shape) -> bool:
    """Return True if P(low <= u) >= P(high <= u) for every u can be shown; False means "not shown".

    Equal shapes always; piecewise linear ones exactly; normals of one sigma by their means (the ratio of their densities is
    monotone on [0, 1]). A normal against another kind is not shown.

    >>> from whenabouts_cloud.correlation.distributions.shapes import triangular, uniform
    >>> stochastically_below(triangular(0), uniform()), stochastically_below(uniform(), triangular(0))
    (True, False)
    """
    if low == high:
        return True
    if isinstance(low, TruncatedNormal) and isinstance(high, TruncatedNormal):
        return low.sigma == high.sigma and low.mean <= high.mean
    if isinstance(low, PiecewiseLinear) and isinstance(high, PiecewiseLinear):
        return _never_negative(low, high)
    return False


def may_reuse(
    side: Literal["left", "right"],
    condition: Condition,
    known: tuple[Shape, Stamp],
    new: tuple[Shape, Stamp],
    target: Stamp,
) -> bool:
    """Return True if "satisfied" for the pair (known, target) implies "satisfied" for (new, target).

    `known` and `new` are X (stream a), `target` is Y. Left: new is lower; right: new is higher.
    """
    (known_shape, (known_min, known_max)), (new_shape, (new_min, new_max)) = known, new
    if side == "left":
        moved = new_min <= known_min and new_max <= known_max and stochastically_below(new_shape, known_shape)
        return moved and target[1] - new_min <= condition.hi_us
    moved = new_min >= known_min and new_max >= known_max and stochastically_below(known_shape, new_shape)
    return moved and target[0] - new_max >= condition.lo_us


def _never_negative(low: PiecewiseLinear, high: PiecewiseLinear) -> bool:
    """True if cdf(low) >= cdf(high): the difference is quadratic between knots, so check knots and turning points."""

    def gain(u: Fraction) -> Fraction:
        return low.exact_cdf(u) - high.exact_cdf(u)

    cuts = sorted({*low.knots, *high.knots})
    for left, right in pairwise(cuts):
        middle = (left + right) / 2
        ends = [low.exact_density(x) - high.exact_density(x) for x in (middle, (middle + right) / 2)]
        slope = (ends[1] - ends[0]) / ((right - left) / 4)
        turn = middle - ends[0] / slope if slope else middle
        if gain(right) < 0 or (left < turn < right and gain(turn) < 0):
            return False
    return True
