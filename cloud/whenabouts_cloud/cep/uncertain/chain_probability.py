"""The exact probability that events with uncertain stamps are a match: in order, within the window, with empty gaps.

All stamps are independent and uniform in their intervals; points are atoms. The positives happen one after the other. Let
g_S(u) du be the probability that the order ideal S has happened, its last positive at u. Then, for each possible next e,

    g_(S + e)(v)  +=  density of e at v  *  integral of g_S(u) over u < v

A negated x with cumulative distribution F is outside its gaps with probability 1 - sum of F(right) - F(left) over the
stretches of time in which some gap forbids it: a sum of terms, each of which depends on one positive's time. Each term is
multiplied in when its positive happens. A state is an order ideal and, for each x in the middle of its sum, a bit that says
if a term was taken. If the rest of the sum is known, the factor is multiplied in as a whole, so the common cases add no
negative numbers.

All these functions are polynomials between neighbouring ends of stamps, given at Gauss-Legendre nodes in each such cell,
exact for the degree (`rules`). The window, and gaps that reach back or forward by it, tie the first positive to the last.
Then an outer exact rule integrates over the first positive's time, in cells between the ends, the ends less w, and the ends
of x plus w.

Error: rounding only, measured below 1e-15 against exact rationals; ERROR is guaranteed. Cost, one core, machine code:
about (cells q)(n cells q^2) 2^open additions, the first factor only where the window matters. Typically, with stamps that
overlap widely: 0.12 ms for a chain of 4 with 2 negated events, 7 ms for 8 with 6, 25 ms for AND of 8; the first use compiles
(7 s). Times are an integer base and a small offset, so a stamp of 1 us beside one of a day is as exact.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from whenabouts_cloud.cep.uncertain.chain_walk import Order, Rule, Stamps, Start, terms_of, walk
from whenabouts_cloud.cep.uncertain.forbidden_events import Obstacles, gap_masks
from whenabouts_cloud.cep.uncertain.order_ideals import Floats, Ints, OrderIdeals
from whenabouts_cloud.jit import Array, compiled

ERROR = 1e-11  # guaranteed error of a probability; those within it below the threshold are emitted as ties
NODES_MAX = 40
STATES = 1 << 10  # order ideals with bits; for more the result is nan, and the caller leaves out obstacles


class Window(NamedTuple):
    """The window, and the negations, as bits, whose gaps reach back and forward by the window."""

    length: float
    strict: bool
    leading: int
    trailing: int


@cache
def rules() -> tuple[Floats, Floats, Floats]:
    """Gauss-Legendre rules on [0, 1] by number of nodes: nodes (Q, Q), weights (Q, Q), `upto` (Q, Q, Q); 0.5 MB.

    The rule of q nodes is exact for degree 2q - 1 over the interval. `upto[j, r]` is the integral from 0 to node j of the
    r-th Lagrange polynomial of the nodes, so a polynomial of degree q - 1, given at the nodes, is integrated exactly up to
    each node. With l_r(x) = w_r sum_m (2m + 1) P_m(x_r) P_m(x) / 2 on [-1, 1] and (2m + 1) times the integral of P_m =
    P_(m+1) - P_(m-1) (Abramowitz & Stegun 22.7.10, 25.4.29) nothing cancels badly: errors are a few 1e-16 at 40 nodes.
    """
    size = NODES_MAX + 1
    nodes, weights, upto = np.zeros((size, size)), np.zeros((size, size)), np.zeros((size, size, size))
    for q in range(1, size):
        x, w = np.polynomial.legendre.leggauss(q)
        p = np.polynomial.legendre.legvander(x, q)  # P_m(x_j), m = 0..q
        integral = np.empty((q, q))  # (2m + 1) times the integral of P_m from -1 to x_j
        integral[:, 0] = x + 1
        for m in range(1, q):
            integral[:, m] = p[:, m + 1] - p[:, m - 1]
        nodes[q, :q], weights[q, :q] = (x + 1) / 2, w / 2
        upto[q, :q, :q] = integral @ (p[:, :q] * w[:, None]).T / 4
    return nodes, weights, upto


@compiled
def _from_each_first(starts: Array, outer: Rule, ends: Array, stamps: Stamps, order: Order, rule: Rule) -> float:
    """Integral over the first positive and its time; `starts` are the ends of the time's cells. nan: too many states."""
    a, b = stamps.a, stamps.b
    latest, earliest = np.max(a) - stamps.w, np.min(b)  # the first positive is no earlier, no later than these
    value = 0.0
    for e in range(len(a)):
        start = order.successors[0, e]
        if start < 0:
            continue
        terms = terms_of(order, start, stamps.leads)
        if terms.place[-1] > STATES:
            return np.nan
        point = a[e] == b[e]
        if point:
            value += walk(Start(a[e], 0.0, point, start), stamps.w, ends, stamps, order, terms, rule)
            continue
        for i in range(len(starts) - 1):
            low, length = starts[i], starts[i + 1] - starts[i]
            if low < a[e] or low + length > b[e] or low >= earliest or low + length <= latest:
                continue
            share = length / (b[e] - a[e])
            for j in range(len(outer.nodes)):
                after = length * outer.nodes[j]
                part = walk(Start(low, after, point, start), stamps.w, ends, stamps, order, terms, rule)
                value += part * outer.weights[j] * share
    return value


