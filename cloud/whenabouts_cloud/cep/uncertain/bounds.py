"""Bounds of the probability of a match from pairs of events: they decide most candidates, and all whose stamps are points.

A match is the intersection of these conditions: t_i < t_j for each cover i, j of the order; t_j - t_i <= w for each maximal
j and minimal i (the latest event of a placement in order is a maximal one, the earliest a minimal one); no negated x in its
gaps. Hence

    upper   the least probability among supersets of the match: each single condition above; on a chain the product of the
            pairs (1,2), (3,4) .. and of (2,3), (4,5) .., which share no event and so are independent; and for x and a gap
            P(x <= some maximal left) + P(x >= some minimal right), sums over these, as x outside the gap implies one of them
    lower   1 - the sum of the complements (Bonferroni), where P(x in gap) <= the least of P(t_l < x), P(x < t_r) over all
            left l and right r, as x in the gap implies each of them; several gaps of one x add up

Leading and trailing gaps have the sides x < t_j - w for some j, x > t_j + w for some j. If all conditions are certain, each
term is exactly 1 or 0 in floating point, and so are the bounds: points need no integration. O(n^2 + n x) a candidate.
"""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.uncertain.forbidden_events import Obstacles
from whenabouts_cloud.cep.uncertain.order_ideals import Floats, OrderIdeals
from whenabouts_cloud.jit import Array, compiled


class Bounds(NamedTuple):
    """Bounds of each candidate's probability (m,), and for each obstacle an upper bound of P(in its gaps)."""

    lower: Floats
    upper: Floats
    risk: Floats


@compiled
def less(a1: int, b1: int, a2: int, b2: int, shift: int, or_equal: bool) -> float:
    """P(X + shift < Y), or <=, for X uniform in [a1, b1] and Y in [a2, b2], independent; points are atoms."""
    a1 += shift
    b1 += shift
    if b1 < a2:
        return 1.0
    if b2 < a1:
        return 0.0
    if a1 == b1 and a2 == b2:
        return 1.0 if or_equal else 0.0
    if a1 == b1:
        return (b2 - a1) / (b2 - a2)
    if a2 == b2:
        return (a2 - a1) / (b1 - a1)
    if b1 == a2:
        return 1.0
    low, high = max(a1, a2), min(b1, b2)
    inside = (high - low) / (b2 - a2) * ((low - a1) + (high - a1)) / (2.0 * (b1 - a1))  # mean of P(X < y) there
    return max(b2 - b1, 0) / (b2 - a2) + inside


@compiled
def _gap(
    lo: int, hi: int, structure: OrderIdeals, k: int, stamps: tuple[Array, Array], w: int, strict: bool
) -> tuple[float, float]:
    """Upper bounds of P(x in gap k) and of P(x outside), for x in [lo, hi] and the positives' stamps."""
    a, b = stamps
    left, right, left_last, right_first = (
        structure.left[k], structure.right[k], structure.left_last[k], structure.right_first[k],
    )  # fmt: skip
    inside, outside = 1.0, 0.0
    for j in range(len(a)):
        bit = 1 << j
        if left == 0 or left & bit:
            early = less(lo, hi, a[j], b[j], w, strict) if left == 0 else less(lo, hi, a[j], b[j], 0, True)
            inside = min(inside, 1.0 - early)
            outside += early if left_last & bit else 0.0
        if right == 0 or right & bit:
            late = less(a[j], b[j], lo, hi, w, strict) if right == 0 else less(a[j], b[j], lo, hi, 0, True)
            inside = min(inside, 1.0 - late)
            outside += late if right_first & bit else 0.0
    return inside, min(outside, 1.0)


@compiled
def _in_order(structure: OrderIdeals, a: Array, b: Array, w: int, strict: bool) -> tuple[float, float]:
    """Upper bounds of P(the positives are in order and within the window) and of its complement."""
    before, n = structure.before, len(a)
    chain = True
    for i in range(n):
        chain = chain and before[i] == (1 << i) - 1
    most, lost = 1.0, 0.0
    even, odd = 1.0, 1.0  # on a chain, the products of pairs that share no event
    for i in range(n):
        for j in range(n):
            if before[i] >> j & 1:
                p = less(a[j], b[j], a[i], b[i], 0, False)
                most = min(most, p)
                if structure.covers[i] >> j & 1:
                    lost += 1.0 - p
                if chain and j == i - 1:
                    if i % 2:
                        odd *= p
                    else:
                        even *= p
            if i != j and structure.first >> j & 1 and structure.last >> i & 1:
                far = less(a[j], b[j], a[i], b[i], w, strict)
                most = min(most, 1.0 - far)
                lost += far
    if strict and w <= 0:
        most = 0.0
    return min(most, even, odd), lost


@compiled
def _bounds(
    structure: OrderIdeals, t_min: Array, t_max: Array, x: Obstacles, w: int, strict: bool, out: Bounds
) -> None:
    for c in range(len(t_min)):
        stamps = t_min[c], t_max[c]
        most, lost = _in_order(structure, t_min[c], t_max[c], w, strict)
        for i in range(x.offsets[c], x.offsets[c + 1]):
            together = 0.0
            for k in range(len(structure.left)):
                if x.gaps[i] >> k & 1:
                    inside, outside = _gap(x.t_min[i], x.t_max[i], structure, k, stamps, w, strict)
                    together += inside
                    most = min(most, outside)
            out.risk[i] = min(together, 1.0)
            lost += out.risk[i]
        out.upper[c] = max(most, 0.0)
        out.lower[c] = max(0.0, min(1.0 - lost, out.upper[c]))


def bounds(
    structure: OrderIdeals, t_min: Array, t_max: Array, obstacles: Obstacles, w: int, strict: bool
) -> tuple[Floats, Floats, Floats]:
    """Lower and upper bound of each candidate's probability (m,), and for each obstacle an upper bound of P(in its gaps).

    Each is within 1e-13 of the result of exact arithmetic.
    """
    out = Bounds(np.empty(len(t_min)), np.empty(len(t_min)), np.empty(len(obstacles.t_min)))
    _bounds(structure, t_min, t_max, obstacles, w, strict, out)
    return out
