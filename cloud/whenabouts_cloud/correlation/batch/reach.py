"""Limits on the distance of two middles: beyond one limit a pair certainly fails, within the other it certainly holds.

With M, D and T of `condition`, C the distribution of U(0, w_a) + U(0, w_b), s* the least s with C(s) >= ct and
Q(w_a, w_b, ct) = s* - T/2, the ct-quantile of the centred sum:

    fails   if |M| > D - 2 Q(ct)                  at most C((D + T - |M|)/2) of the probability is left, for any D
    holds   if |M| <= D - 2 Q(ct)     and D >= T  then only one tail is cut
    holds   if |M| <= D - 2 Q((1 + ct)/2)         each of the two limits fails with (1 - ct)/2 at most, for any D

Q is monotone in each length: a longer interval is a less peaked symmetric unimodal summand, and the convolution with another
symmetric unimodal one keeps that order (Birnbaum 1948). So Q grows with the lengths for ct >= 1/2 and falls for ct <= 1/2,
and its extremes over a rectangle of lengths are at opposite corners. The table holds both limits for classes of lengths of A
against all lengths of B; pairs between the limits get the exact test. Every entry is rounded outward by more than the
error of the floating point formula, so no rounding can change a result. Source: correlation mathematics, sections 3 to 6.

Cost: some 50 us a table.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.arrays import Array

CLASSES = 256  # of lengths of A in a table: at most 1/256 more probes, and 4 KiB, which stay in the L1 cache
ROUNDING = 2.0**-46  # relative to D + T: the formula is accurate to a few units in the 52nd place


class Terms(NamedTuple):
    """A condition as plain numbers for the engines; limits in ticks, confidence = p/q."""

    lo: int
    hi: int
    p: int
    q: int

    @property
    def centre(self) -> int:
        """lo + hi: the doubled distance of middles in the centre of the condition."""
        return self.lo + self.hi

    @property
    def width(self) -> int:
        """D = hi - lo."""
        return self.hi - self.lo

    @property
    def threshold(self) -> float:
        """The confidence, correctly rounded."""
        return self.p / self.q


class Reach(NamedTuple):
    """Limits on |M| for the lengths `shortest + (n << shift) ..` of A: candidates up to `far[n]`, certain up to `sure[n]`.

    A negative limit means that there are no such pairs.
    """

    shortest: int
    shift: int
    sure: npt.NDArray[np.int64]
    far: npt.NDArray[np.int64]


def reach(a_length: Array, b_length: Array, terms: Terms) -> Reach:
    """The table for all lengths of A against all lengths of B (int64, none empty, none negative)."""
    shortest, longest = int(a_length.min()), int(a_length.max())
    shift = max(0, (longest - shortest).bit_length() - CLASSES.bit_length() + 1)
    lower = shortest + (np.arange(((longest - shortest) >> shift) + 1, dtype=np.int64) << shift)
    upper = np.minimum(lower + ((1 << shift) - 1), longest)
    b_lower, b_upper = int(b_length.min()), int(b_length.max())
    at_lower, at_upper = quantile(lower, b_lower, terms.p, terms.q), quantile(upper, b_upper, terms.p, terms.q)
    of_both = quantile(upper, b_upper, terms.p + terms.q, 2 * terms.q)
    one_tail = terms.width >= upper + b_upper
    highest = np.where(one_tail, np.maximum(at_lower, at_upper), of_both)
    slack = 2.0 + ROUNDING * (terms.width + upper.astype(float) + b_upper)
    sure = np.floor(terms.width - 2.0 * highest - slack)
    far = np.ceil(terms.width - 2.0 * np.minimum(at_lower, at_upper) + slack)
    return Reach(shortest, shift, np.maximum(sure, -1.0).astype(np.int64), np.maximum(far, -1.0).astype(np.int64))


def quantile(w_a: Array, w_b: int, p: int, q: int) -> npt.NDArray[np.float64]:
    """Q: the p/q-quantile of U(-w_a/2, w_a/2) + U(-w_b/2, w_b/2)."""
    # 1 - p/q is computed separately: near 1 it would be just the rounding error of p/q, which the square root enlarges.
    confidence, rest = p / q, (q - p) / q
    low, high = np.minimum(w_a, w_b).astype(float), np.maximum(w_a, w_b).astype(float)
    edge = low / (2.0 * np.maximum(high, 1.0))
    total, area = low + high, low * high
    rising, falling = np.sqrt(2.0 * confidence * area), total - np.sqrt(2.0 * rest * area)
    least = np.where(confidence <= edge, rising, np.where(rest <= edge, falling, confidence * high + low / 2.0))
    centred: npt.NDArray[np.float64] = least - total / 2.0
    return centred
