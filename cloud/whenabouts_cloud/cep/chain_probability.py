"""The exact probability that events with uncertain stamps are a match: in order, within the window, nothing in the gaps.

All stamps are independent and uniform in their intervals; points are atoms. Let the positives happen one after the other:
g_S(u) du is the probability that the downset S has happened, its last one at u. Then for each positive e that may be next

    g_(S + e)(v)  +=  density of e at v  *  integral of g_S(u) over u < v

A negated x with cumulative distribution F is outside its gaps with probability 1 - sum of F(right) - F(left) over the
stretches of time in which some gap forbids it: a sum of terms each of which depends on one positive's time. Each term is
multiplied in when that positive happens; a state is a downset and, for each x in the middle of its sum, whether a term was
taken (bits). Where the rest of the sum is known the factor is taken whole, so the common cases add nothing negative.

All these functions are polynomials between neighbouring ends of stamps (Gauss-Legendre nodes in each such cell, exact for
the degree: `quadrature`). The window, and gaps that reach back or forward by it, tie the first positive to the last: then an
outer exact rule goes over the first one's time, within cells between the ends, the ends less w, the ends of x plus w.

Error: rounding only, measured below 1e-15 against exact rationals; ERROR is what is promised. Cost, one core, machine code:
about (cells q)(n cells q^2) 2^open additions, the first factor only where the window matters: 0.07 ms for a chain of 4 with
2 negated events, 7 ms for 8 with 6, 17 ms for AND of 8, in the middle, stamps overlapping widely. Times are kept as an
integer base and a small offset, so a stamp of 1 us beside one of a day is as exact.
"""

from typing import Any

import numpy as np

from whenabouts_cloud.cep.compiled import compiled
from whenabouts_cloud.cep.downsets import Downsets
from whenabouts_cloud.cep.obstacles import gap_masks
from whenabouts_cloud.cep.quadrature import NODES_MAX, rules

ERROR = 1e-11  # what is promised of a probability; ties with the threshold are told within it
STATES = 1 << 10  # downsets with bits; for more the answer is nan, and the caller leaves out obstacles

Array = Any  # inside compiled code


@compiled
def _share(low: float, high: float, base: float, offset: float, closed: bool) -> float:
    """P(x <= base + offset), or < where not closed, for x uniform in [low, high]; base is an integer."""
    distance = (base - low) + offset
    if high > low:
        return min(max(distance / (high - low), 0.0), 1.0)
    return 1.0 if distance > 0.0 or (closed and distance == 0.0) else 0.0


@compiled
def _structure(
    successors: Array, blocked: Array, start: int, leading: int, gaps: Array
) -> tuple[Array, Array, Array, Array]:
    """By downset and obstacle: whether nothing blocks it, whether terms are to come, or may have been; and its bit."""
    count, n = successors.shape
    k = len(gaps)
    free = np.empty((count, k), np.int64)
    future = np.zeros((count, k), np.bool_)
    touched = np.zeros((count, k), np.bool_)
    bit = np.full((count, k), -1, np.int64)
    reached = np.zeros(count, np.bool_)
    reached[start] = True
    for s in range(count):
        for x in range(k):
            free[s, x] = 1 if blocked[s] & gaps[x] == 0 else 0
    for s in range(count - 2, -1, -1):
        for e in range(n):
            to = successors[s, e]
            if to >= 0:
                for x in range(k):
                    if future[to, x] or free[to, x] != free[s, x] or (to == count - 1 and gaps[x] & leading):
                        future[s, x] = True
    for s in range(start, count):
        for e in range(n):
            to = successors[s, e]
            if to >= 0 and reached[s]:
                reached[to] = True
                for x in range(k):
                    if touched[s, x] or free[to, x] != free[s, x]:
                        touched[to, x] = True
    for s in range(count):
        used = 0
        for x in range(k):
            if reached[s] and future[s, x] and touched[s, x]:
                bit[s, x] = used
                used += 1
    return free, future, touched, bit


