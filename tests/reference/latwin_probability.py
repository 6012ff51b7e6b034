"""The probability that global states were passed, by enumerating every way in which begins can fall. Exact, slow.

Time is cut into pieces at all ends of intervals. Each begin falls independently into a piece of its interval (a point, or an
open stretch with a probability in proportion to its length). Begins in one stretch come in each order with the same
probability; begins at one point happen at once. Every way is a sequence of global states; ways that violate the order are
left out, and the shares of the rest are scaled to a sum of one.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import factorial


def ways(lo, hi, before):
    """Each way that keeps the order: its probability, not scaled, and its sequence of sets of begins that happen at once.

    lo and hi map begins to bounds, `before` is a set of pairs (earlier, later).
    """
    ends = sorted(set(lo.values()) | set(hi.values()))
    pieces = sorted([(x, x) for x in ends] + list(pairwise(ends)))

    def falls(e):
        if lo[e] == hi[e]:
            return [((lo[e], lo[e]), Fraction(1))]
        return [(p, Fraction(p[1] - p[0], hi[e] - lo[e])) for p in pieces if lo[e] <= p[0] < p[1] <= hi[e]]

    events = list(lo)
    for choice in product(*(falls(e) for e in events)):
        share, into = Fraction(1), defaultdict(list)
        for e, (piece, part) in zip(events, choice, strict=True):
            share *= part
            into[piece].append(e)
        orders = []
        for piece in sorted(into):
            if piece[0] == piece[1]:
                orders.append([[set(into[piece])]])
            else:
                orders.append([[{e} for e in order] for order in permutations(into[piece])])
                share /= factorial(len(into[piece]))
        for parts in product(*orders):
            sequence = [group for part in parts for group in part]
            at = {e: place for place, group in enumerate(sequence) for e in group}
            if all(at[a] <= at[b] for a, b in before):
                yield share, sequence


def passed(first, counts, lo, hi, before):
    """Share of each way, with the global states passed; None if no way keeps the order. Begins are (process, number)."""
    courses, total = [], Fraction(0)
    for share, sequence in ways(lo, hi, before):
        now, states = [a - 1 for a in first], []
        for group in sequence:
            for process, number in group:
                now[process] = max(now[process], number)
            if all(a <= k < a + c for a, k, c in zip(first, now, counts, strict=True)):
                states.append(tuple(now))
        courses.append((share, states))
        total += share
    return [(share / total, states) for share, states in courses] if total else None
