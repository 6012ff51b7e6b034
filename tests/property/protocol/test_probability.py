"""Probabilities of timing predicates against the definition: the share of a rectangle that a strip covers, as fractions.

X uniform in [a_min, a_max] and Y uniform in [b_min, b_max] make a point in a rectangle; lo <= Y - X <= hi is a strip across
it. The reference clips the rectangle with the two lines of the strip and takes the area of what is left. A rectangle
without width is a segment, one without either a point.
"""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from property import strategies as some
from support.search import examples
from whenabouts_protocol import probability as p


def clipped(polygon, keep):
    """The part of a polygon where the linear function `keep` is >= 0 (Sutherland and Hodgman)."""
    out = []
    for (x0, y0), (x1, y1) in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        k0, k1 = keep(x0, y0), keep(x1, y1)
        if k0 >= 0:
            out.append((x0, y0))
        if (k0 < 0) != (k1 < 0) and k0 != k1 and k0 != 0 and k1 != 0:
            t = Fraction(k0, k0 - k1)
            out.append((x0 + t * (x1 - x0), y0 + t * (y1 - y0)))
    return out


def area(polygon):
    """The area of a polygon by the shoelace formula."""
    pairs = zip(polygon, polygon[1:] + polygon[:1], strict=True)
    return abs(sum(Fraction(x0 * y1 - x1 * y0) for (x0, y0), (x1, y1) in pairs)) / 2


def reference(a_min, a_max, b_min, b_max, lo, hi):
    """P(lo <= Y - X <= hi) as a Fraction; a limit of None is no limit."""

    def above(x, y):
        return 1 if lo is None else y - x - lo

    def below(x, y):
        return 1 if hi is None else hi - (y - x)

    if a_min == a_max and b_min == b_max:
        return Fraction(above(a_min, b_min) >= 0 and below(a_min, b_min) >= 0)
    if a_min == a_max or b_min == b_max:  # Y - X runs evenly over one segment
        first, last = b_min - a_max, b_max - a_min
        start = first if lo is None else max(first, lo)
        end = last if hi is None else min(last, hi)
        return max(Fraction(end - start, last - first), Fraction(0))
    rectangle = [(a_min, b_min), (a_max, b_min), (a_max, b_max), (a_min, b_max)]
    inside = clipped(rectangle, above)
    inside = clipped(inside, below) if inside else []
    return area(inside) / ((a_max - a_min) * (b_max - b_min))


def ratio(pair):
    """(numerator, denominator) as a Fraction; the denominator is positive."""
    assert pair[1] > 0
    return Fraction(*pair)


@st.composite
def pairs(draw):
    """Two intervals that are near each other: small, epoch-size, or of very different length; and a distance d."""
    base = draw(st.sampled_from([0, some.EPOCH_US, -some.EPOCH_US]))
    longest = draw(st.sampled_from([3, 12, 300_000]))
    a = draw(some.intervals(base=base, length_max=longest))
    b = draw(some.intervals(base=base, length_max=draw(st.sampled_from([3, longest]))))
    return (*a, *b), draw(st.integers(-2 * longest, 3 * longest))


@settings(max_examples=examples(1000), deadline=None)
@given(pairs())
def test_deadline_and_delay_equal_the_area(pair):
    """Exact, for zero lengths, ties, negative d and epoch-size stamps."""
    ends, d = pair
    assert ratio(p.ratio_deadline(*ends, d)) == reference(*ends, None, d)
    assert ratio(p.ratio_delay(*ends, d)) == reference(*ends, d, None)


@settings(max_examples=examples(1000), deadline=None)
@given(pairs(), st.integers(0, 30))
def test_within_and_between_equal_the_area(pair, width):
    """Exact, for d smaller than the lengths too; an empty condition has probability 0."""
    ends, d = pair
    expected = reference(*ends, -d, d) if d >= 0 else 0
    assert ratio(p.ratio_within(*ends, d)) == expected
    assert ratio(p.ratio_between(*ends, d, d + width)) == reference(*ends, d, d + width)
    assert ratio(p.ratio_between(*ends, d + width + 1, d)) == 0


def test_every_small_case_equals_the_area():
    """All intervals with ends in 0..3 and all d in -4..4, so that no tie is left out."""
    spans = [(low, high) for low in range(4) for high in range(low, 4)]
    for a in spans:
        for b in spans:
            for d in range(-4, 5):
                assert ratio(p.ratio_deadline(*a, *b, d)) == reference(*a, *b, None, d)
                assert ratio(p.ratio_delay(*a, *b, d)) == reference(*a, *b, d, None)
                for hi in range(d, 5):
                    assert ratio(p.ratio_between(*a, *b, d, hi)) == reference(*a, *b, d, hi)


