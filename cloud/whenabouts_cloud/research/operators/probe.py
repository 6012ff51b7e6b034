"""Probe (Algorithm 3 of "Lazy Approaches ...", 2010): decision in integers if one pair reaches the confidence.

The probability depends on the doubled distance M of the middles from the condition's centre, on the two lengths and on the
width D = hi - lo. With T = w1 + w2 and S = D + T - |M| it is, for D >= T (one tail is cut at most),

    S >= 2T: 1    S <= 0: 0    S < 2 lo: S^2 / (8 lo hi)    S <= 2 hi: (S - lo) / (2 hi)    else 1 - (2T - S)^2 / (8 lo hi)

with lo, hi the smaller and the larger length, tested in this order (the first decides the tie of two points). Compared with
p/q by cross-multiplication, so ties are results. For D < T both tails can be cut, where the papers' Corollaries 1 and 3 do
not hold: there the exact ratio of the protocol package decides. Cost: 0.25 us a pair, 2 us with both tails.
"""

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_protocol import ratio_within


class Probe:
    """The exact test of one condition."""

    __slots__ = ("_condition", "_p", "_q", "_rest", "_width")

    def __init__(self, condition: Condition) -> None:
        self._condition = condition
        self._width = condition.width
        self._p, self._q = condition.ct.numerator, condition.ct.denominator
        self._rest = self._q - self._p

    def holds(self, distance: int, w1: int, w2: int) -> bool:
        """True if a pair is a result; `distance` is M: (b_min + b_max) - (a_min + a_max) - (lo + hi), or its negative."""
        total = w1 + w2
        if self._width < total:
            return self._both_tails(distance, w1, w2)
        s = self._width + total - abs(distance)
        if s >= total + total:
            return True
        if s <= 0:
            return False
        if w1 <= w2:
            low, high = w1, w2
        else:
            low, high = w2, w1
        if s < low + low:
            return s * s * self._q >= 8 * self._p * low * high
        if s <= high + high:
            return (s - low) * self._q >= 2 * self._p * high
        rest = total + total - s
        return rest * rest * self._q <= 8 * self._rest * low * high

    def _both_tails(self, distance: int, w1: int, w2: int) -> bool:
        # Scaled by two, so that intervals of these lengths with this distance of middles have integer ends.
        return self._condition.is_met(*ratio_within(-w1, w1, distance - w2, distance + w2, self._width))
