"""Compiled part of the probability: one stretch of time for all order ideals, and sampled orders of starts.

Within a stretch in which the same starts may happen, h of an order ideal S is a polynomial in x of [0, 1]. Start e
happens at a constant rate r, so the coefficients are
c[S, k + 1] = sum over the last starts e of S of r c[S - e, k] / (k + 1): nothing is ever subtracted,
and small probabilities are as exact as large ones.
"""

from typing import NamedTuple

import numpy as np

from whenabouts_cloud.jit import Array, compiled


class Stretch(NamedTuple):
    """An open stretch of time, with the rates of the starts, or a point at which `at_once` of them happen at once."""

    rate: Array  # (n, e)
    at_once: Array  # (n,)
    must: Array  # (n,) starts that have happened at its end (point) or at its beginning (stretch)
    can: Array  # (n,) starts that may have happened


class Draws(NamedTuple):
    """Sampled orders: weights (s,), rows (s, E + 1, n) of counts of starts, and flags whether each lasts (s, E + 1)."""

    weights: Array
    rows: Array
    lasts: Array


@compiled
def spread(
    measure: Array, coefficients: Array, rows: Array, neighbours: Array, back: bool, stretch: Stretch, good: Array
) -> None:
    """Replaces the measure (D, 2) of orders in each order ideal at the beginning of a stretch by that at its end.

    The first column is of orders that have not yet entered a good ideal, the second of those that have. `coefficients`
    (D, 2, K) become those of the measure as a polynomial in x. Backwards the measure is of what follows, x counts from
    the end, and the neighbours are the order ideals with one start more, else with one less.
    """
    rate, must, can = stretch.rate, stretch.must, stretch.can
    size, n, degrees = len(rows), rows.shape[1], coefficients.shape[2]
    for step in range(size):
        ideal = size - 1 - step if back else step
        alive = True
        for j in range(n):
            alive = alive and must[j] <= rows[ideal, j] <= can[j]
        for flag in range(2):
            for k in range(degrees):
                coefficients[ideal, flag, k] = 0.0
            coefficients[ideal, flag, 0] = measure[ideal, flag] if alive else 0.0
        for j in range(n):
            other, event = neighbours[ideal, j], rows[ideal, j] if back else rows[ideal, j] - 1
            if not alive or other < 0 or rate[j, event] == 0.0:
                continue
            for flag in range(2):
                to = 1 if good[ideal] else flag
                for k in range(degrees - 1):
                    coefficients[ideal, to, k + 1] += rate[j, event] * coefficients[other, flag, k] / (k + 1)
        for flag in range(2):
            measure[ideal, flag] = coefficients[ideal, flag].sum()


@compiled
def entered(forward: Array, backward: Array, entries: Array) -> None:
    """Adds to `entries` (D,) the measure of orders that enter each order ideal within a stretch.

    It is the flow into the ideal at x times the measure of what follows:
    integral of k x^(k - 1) (1 - x)^l = k! l! / (k + l)!.
    """
    size, degrees = forward.shape
    shares = np.ones((degrees, degrees))
    for k in range(1, degrees):
        for m in range(1, degrees):
            shares[k, m] = shares[k, m - 1] * m / (k + m)
    for s in range(size):
        for k in range(1, degrees):
            if forward[s, k] != 0.0:
                for m in range(degrees):
                    entries[s] += forward[s, k] * backward[s, m] * shares[k, m]


@compiled
def sample(order: Array, lo: Array, hi: Array, need: Array, after: Array, chance: Array, draws: Draws) -> None:
    """Draws starts that respect the order.

    In a linear extension each start is drawn between the latest of its predecessors and its own bound. The more starts
    follow up to the same bound (`after`), the earlier it is drawn; the weight is the ratio of the densities.
    """
    weights, rows, lasts = draws
    events, n = order.shape[0], lo.shape[0]
    t = np.empty(lo.shape)
    begun = np.empty(events)
    for s in range(len(weights)):
        weight = 1.0
        for place in range(events):
            j, k = order[place]
            low = lo[j, k]
            for i in range(n):
                if need[j, k, i] > 0:
                    low = max(low, t[i, need[j, k, i] - 1])
            length, more = hi[j, k] - low, after[j, k]
            share = (1.0 - chance[s, place]) ** (1.0 / (more + 1.0))
            t[j, k] = min(max(hi[j, k] - length * share, low), hi[j, k])
            if hi[j, k] > lo[j, k]:
                weight *= length / (hi[j, k] - lo[j, k]) / (more + 1.0) / share**more
            begun[place] = t[j, k]
        weights[s] = weight
        sequence = np.argsort(begun, kind="mergesort")
        for i in range(n):
            rows[s, 0, i] = 0
        lasts[s, 0] = False
        for step in range(events):
            place = sequence[step]
            for i in range(n):
                rows[s, step + 1, i] = rows[s, step, i]
            rows[s, step + 1, order[place, 0]] += 1
            lasts[s, step + 1] = step + 1 == events or begun[sequence[step + 1]] > begun[place]
