"""Finds the obstacles of each candidate: the negated events that could block it, each once, with the gaps it may fall into.

An event is one random time even if several gaps forbid it; STRICT lists it for each of them. An event of the match is no
obstacle to the match. A gap that an event cannot reach in any placement is dropped; the others are undecided or certain.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.cep.uncertain.order_ideals import Ints, OrderIdeals
from whenabouts_cloud.pattern.plan import Alternative, Plan

Negated = list[tuple[Ints, Ints, Ints, Ints]]  # for each negation: offsets (m + 1), t_min, t_max, ids
Bools = npt.NDArray[np.bool_]

WINDOW_MAX = 1 << 60  # longer windows have no effect; leaves room for sums


class Obstacles(NamedTuple):
    """Obstacles; those of candidate c are offsets[c]:offsets[c + 1]. `gaps` are bits of negations."""

    offsets: Ints
    t_min: Ints
    t_max: Ints
    gaps: Ints


def window(plan: Plan) -> int:
    """The plan's window, capped so that sums with stamps cannot overflow."""
    return min(plan.window, WINDOW_MAX)


def obstacles(alternative: Alternative, plan: Plan, t_min: Ints, t_max: Ints, negated: Negated, ids: Ints) -> Obstacles:
    """The negated events that can lie in a gap of their candidate in some placement."""
    candidate, low, high, name, gap = [], [], [], [], []
    for k, (negation, (offsets, x_min, x_max, x_ids)) in enumerate(zip(alternative.negations, negated, strict=True)):
        c = np.repeat(np.arange(len(t_min)), np.diff(offsets))
        x_min, x_max, x_ids = (v[offsets[0] : offsets[-1]] for v in (x_min, x_max, x_ids))
        reach = ~harmless(negation.left, negation.right, plan, t_min[c], t_max[c], x_min, x_max)
        reach &= ~(ids[c] == x_ids[:, None]).any(axis=1)
        candidate.append(c[reach])
        low.append(x_min[reach])
        high.append(x_max[reach])
        name.append(x_ids[reach])
        gap.append(np.full(np.count_nonzero(reach), 1 << k, np.int64))
    if not candidate:
        empty = np.zeros(0, np.int64)
        return Obstacles(np.zeros(len(t_min) + 1, np.int64), empty, empty, empty)
    c, x, lo, hi, bits = (np.concatenate(v) for v in (candidate, name, low, high, gap))
    order = np.lexsort((x, c))
    c, x, lo, hi, bits = (v[order] for v in (c, x, lo, hi, bits))
    starts = np.flatnonzero(np.r_[True, (c[1:] != c[:-1]) | (x[1:] != x[:-1])][: len(c)])
    merged = np.bitwise_or.reduceat(bits, starts) if len(c) else bits
    counts = np.bincount(c[starts], minlength=len(t_min))
    return Obstacles(np.r_[0, np.cumsum(counts)].astype(np.int64), lo[starts], hi[starts], merged)


def harmless(left: int, right: int, plan: Plan, t_min: Ints, t_max: Ints, x_min: Ints, x_max: Ints) -> Bools:
    """True for each x (m,) that lies outside the gap of the positives (m, n) in every placement."""
    before, after = outside_window(plan, t_min, t_max, x_min, x_max)
    sides = np.arange(t_min.shape[1])
    if left:
        before = x_max <= t_min[:, (left >> sides & 1) == 1].max(axis=1)
    if right:
        after = x_min >= t_max[:, (right >> sides & 1) == 1].min(axis=1)
    return before | after


def outside_window(plan: Plan, t_min: Ints, t_max: Ints, x_min: Ints, x_max: Ints) -> tuple[Bools, Bools]:
    """True for each x that is certainly too early, or too late, to share a window with all of the positives (m, n)."""
    earliest, latest = t_min.max(axis=1) - window(plan), t_max.min(axis=1) + window(plan)
    if plan.strict_window:
        return x_max <= earliest, x_min >= latest
    return x_max < earliest, x_min > latest


def gap_masks(structure: OrderIdeals) -> tuple[int, int]:
    """Negations that reach back by the window, and those that reach forward by it."""
    bits = [1 << k for k in range(len(structure.left))]
    leading = sum(b for b, left in zip(bits, structure.left, strict=True) if left == 0)
    trailing = sum(b for b, right in zip(bits, structure.right, strict=True) if right == 0)
    return leading, trailing
