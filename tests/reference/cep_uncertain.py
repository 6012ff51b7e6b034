"""Possibility and probability of a match with uncertain stamps, by trying placements one by one. Slow and obvious; stamps
are small integers.

All comparisons are of differences of two times with an integer, so only the whole part of a time and the rank of its
fraction among the others' fractions matter. Whole parts and ranks are finitely many and, for uniform stamps, equally likely:
that gives exact rationals for the probability, and a grid that contains a placement for every possible outcome.
"""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from whenabouts_cloud.pattern.plan import Alternative

Stamp = tuple[int, int]


class Obstacle(NamedTuple):
    """A negated event; `negations` are the indices, in the alternative, of the negations that forbid it."""

    stamp: Stamp
    negations: tuple[int, ...]


class Case(NamedTuple):
    alternative: Alternative
    stamps: tuple[Stamp, ...]
    obstacles: tuple[Obstacle, ...]
    window: int
    strict: bool


def in_gap(case: Case, negation: int, t: Sequence[Fraction], x: Fraction, window: Fraction) -> bool:
    """True if x lies in the gap, all times known."""
    gap = case.alternative.negations[negation]
    left = [v for i, v in enumerate(t) if gap.left >> i & 1]
    right = [v for i, v in enumerate(t) if gap.right >> i & 1]
    early, late = max(t) - window, min(t) + window
    after = x > max(left) if left else x > early or (x == early and not case.strict)
    until = x < min(right) if right else x < late or (x == late and not case.strict)
    return after and until


def in_order(case: Case, t: Sequence[Fraction], window: Fraction) -> bool:
    """True if order and window hold, all times known."""
    span = max(t) - min(t)
    return (span < window or (span == window and not case.strict)) and all(
        t[j] < t[i] for i, mask in enumerate(case.alternative.before) for j in range(len(t)) if mask >> j & 1
    )


def is_harmless(case: Case, obstacle: Obstacle, t: Sequence[Fraction], x: Fraction, window: Fraction) -> bool:
    return not any(in_gap(case, k, t, x, window) for k in obstacle.negations)


def possible(case: Case) -> bool:
    """True if some placement is a match. With n positives n + 1 ranks suffice; obstacles may also lie half-way between."""
    fine = 2 * (len(case.stamps) + 1)  # all in ticks of 1/fine
    window = Fraction(case.window * fine)
    for t in itertools.product(*(range(low * fine, high * fine + 1, 2) for low, high in case.stamps)):
        if in_order(case, t, window) and all(
            any(is_harmless(case, o, t, x, window) for x in range(o.stamp[0] * fine, o.stamp[1] * fine + 1))
            for o in case.obstacles
        ):
            return True
    return False


def probability(case: Case) -> Fraction:
    """The exact probability that a placement is a match."""
    good = total = 0
    for t, x, window in _placements(case):
        total += 1
        good += in_order(case, t, window) and all(
            is_harmless(case, o, t, v, window) for o, v in zip(case.obstacles, x, strict=True)
        )
    return Fraction(good, total)


def _placements(case: Case) -> Iterator[tuple[Sequence[int], Sequence[int], int]]:
    """All equally likely combinations of whole parts and ranks, with the window, in ticks of 1/(uncertain events + 1)."""
    stamps = [*case.stamps, *(o.stamp for o in case.obstacles)]
    moving = [i for i, (low, high) in enumerate(stamps) if low < high]
    fine = len(moving) + 1
    n = len(case.stamps)
    for whole in itertools.product(*(range(low, high) if low < high else (low,) for low, high in stamps)):
        for ranks in itertools.permutations(range(1, fine)):
            times = [v * fine for v in whole]
            for i, rank in zip(moving, ranks, strict=True):
                times[i] += rank
            yield times[:n], times[n:], case.window * fine
