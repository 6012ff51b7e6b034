"""Bounds from quantiles: pairs that can never match, pairs that must match, and the resulting band of a pair's middles.

X has the quantile function q_X, Y has q_Y, both independent, whatever their shapes; Z = Y - X, lo <= Z <= hi with P >= ct.

*Never.* Let alpha < 1 - sqrt(1 - ct). If q_Y(alpha) - q_X(1 - alpha) > hi, then Z <= hi forces Y < q_Y(alpha) or
X > q_X(1 - alpha), each of probability alpha at most. They are independent, so P <= 1 - (1 - alpha)^2 < ct. In the same way
nothing matches if q_Y(1 - alpha) - q_X(alpha) < lo.

*Sure.* Let beta = 1 - sqrt(c). If q_Y(1 - beta) - q_X(beta) <= hi, then Y <= q_Y(1 - beta) and X >= q_X(beta) imply
Z <= hi, so P(Z <= hi) >= (1 - beta)^2 = c. In the same way q_Y(beta) - q_X(1 - beta) >= lo gives P(Z >= lo) >= c. With
c = (1 + ct) / 2 both together give P >= 2 c - 1 = ct. With c = ct one is enough if the supports guarantee the other limit.

*Longest useful interval.* Whatever X is, Y must fall into a window of length hi - lo, which holds at most
(hi - lo) peak / w of its probability. So P >= ct needs w <= (hi - lo) peak / ct, for either side; at hi = lo only points
are left.

*Middle.* A quantile is min + w q for the shape's own q on [0, 1]. With m = (b_min + b_max) - (a_min + a_max), the doubled
distance of the middles, the first bound is: never if m > 2 hi + w_b (1 - 2 q_V(alpha)) + w_a (2 q_U(1 - alpha) - 1), and the
second is analogous. `middle_band` is the interval of m for given longest lengths, so B can be ordered by middle.

Each bound has a margin for rounding: alpha and beta are smaller by MARGIN, positions wider by SLACK. Pairs that neither
bound decides are evaluated.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.correlation.distributions.probability import Shape
from whenabouts_cloud.pattern.condition import Condition

MARGIN = 1e-9  # of probability: far above PROBABILITY_ERROR and the rounding of quantiles
SLACK_US, SLACK_SHARE = 2.0, 1e-12  # of a position: absolute, and for each unit of length

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Bounds:
    """The bounds for one condition and two shapes. Lengths and distances are arrays, or floats.

    >>> from whenabouts_cloud.correlation.distributions.shapes import triangular
    >>> bounds = Bounds(Condition("within", d=100, confidence="0.8"), triangular(), triangular())
    >>> bounds.never(0, 60, np.array([50, 90, 110]), 60).tolist()
    [False, False, True]
    >>> bounds.sure(0, 60, np.array([50, 90, 110]), 60).tolist()
    [True, False, False]
    """

    condition: Condition
    a_shape: Shape
    b_shape: Shape

    @property
    def alpha(self) -> float:
        """Probability that each side may leave out without losing a match."""
        return max(0.0, 1 - sqrt(1 - float(self.condition.ct)) - MARGIN)

    def longest_us(self, shape: Shape) -> float:
        """Length above which no interval of this shape is part of a pair."""
        width = self.condition.width
        return width * shape.peak / float(self.condition.ct) * (1 + 1e-9) + (SLACK_US if width else 0.5)

    def never(self, a_min: Any, a_length: Any, b_min: Any, b_length: Any) -> Bools:
        """Mask of the pairs that cannot reach ct."""
        slack = _slack(a_length, b_length)
        least, most = self._difference(self.alpha, a_min, a_length, b_min, b_length)
        out: Bools = (least - slack > self.condition.hi_us) | (most + slack < self.condition.lo_us)
        return out

    def sure(self, a_min: Any, a_length: Any, b_min: Any, b_length: Any) -> Bools:
        """Mask of the pairs that certainly reach ct."""
        slack, ct = _slack(a_length, b_length), float(self.condition.ct)
        above, below = [], []
        for left_out in (_left_out((1 + ct) / 2), _left_out(ct), 0.0):
            least, most = self._difference(left_out, a_min, a_length, b_min, b_length)
            above.append(least - slack >= self.condition.lo_us)
            below.append(most + slack <= self.condition.hi_us)
        inside: Bools = (above[0] & below[0]) | (above[2] & below[1]) | (above[1] & below[2])
        return inside

    def middle_band(self, a_longest: float, b_longest: float) -> tuple[float, float]:
        """Range of the doubled distance of middles of all matching pairs with intervals up to these lengths."""
        a_low, a_high, b_low, b_high = self._quantiles(self.alpha)
        slack = 2 * _slack(a_longest, b_longest)
        high = 2 * self.condition.hi_us + max(0.0, b_longest * (1 - 2 * b_low)) + max(0.0, a_longest * (2 * a_high - 1))
        low = 2 * self.condition.lo_us - max(0.0, b_longest * (2 * b_high - 1)) - max(0.0, a_longest * (1 - 2 * a_low))
        return low - slack, high + slack

    def _difference(self, left_out: float, a_min: Any, a_length: Any, b_min: Any, b_length: Any) -> tuple[Any, Any]:
        a_low, a_high, b_low, b_high = self._quantiles(left_out)
        start = b_min - a_min  # integers first: the difference of two stamps is exact
        return start + b_length * b_low - a_length * a_high, start + b_length * b_high - a_length * a_low

    def _quantiles(self, p: float) -> tuple[float, float, float, float]:
        return (
            self.a_shape.quantile(p), self.a_shape.quantile(1 - p), self.b_shape.quantile(p), self.b_shape.quantile(1 - p)
        )  # fmt: skip


def _left_out(c: float) -> float:
    """Probability that each side may leave out while c is still certain; 0 if not even the margin is left."""
    return max(0.0, 1 - sqrt(c) - MARGIN)


def _slack(a_length: Any, b_length: Any) -> Any:
    return SLACK_US + SLACK_SHARE * (a_length + b_length)
