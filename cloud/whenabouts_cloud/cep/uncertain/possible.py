"""Test for POSSIBLE: events with uncertain stamps have a placement in order, within the window, with empty gaps.

Take a linear extension e_0 .. e_(n-1) of the order: each t is <= the next, and < where the order requires it. These
conditions and the window bound differences, so the placements that satisfy them have a least one, in all coordinates at
once. A negated x is outside its gaps in one of a few stretches of time, each from some t_i (or -inf, or t_0 + w) up to some
later t_j (or inf, or t_(n-1) - w). If x fits in none of them in the least placement:

    A stretch that begins after x's stamp stays out of reach, since every placement is later than the least one.
    The other stretches end before x's stamp, so some end must move up to it. Moving any end up moves the end of the last of
    these stretches up (ends are in time order). So in every solution the last end is at or after x's begin.

Raising this end to x's begin loses no solution. From then on x fits in the stretch, or the stretch is out of reach. After at
most one raise per x and stretch, the least placement is a solution, or some stamp is exceeded and there is none: exact,
without search. Strict comparisons raise by an infinitesimal: numbers are STEPS times ticks plus a count of infinitesimals,
fewer than STEPS.

Cost: O(n^2 + x n) a raise, about 1 us for a chain of 4 with 2 negated events. Unordered positives multiply this by the
linear extensions tried until one is possible: an impossible AND of 8 costs 40 320 times as much, but only if negated events
are undecided.
"""

import numpy as np

from whenabouts_cloud.cep.uncertain.forbidden_events import Obstacles
from whenabouts_cloud.cep.uncertain.order_ideals import OrderIdeals
from whenabouts_cloud.jit import Array, compiled

STEPS = 1 << 8  # infinitesimals a tick; so stamps of one candidate may be 2^54 us (570 years) apart
NONE, AGAIN, FITS = 0, 1, 2


@compiled
def _settle(t: Array, high: Array, order: Array, before: Array, w: int, strict: bool) -> bool:
    """Moves t (n,), by place in the extension, up to the least placement; False if there is none."""
    n = len(t)
    if n == 1:
        return t[0] <= high[0] and (w > 0 or not strict)
    for _ in range(3):  # the window raises the first once; if that raises the last again, the raises never end
        for i in range(n):
            for j in range(i):
                t[i] = max(t[i], t[j] + (before[order[i]] >> order[j] & 1))
            if t[i] > high[i]:
                return False
        least = t[n - 1] - w + (1 if strict else 0)
        if least <= t[0]:
            return True
        t[0] = least
    return False


@compiled
def _fit(t: Array, place: Array, structure: OrderIdeals, gaps: int, lo: int, hi: int, w: int, strict: bool) -> int:
    """FITS if x in [lo, hi] is outside its gaps; else raises the end that must rise (AGAIN), or NONE if no end can."""
    n, left, right = len(t), structure.left, structure.right
    blocked = np.zeros(n + 1, np.bool_)  # from place s - 1 to place s
    inside = np.zeros(n, np.bool_)  # at the moment of place s
    lead, trail = False, False
    for k in range(len(left)):
        if gaps >> k & 1:
            begin, end = -1, n
            for e in range(n):
                if left[k] >> e & 1:
                    begin = max(begin, place[e])
                if right[k] >> e & 1:
                    end = min(end, place[e])
            lead, trail = lead or left[k] == 0, trail or right[k] == 0
            blocked[begin + 1 : end + 1] = True
            inside[begin + 1 : end] = True
    later = 0 if strict else 1
    raised, level = -1, 0
    if lead:  # before t_(n-1) - w
        if t[n - 1] >= lo + w + later:
            return FITS
        raised, level = n - 1, lo + w + later
    for s in range(n + 1):  # stretches, and free moments between them, in the order of their begins
        if s > 0 and blocked[s - 1] and blocked[s] and not inside[s - 1] and t[s - 1] <= hi:
            if t[s - 1] >= lo:
                return FITS
            raised, level = s - 1, lo
        if not blocked[s] and (s == 0 or t[s - 1] <= hi):
            if s == n or t[s] >= lo:
                return FITS
            raised, level = s, lo
    if trail and t[0] + w + later <= hi:
        return FITS
    if raised < 0:
        return NONE
    t[raised] = level
    return AGAIN


@compiled
def _extension(
    order: Array, a: Array, b: Array, obstacles: Obstacles, structure: OrderIdeals, w: int, strict: bool
) -> bool:
    """True if there is a placement in this order; stamps are in infinitesimals."""
    t, high = a[order], b[order]
    place = np.argsort(order)
    again = True
    while again:
        again = False
        if not _settle(t, high, order, structure.before, w, strict):
            return False
        for i in range(len(obstacles.gaps)):
            lo, hi = obstacles.t_min[i], obstacles.t_max[i]
            answer = _fit(t, place, structure, obstacles.gaps[i], lo, hi, w, strict)
            if answer == NONE:
                return False
            if answer == AGAIN:
                again = True
                break
    return True


@compiled
def _possible(
    structure: OrderIdeals, orders: Array, t_min: Array, t_max: Array, obstacles: Obstacles, w: int, strict: bool,
    result: Array,
) -> None:  # fmt: skip
    for c in range(len(t_min)):
        own = slice(obstacles.offsets[c], obstacles.offsets[c + 1])
        x_min, x_max = obstacles.t_min[own], obstacles.t_max[own]
        origin, highest = np.min(t_min[c]), np.max(t_max[c])
        for i in range(len(x_min)):
            origin, highest = min(origin, x_min[i]), max(highest, x_max[i])
        a, b = (t_min[c] - origin) * STEPS, (t_max[c] - origin) * STEPS
        few = Obstacles(
            obstacles.offsets, (x_min - origin) * STEPS, (x_max - origin) * STEPS, obstacles.gaps[own]
        )  # fmt: skip
        span = min(w, highest - origin + 1) * STEPS  # a longer window has no effect
        result[c] = False
        for o in range(len(orders)):
            if _extension(orders[o], a, b, few, structure, span, strict):
                result[c] = True
                break


def possible(
    structure: OrderIdeals, orders: Array, t_min: Array, t_max: Array, obstacles: Obstacles, window: int, strict: bool
) -> Array:
    """True for each candidate (m, n), with its obstacles, that is possible; `orders` are the linear extensions (E, n)."""
    result = np.empty(len(t_min), np.bool_)
    _possible(structure, orders, t_min, t_max, obstacles, window, strict, result)
    return result
