"""The walk over order ideals from one moment on: the recurrence of `chain_probability` as machine code."""

from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.jit import Array, compiled


class Stamps(NamedTuple):
    """Stamps of the positives (n,) and the obstacles (k,), whole numbers as floats; the window, and the gaps that use it."""

    a: Array
    b: Array
    x_min: Array
    x_max: Array
    leads: Array  # (k,) True if a gap of the obstacle reaches back by the window
    trails: Array  # (k,) likewise, forward
    w: float
    strict: bool


class Order(NamedTuple):
    """Columns of `OrderIdeals`, and the gaps (k,) of the obstacles."""

    sets: Array
    successors: Array
    blocked: Array
    before: Array
    gaps: Array


class Terms(NamedTuple):
    """State of each obstacle's sum, by order ideal and obstacle (D, k), in a walk from a given order ideal."""

    free: Array  # 1 where no gap forbids the obstacle, else 0
    future: Array  # True if terms of its sum are still to come
    touched: Array  # True if terms may have been taken
    bit: Array  # place of the bit "no term taken yet", -1 if none is needed
    place: Array  # (D + 1,) the first state of each order ideal


class Rule(NamedTuple):
    """Nodes, weights, and integrals up to each node, on [0, 1]."""

    nodes: Array
    weights: Array
    upto: Array


class Start(NamedTuple):
    """Start of a walk: the order ideal (empty, or the first positive) happened at base + offset; `atom`: it is a point."""

    base: float
    offset: float
    atom: bool
    ideal: int


class Items(NamedTuple):
    """A stretch of time cut into atoms and open cells, in order; item c begins at bases[c] + offsets[c]."""

    bases: Array
    offsets: Array
    lengths: Array
    kept: Array  # number of values of the item: 1 for an atom, else of nodes
    density: Array  # (n, items) share of a positive's probability in the item


class Walk(NamedTuple):
    """Arrays that a step of the walk reads, and the values by state (order ideal and bits) that it adds to."""

    items: Items
    order: Order
    terms: Terms
    known: Array  # (k,) terms of each obstacle's sum that depend only on the start
    final: Array  # (k,) terms that the window adds
    leads: Array
    share: Array
    lead: Array
    values: Array  # (states, items, q)
    some: Array  # (states,) True if the state has values


@compiled
def _share(low: float, high: float, base: float, offset: float, closed: bool) -> float:
    """P(x <= base + offset), or < where not closed, for x uniform in [low, high]; base is an integer."""
    distance = (base - low) + offset
    if high > low:
        return min(max(distance / (high - low), 0.0), 1.0)
    return 1.0 if distance > 0.0 or (closed and distance == 0.0) else 0.0


@compiled
def terms_of(order: Order, start: int, leads: Array) -> Terms:
    """Terms of each obstacle's sum at each order ideal that the walk can reach."""
    count, k = len(order.sets), len(order.gaps)
    free = np.empty((count, k), np.int64)
    future, touched = np.zeros((count, k), np.bool_), np.zeros((count, k), np.bool_)
    bit, place = np.full((count, k), -1, np.int64), np.zeros(count + 1, np.int64)
    reached = np.zeros(count, np.bool_)
    reached[start] = True
    for s in range(count):
        for x in range(k):
            free[s, x] = 1 if order.blocked[s] & order.gaps[x] == 0 else 0
    for s in range(count - 2, -1, -1):
        for to in order.successors[s]:
            if to >= 0:
                for x in range(k):
                    if future[to, x] or free[to, x] != free[s, x] or (to == count - 1 and leads[x]):
                        future[s, x] = True
    for s in range(start, count):
        for to in order.successors[s]:
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
        place[s + 1] = place[s] + (1 << used)
    return Terms(free, future, touched, bit, place)