@settings(max_examples=examples(300), deadline=None)
@given(some.stamps(), some.stamps(), some.int64s, some.int64s)
def test_the_whole_range_of_stamps_is_exact(a, b, d, other):
    """The furthest stamps and distances lose nothing: integers have no rounding."""
    lo, hi = min(d, other), max(d, other)
    assert ratio(p.ratio_between(*a, *b, lo, hi)) == reference(*a, *b, lo, hi)
    assert 0.0 <= p.prob_between(*a, *b, lo, hi) <= 1.0


@settings(max_examples=examples(500), deadline=None)
@given(pairs(), st.integers(-(1 << 50), 1 << 50), st.integers(0, 20))
def test_laws(pair, shift, more):
    """Symmetry, translation, monotony in d, and what the predicates have to do with each other."""
    (a_min, a_max, b_min, b_max), d = pair
    ends, swapped = (a_min, a_max, b_min, b_max), (b_min, b_max, a_min, a_max)
    moved = tuple(t + shift for t in ends)
    f, g = ratio(p.ratio_deadline(*ends, d)), ratio(p.ratio_delay(*ends, d))
    within = ratio(p.ratio_within(*ends, d))

    assert within == ratio(p.ratio_within(*swapped, d))
    assert f == ratio(p.ratio_delay(*swapped, -d))
    assert (f, g, within) == (
        ratio(p.ratio_deadline(*moved, d)), ratio(p.ratio_delay(*moved, d)), ratio(p.ratio_within(*moved, d))
    )  # fmt: skip
    assert ratio(p.ratio_deadline(*ends, d + more)) >= f
    assert ratio(p.ratio_delay(*ends, d + more)) <= g
    assert ratio(p.ratio_within(*ends, d + more)) >= within
    assert f + g >= 1
    if a_min < a_max or b_min < b_max:
        assert f + g == 1, "no atom unless both are points"
    assert within == ratio(p.ratio_between(*ends, -d, d))
    for value in (f, g, within):
        assert 0 <= value <= 1


@settings(max_examples=examples(300), deadline=None)
@given(pairs())
def test_the_float_is_the_nearest_to_the_exact_value(pair):
    """prob_* divides once, so it is the correctly rounded quotient."""
    ends, d = pair
    assert p.prob_deadline(*ends, d) == float(reference(*ends, None, d))
    assert p.prob_delay(*ends, d) == float(reference(*ends, d, None))
    assert p.prob_between(*ends, d, d + 9) == float(reference(*ends, d, d + 9))
    assert p.prob_within(*ends, abs(d)) == float(reference(*ends, -abs(d), abs(d)))


@settings(max_examples=examples(500), deadline=None)
@given(pairs())
def test_half_confidence_means_the_distance_of_the_middles(pair):
    """With 2 d >= the sum of the lengths, P(within) >= 1/2 exactly if the middles are at most d apart."""
    (a_min, a_max, b_min, b_max), d = pair
    d = max(d, -(-(a_max - a_min + b_max - b_min) // 2))
    middles_are_near = abs(b_min + b_max - a_min - a_max) <= 2 * d
    num, den = p.ratio_within(a_min, a_max, b_min, b_max, d)
    assert (2 * num >= den) == middles_are_near


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(-100, 100), st.integers(-100, 100))
def test_two_points_at_distance_exactly_d(x, y):
    """
    x |        both at distance d: every predicate that names d holds certainly
      <-- d -->| y
    """
    d = y - x
    ends = (x, x, y, y)
    assert p.ratio_deadline(*ends, d) == (1, 1)
    assert p.ratio_delay(*ends, d) == (1, 1)
    assert ratio(p.ratio_within(*ends, abs(d))) == 1
    assert ratio(p.ratio_between(*ends, d, d)) == 1
    assert ratio(p.ratio_deadline(*ends, d - 1)) == 0
    assert ratio(p.ratio_delay(*ends, d + 1)) == 0
    if d:
        assert ratio(p.ratio_within(*ends, abs(d) - 1)) == 0


def test_published_examples():
    """A short interval inside a long one with d smaller than the lengths, where the papers' corollaries give 1."""
    assert ratio(p.ratio_within(0, 100, 40, 41, 10)) == Fraction(1, 5)
    assert ratio(p.ratio_deadline(0, 100, 40, 41, 10)) == Fraction(139, 200)
    assert round(p.prob_within(0, 104, 100, 101, 10), 2) == 0.13
    assert round(p.prob_within(1118, 1138, 2101, 2127, 1000), 2) == 0.92
    assert round(p.prob_within(863, 1139, 2101, 2127, 1000), 2) == 0.09


def test_ends_in_the_wrong_order_are_refused():
    """The minimum comes first in both intervals, for every predicate."""
    for ends in ((1, 0, 0, 0), (0, 0, 1, 0)):
        for predicate in (
            p.ratio_deadline,
            p.ratio_delay,
            p.ratio_within,
            p.prob_deadline,
            p.prob_delay,
            p.prob_within,
        ):
            with pytest.raises(ValueError, match="minimum first"):
                predicate(*ends, 5)
        with pytest.raises(ValueError, match="minimum first"):
            p.ratio_between(*ends, 5, 4)