@compiled
def _cells(
    ends: Array, atoms: Array, base: float, offset: float, atom: bool, limit: float, strict: bool
) -> tuple[Array, Array, Array, Array]:
    """The stretch from base + offset on, at most `limit` long, as items: atoms (length 0) and open cells, in order."""
    size = 2 * len(ends) + 3
    bases, offsets, lengths = np.empty(size), np.zeros(size), np.zeros(size)
    is_atom = np.zeros(size, np.bool_)
    bases[0], offsets[0], is_atom[0] = base, offset, True
    count, at, at_offset = 1, base, offset
    for i in range(len(ends)):
        ahead = (ends[i] - base) - offset
        if ahead <= 0.0:
            continue
        past = ahead > limit
        to, to_offset = (base + limit, offset) if past else (ends[i], 0.0)
        length = (to - at) + (to_offset - at_offset)
        if length > 0.0:
            bases[count], offsets[count], lengths[count] = at, at_offset, length
            count += 1
        if past or (strict and ahead == limit):
            break
        if atoms[i]:
            bases[count], is_atom[count] = ends[i], True
            count += 1
        at, at_offset = ends[i], 0.0
    return bases[:count], offsets[:count], lengths[:count], is_atom[:count]


@compiled
def _from(
    base: float,
    offset: float,
    atom: bool,
    start: int,
    a: Array,
    b: Array,
    x_min: Array,
    x_max: Array,
    w: float,
    strict: bool,
    coupled: bool,
    ends: Array,
    atoms: Array,
    sets: Array,
    successors: Array,
    before: Array,
    leads: Array,
    trails: Array,
    free: Array,
    future: Array,
    touched: Array,
    bit: Array,
    nodes: Array,
    weights: Array,
    upto: Array,
) -> float:
    """The probability, given that the downset `start` (none or the first positive) happened at base + offset."""
    count, n = successors.shape
    k, q, full = len(x_min), len(nodes), count - 1
    known, final = np.zeros(k), np.ones(k)
    value = 1.0
    for x in range(k):
        if trails[x]:
            final[x] = 1.0 - _share(x_min[x], x_max[x], base + w, offset, not strict)
        if start > 0:
            known[x] = (free[0, x] - free[start, x]) * _share(x_min[x], x_max[x], base, offset, True)
        if not future[start, x]:
            early = _share(x_min[x], x_max[x], base - w, offset, strict) if leads[x] and start == full else 0.0
            value *= known[x] + final[x] + early
    if start == full or value == 0.0:
        return value
    bases, offsets, lengths, is_atom = _cells(ends, atoms, base, offset, atom, w if coupled else np.inf, strict)
    items = len(bases)
    density = np.zeros((n, items))
    for e in range(n):
        for c in range(items):
            if a[e] == b[e]:
                density[e, c] = 1.0 if is_atom[c] and bases[c] == a[e] and (c > 0 or atom) else 0.0
            elif not is_atom[c]:
                middle = offsets[c] + 0.5 * lengths[c]
                if (bases[c] - a[e]) + middle > 0.0 and (bases[c] - b[e]) + middle < 0.0:
                    density[e, c] = lengths[c] / (b[e] - a[e])
    share, lead = np.zeros((k, items, q)), np.zeros((k, items, q))
    for x in range(k):
        for c in range(items):
            for j in range(1 if is_atom[c] else q):
                at = offsets[c] + lengths[c] * nodes[j] if lengths[c] > 0.0 else offsets[c]
                share[x, c, j] = _share(x_min[x], x_max[x], bases[c], at, True)
                if leads[x]:
                    lead[x, c, j] = _share(x_min[x], x_max[x], bases[c] - w, at, strict)
    place = np.zeros(count + 1, np.int64)
    for s in range(count):
        used = 0
        for x in range(k):
            used = max(used, bit[s, x] + 1)
        place[s + 1] = place[s] + (1 << used)
    g = np.zeros((place[count], items, q))
    some = np.zeros(place[count], np.bool_)
    g[place[start], 0, 0] = value
    some[place[start]] = True
    sums, factor, split = np.empty((items, q)), np.empty((items, q)), np.empty(k, np.int64)
    for s in range(start, full):
        for mask in range(place[s + 1] - place[s]):
            state = place[s] + mask
            if not some[state]:
                continue
            total = 0.0
            for c in range(items):
                if is_atom[c]:
                    sums[c, 0] = total
                    total += g[state, c, 0]
                else:
                    for j in range(q):
                        part = 0.0
                        for r in range(q):
                            part += upto[j, r] * g[state, c, r]
                        sums[c, j] = total + part
                    for r in range(q):
                        total += weights[r] * g[state, c, r]
            for e in range(n):
                to = successors[s, e]
                if to < 0:
                    continue
                tie = a[e] == b[e]  # equal points: unordered ones may tie, and are taken in the order of the list
                for f in range(n):
                    if sets[s] >> f & 1 and a[f] == b[f] and a[f] == a[e] and (f > e or before[e] >> f & 1):
                        tie = False
                for c in range(items):
                    for j in range(1 if is_atom[c] else q):
                        factor[c, j] = density[e, c] * sums[c, j]
                    if tie and density[e, c] > 0.0:
                        factor[c, 0] += g[state, c, 0]
                keep, splits = 0, 0
                for x in range(k):
                    if not future[s, x] or (bit[s, x] >= 0 and not mask >> bit[s, x] & 1):
                        continue  # its factor is in
                    change = float(free[s, x] - free[to, x])
                    pending = known[x] if not touched[s, x] and (touched[to, x] or not future[to, x]) else 0.0
                    if not future[to, x]:
                        ending = leads[x] and to == full
                        for c in range(items):
                            for j in range(1 if is_atom[c] else q):
                                term = pending + final[x] + change * share[x, c, j]
                                factor[c, j] *= term + lead[x, c, j] if ending else term
                    elif change != 0.0 or pending != 0.0:
                        split[splits] = x
                        splits += 1
                    elif bit[to, x] >= 0:
                        keep |= 1 << bit[to, x]
                for taken in range(1 << splits):
                    target = keep
                    for i in range(splits):
                        if not taken >> i & 1:
                            target |= 1 << bit[to, split[i]]
                    target += place[to]
                    for c in range(items):
                        if density[e, c] == 0.0:
                            continue
                        for j in range(1 if is_atom[c] else q):
                            product = factor[c, j]
                            for i in range(splits):
                                if taken >> i & 1:
                                    x = split[i]
                                    pending = known[x] if not touched[s, x] else 0.0
                                    product *= pending + (free[s, x] - free[to, x]) * share[x, c, j]
                            if product != 0.0:
                                g[target, c, j] += product
                                some[target] = True
    value = 0.0
    for c in range(items):
        if is_atom[c]:
            value += g[place[full], c, 0]
        else:
            for r in range(q):
                value += weights[r] * g[place[full], c, r]
    return value