@compiled
def _cells(ends: Array, start: Start, limit: float, stamps: Stamps, q: int) -> Items:
    """Items of the stretch from the start on, at most `limit` long; the first item is the moment of the start."""
    base, offset, atom = start.base, start.offset, start.atom
    a, b, strict = stamps.a, stamps.b, stamps.strict
    size = 2 * len(ends) + 3
    bases, offsets, lengths = np.empty(size), np.zeros(size), np.zeros(size)
    is_atom = np.zeros(size, np.bool_)
    bases[0], offsets[0], is_atom[0] = base, offset, True
    count, begin, begin_offset = 1, base, offset
    for i in range(len(ends)):
        ahead = (ends[i] - base) - offset
        if ahead <= 0.0:
            continue
        past = ahead > limit
        to, to_offset = (base + limit, offset) if past else (ends[i], 0.0)
        length = (to - begin) + (to_offset - begin_offset)
        if length > 0.0:
            bases[count], offsets[count], lengths[count] = begin, begin_offset, length
            count += 1
        if past or (strict and ahead == limit):
            break
        point = False
        for e in range(len(a)):
            point = point or (a[e] == ends[i] and b[e] == ends[i])
        if point:
            bases[count], is_atom[count] = ends[i], True
            count += 1
        begin, begin_offset = ends[i], 0.0
    density, kept = np.zeros((len(a), count)), np.empty(count, np.int64)
    for c in range(count):
        kept[c] = 1 if is_atom[c] else q
    for e in range(len(a)):
        for c in range(count):
            if a[e] == b[e]:
                density[e, c] = 1.0 if is_atom[c] and bases[c] == a[e] and (c > 0 or atom) else 0.0
            elif not is_atom[c]:
                middle = offsets[c] + 0.5 * lengths[c]
                if (bases[c] - a[e]) + middle > 0.0 and (bases[c] - b[e]) + middle < 0.0:
                    density[e, c] = lengths[c] / (b[e] - a[e])
    return Items(bases[:count], offsets[:count], lengths[:count], kept, density)


@compiled
def _shares(items: Items, stamps: Stamps, rule: Rule) -> tuple[Array, Array]:
    """For each node of each item (k, items, q): P(x is before it), and P(x is before it by more than the window)."""
    k, count, q = len(stamps.x_min), len(items.bases), len(rule.nodes)
    share, lead = np.zeros((k, count, q)), np.zeros((k, count, q))
    for x in range(k):
        low, high = stamps.x_min[x], stamps.x_max[x]
        for c in range(count):
            for j in range(items.kept[c]):
                offset = items.offsets[c] + items.lengths[c] * rule.nodes[j]
                share[x, c, j] = _share(low, high, items.bases[c], offset, True)
                if stamps.leads[x]:
                    lead[x, c, j] = _share(low, high, items.bases[c] - stamps.w, offset, stamps.strict)
    return share, lead


@compiled
def _integrate(g: Array, items: Items, rule: Rule, sums: Array) -> float:
    """Integral of g (items, q) over all items; fills `sums` with the integrals up to each node."""
    total, q = 0.0, len(rule.nodes)
    for c in range(len(items.kept)):
        if items.lengths[c] == 0.0:
            sums[c, 0] = total
            total += g[c, 0]
            continue
        for j in range(q):
            part = 0.0
            for r in range(q):
                part += rule.upto[j, r] * g[c, r]
            sums[c, j] = total + part
        for r in range(q):
            total += rule.weights[r] * g[c, r]
    return total


@compiled
def _may_tie(order: Order, stamps: Stamps, s: int, e: int) -> Any:
    """True if e may be at the same point as members of s: unordered points may, and are taken in list order."""
    a, b = stamps.a, stamps.b
    for f in range(len(a)):
        if order.sets[s] >> f & 1 and a[f] == b[f] and a[f] == a[e] and (f > e or order.before[e] >> f & 1):
            return False
    return a[e] == b[e]