@compiled
def _from_none(before_all: float, ends: Array, stamps: Stamps, order: Order, rule: Rule) -> float:
    """The probability if the window does not matter. nan: too many states."""
    none = order.sets[0]  # a variable, since numba would compile each literal separately
    terms = terms_of(order, none, stamps.leads)
    if terms.place[-1] > STATES:
        return np.nan
    return walk(Start(before_all, 0.0, none > 0, none), np.inf, ends, stamps, order, terms, rule)


@compiled
def _rule(rules: Rule, q: int) -> Rule:
    return Rule(rules.nodes[q, :q], rules.weights[q, :q], rules.upto[q, :q, :q])


@compiled
def _chain(order: Order, t_min: Array, t_max: Array, x_min: Array, x_max: Array, window: Window, rules: Rule) -> float:
    """`probability` of one match."""
    n, k, origin = len(t_min), len(x_min), t_min.min()
    own = np.empty(2 * (n + k))
    uncertain = 0  # this minus one is the degree of the whole polynomial
    for i in range(n):
        own[i], own[n + i] = t_min[i] - origin, t_max[i] - origin
        uncertain += t_min[i] < t_max[i]
    a, b, low, high = own[:n], own[n : 2 * n], own[2 * n : 2 * n + k], own[2 * n + k :]
    leads, trails, many = np.empty(k, np.bool_), np.empty(k, np.bool_), 0
    for x in range(k):
        low[x], high[x] = x_min[x] - origin, x_max[x] - origin
        uncertain += x_min[x] < x_max[x]
        leads[x], trails[x] = order.gaps[x] & window.leading != 0, order.gaps[x] & window.trailing != 0
        many += leads[x]
    w, strict = min(window.length, own.max() - own.min() + 1.0), window.strict  # a longer window has no effect
    stamps = Stamps(a, b, low, high, leads, trails, w, strict)
    outer = max((uncertain + 1) // 2, 1)
    rule = _rule(rules, max(uncertain - 1, outer))
    reach, at = np.empty(2 * many), 0
    for x in range(k):
        if leads[x]:
            reach[at], reach[at + 1] = low[x] + w, high[x] + w
            at += 2
    first, last = a.min(), b.max()
    ends = np.unique(np.concatenate((own, reach)))
    ends = ends[(ends >= first) & (ends <= last)]
    if last - first > w or (strict and last - first == w) or leads.any() or trails.any():
        starts = np.unique(np.concatenate((own, own - w, reach)))
        value = _from_each_first(starts, _rule(rules, outer), ends, stamps, order, rule)
    else:
        value = _from_none(first - 1.0, ends, stamps, order, rule)
    return value if np.isnan(value) else min(max(value, 0.0), 1.0)


@compiled
def _chains(
    rows: Array, structure: OrderIdeals, t_min: Array, t_max: Array, obstacles: Obstacles, window: Window, rules: Rule,
    most: int,
) -> Array:  # fmt: skip
    """`probability` of some candidates; nan for those with more than `most` obstacles, or too many states."""
    values = np.full(len(rows), np.nan)
    for i in range(len(rows)):
        c = rows[i]
        begin, end = obstacles.offsets[c], obstacles.offsets[c + 1]
        if end - begin <= most:
            order = Order(
                structure.sets, structure.successors, structure.blocked, structure.before, obstacles.gaps[begin:end]
            )  # fmt: skip
            x_min, x_max = obstacles.t_min[begin:end], obstacles.t_max[begin:end]
            values[i] = _chain(order, t_min[c], t_max[c], x_min, x_max, window, rules)
    return values


def probabilities(
    structure: OrderIdeals,
    t_min: Ints,
    t_max: Ints,
    obstacles: Obstacles,
    rows: Ints,
    window: int,
    strict: bool,
    most: int,
) -> Floats:
    """The probability of order, window and empty gaps for some rows of candidates (m, n), int64 ticks; within ERROR.

    It is nan for a candidate with more than `most` obstacles or one that needs more than STATES states.

    Raises:
        ValueError: positives and `most` together are more than NODES_MAX.
    """
    if t_min.shape[1] + most > NODES_MAX:
        raise ValueError(f"found {t_min.shape[1]} + {most} uncertain events, expected at most {NODES_MAX} in one match")
    reach = Window(float(window), strict, *gap_masks(structure))
    answer: Floats = _chains(
        rows,
        structure,
        np.ascontiguousarray(t_min),
        np.ascontiguousarray(t_max),
        obstacles,
        reach,
        Rule(*rules()),
        most,
    )
    return answer


def probability(
    structure: OrderIdeals, t_min: Ints, t_max: Ints, x_min: Ints, x_max: Ints, gaps: Ints, window: int, strict: bool
) -> float:
    """The probability of order, window and empty gaps for positives (n,) and obstacles (k,), int64 ticks; within ERROR.

    `gaps` are the negations, as bits, that forbid each obstacle. The result is nan if more than STATES states are needed.

    Raises:
        ValueError: positives and obstacles together are more than NODES_MAX.
    """
    obstacles = Obstacles(np.array([0, len(x_min)]), *(np.ascontiguousarray(x) for x in (x_min, x_max, gaps)))
    one = np.zeros(1, np.int64)
    return float(probabilities(structure, t_min[None], t_max[None], obstacles, one, window, strict, len(x_min))[0])