@compiled
def _sorted(values: Array) -> Array:
    """The different values in order."""
    values = np.sort(values)
    keep = 1
    for i in range(1, len(values)):
        if values[i] != values[keep - 1]:
            values[keep] = values[i]
            keep += 1
    return values[:keep]


@compiled
def _probability(
    a: Array,
    b: Array,
    x_min: Array,
    x_max: Array,
    gaps: Array,
    w: float,
    strict: bool,
    leading: int,
    trailing: int,
    sets: Array,
    successors: Array,
    blocked: Array,
    before: Array,
    states: int,
    nodes: Array,
    weights: Array,
    upto: Array,
) -> float:
    n, k = len(a), len(x_min)
    leads, trails = np.empty(k, np.bool_), np.empty(k, np.bool_)
    degree = 0
    for x in range(k):
        leads[x], trails[x] = gaps[x] & leading != 0, gaps[x] & trailing != 0
        degree += x_min[x] < x_max[x]
    for e in range(n):
        degree += a[e] < b[e]
    q, outer = max(degree - 1, 1), max((degree + 1) // 2, 1)
    q = max(q, outer)
    coupled = np.max(b) - np.min(a) > w or (strict and np.max(b) - np.min(a) >= w) or np.any(leads) or np.any(trails)
    own = np.concatenate((a, b, x_min, x_max))
    reach = np.concatenate((x_min[leads] + w, x_max[leads] + w))
    ends = _sorted(np.concatenate((own, reach)))
    ends = ends[(ends >= np.min(a)) & (ends <= np.max(b))]
    atoms = np.zeros(len(ends), np.bool_)
    for i in range(len(ends)):
        for e in range(n):
            atoms[i] = atoms[i] or (a[e] == b[e] and a[e] == ends[i])
    value = 0.0
    if not coupled:
        free, future, touched, bit = _structure(successors, blocked, 0, leading, gaps)
        if _states(bit) > states:
            return np.nan
        return _from(
            np.min(a) - 1.0, 0.0, False, 0, a, b, x_min, x_max, w, strict, False, ends, atoms, sets, successors, before,
            leads, trails, free, future, touched, bit, nodes[q, :q], weights[q, :q], upto[q, :q, :q],
        )  # fmt: skip
    starts = _sorted(np.concatenate((own, own - w, reach)))
    latest, earliest = np.max(a) - w, np.min(b)  # the first positive is no earlier, no later than these
    for e in range(n):
        start = successors[0, e]
        if start < 0:
            continue
        free, future, touched, bit = _structure(successors, blocked, start, leading, gaps)
        if _states(bit) > states:
            return np.nan
        if a[e] == b[e]:
            value += _from(
                a[e], 0.0, True, start, a, b, x_min, x_max, w, strict, True, ends, atoms, sets, successors, before,
                leads, trails, free, future, touched, bit, nodes[q, :q], weights[q, :q], upto[q, :q, :q],
            )  # fmt: skip
            continue
        for i in range(len(starts) - 1):
            low, high = starts[i], starts[i + 1]
            if low < a[e] or high > b[e] or low >= earliest or high <= latest:
                continue
            for j in range(outer):
                part = _from(
                    low, (high - low) * nodes[outer, j], False, start, a, b, x_min, x_max, w, strict, True, ends, atoms,
                    sets, successors, before, leads, trails, free, future, touched, bit,
                    nodes[q, :q], weights[q, :q], upto[q, :q, :q],
                )  # fmt: skip
                value += part * weights[outer, j] * (high - low) / (b[e] - a[e])
    return value


@compiled
def _states(bit: Array) -> int:
    """How many states the bits of all downsets make."""
    total = 0
    for s in range(len(bit)):
        used = 0
        for x in range(bit.shape[1]):
            used = max(used, bit[s, x] + 1)
        total += 1 << used
    return total


def probability(
    structure: Downsets, t_min: Array, t_max: Array, x_min: Array, x_max: Array, gaps: Array, window: int, strict: bool
) -> float:
    """The probability of order, window and empty gaps for positives (n,) and obstacles (k,), int64 ticks; within ERROR.

    `gaps` are the negations, as bits, that forbid each obstacle. nan if more than STATES states would be needed.

    Raises:
        ValueError: positives and obstacles together are more than NODES_MAX.
    """
    if len(t_min) + len(x_min) > NODES_MAX:
        raise ValueError(
            f"found {len(t_min)} + {len(x_min)} uncertain events, expected at most {NODES_MAX} in one match"
        )
    origin = int(t_min.min())
    a, b, low, high = ((v - origin).astype(np.float64) for v in (t_min, t_max, x_min, x_max))
    everything = np.concatenate([a, b, low, high])
    w = min(float(window), everything.max() - everything.min() + 1)  # longer ones are no windows
    s = structure
    value: float = _probability(
        a, b, low, high, gaps, w, strict, *gap_masks(s), s.sets, s.successors, s.blocked, s.before, STATES, *rules()
    )
    return value if np.isnan(value) else min(max(value, 0.0), 1.0)