@compiled
def _step(walk: Walk, s: int, e: int, mask: int, factor: Array) -> None:
    """Lets positive e follow the state (s, `mask`): adds `factor` times the obstacles' terms to the next states."""
    items, order, terms, known, final = walk.items, walk.order, walk.terms, walk.known, walk.final
    leads, share, lead, values, some = walk.leads, walk.share, walk.lead, walk.values, walk.some
    to, full, k = order.successors[s, e], len(order.sets) - 1, len(known)
    split, splits, keep = np.empty(k, np.int64), 0, 0
    for x in range(k):
        if not terms.future[s, x] or (terms.bit[s, x] >= 0 and not mask >> terms.bit[s, x] & 1):
            continue  # its factor is already multiplied in
        change = float(terms.free[s, x] - terms.free[to, x])
        pending = known[x] if not terms.touched[s, x] and (terms.touched[to, x] or not terms.future[to, x]) else 0.0
        if not terms.future[to, x]:
            ending = leads[x] and to == full
            for c in range(len(items.kept)):
                for j in range(items.kept[c]):
                    term = pending + final[x] + change * share[x, c, j]
                    factor[c, j] *= term + lead[x, c, j] if ending else term
        elif change != 0.0 or pending != 0.0:
            split[splits] = x
            splits += 1
        elif terms.bit[to, x] >= 0:
            keep |= 1 << terms.bit[to, x]
    for taken in range(1 << splits):
        target = keep
        for i in range(splits):
            if not taken >> i & 1:
                target |= 1 << terms.bit[to, split[i]]
        target += terms.place[to]
        for c in range(len(items.kept)):
            if items.density[e, c] == 0.0:
                continue
            for j in range(items.kept[c]):
                product = factor[c, j]
                for i in range(splits):
                    if taken >> i & 1:
                        x = split[i]
                        pending = known[x] if not terms.touched[s, x] else 0.0
                        product *= pending + (terms.free[s, x] - terms.free[to, x]) * share[x, c, j]
                if product != 0.0:
                    values[target, c, j] += product
                    some[target] = True


@compiled
def _from_start(start: Start, stamps: Stamps, order: Order, terms: Terms) -> tuple[float, Array, Array]:
    """Factor of the obstacles whose sums are known at the start; `known` and `final` of a walk."""
    k, w, full = len(stamps.x_min), stamps.w, len(order.sets) - 1
    known, final = np.zeros(k), np.ones(k)
    value = 1.0
    for x in range(k):
        low, high = stamps.x_min[x], stamps.x_max[x]
        if stamps.trails[x]:
            final[x] = 1.0 - _share(low, high, start.base + w, start.offset, not stamps.strict)
        if start.ideal > 0:
            change = terms.free[0, x] - terms.free[start.ideal, x]
            known[x] = change * _share(low, high, start.base, start.offset, True)
        if not terms.future[start.ideal, x]:
            leads = stamps.leads[x] and start.ideal == full
            value *= (
                known[x] + final[x]
                + (_share(low, high, start.base - w, start.offset, stamps.strict) if leads else 0.0)
            )  # fmt: skip
    return value, known, final


@compiled
def walk(start: Start, limit: float, ends: Array, stamps: Stamps, order: Order, terms: Terms, rule: Rule) -> float:
    """The probability given the start, for matches at most `limit` long."""
    count, n = order.successors.shape
    q, full = len(rule.nodes), count - 1
    value, known, final = _from_start(start, stamps, order, terms)
    if start.ideal == full or value == 0.0:
        return value
    items = _cells(ends, start, limit, stamps, q)
    share, lead = _shares(items, stamps, rule)
    values, some = np.zeros((terms.place[count], len(items.kept), q)), np.zeros(terms.place[count], np.bool_)
    values[terms.place[start.ideal], 0, 0] = value
    some[terms.place[start.ideal]] = True
    arrays = Walk(items, order, terms, known, final, stamps.leads, share, lead, values, some)
    sums, factor = np.zeros((len(items.kept), q)), np.empty((len(items.kept), q))
    for s in range(start.ideal, full):
        for mask in range(terms.place[s + 1] - terms.place[s]):
            state = terms.place[s] + mask
            if not some[state]:
                continue
            _integrate(values[state], items, rule, sums)
            for e in range(n):
                if order.successors[s, e] < 0:
                    continue
                tie = _may_tie(order, stamps, s, e)
                for c in range(len(items.kept)):
                    for j in range(items.kept[c]):
                        factor[c, j] = items.density[e, c] * sums[c, j]
                    if tie and items.density[e, c] > 0.0:
                        factor[c, 0] += values[state, c, 0]
                _step(arrays, s, e, mask, factor)
    return _integrate(values[terms.place[full]], items, rule, sums)
