"""The reference itself: against cases worked out by hand, against counting, and against the exact ratios of the protocol."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.predicates import limits, probability
from whenabouts_protocol import ratio_between

intervals = st.tuples(st.integers(-50, 50), st.integers(0, 40)).map(lambda x: (x[0], x[0] + x[1]))


@pytest.mark.parametrize(
    ("kind", "given_limits", "a", "b", "expected"),
    [
        ("within", {"d": 10}, (0, 100), (40, 41), Fraction(1, 5)),
        ("within", {"d": 10}, (0, 0), (10, 10), Fraction(1)),
        ("between", {"lo": 0, "hi": 10}, (0, 10), (5, 5), Fraction(1, 2)),
        ("between", {"lo": 5, "hi": 5}, (0, 0), (5, 5), Fraction(1)),
        ("deadline", {"d": 10, "window": 1000}, (0, 100), (40, 41), Fraction(139, 200)),
        ("deadline", {"d": -5, "window": 20}, (0, 10), (0, 10), Fraction(1, 8)),
        ("delay", {"d": 10, "window": 10}, (0, 0), (10, 10), Fraction(1)),
        ("delay", {"d": 0, "window": 1000}, (0, 10), (0, 10), Fraction(1, 2)),
    ],
)
def test_hand_worked_pairs(kind, given_limits, a, b, expected):
    """The definition gives the values worked out by hand."""
    assert probability(a, b, *limits(kind, **given_limits)) == expected


@given(intervals, intervals, st.integers(-60, 60), st.integers(0, 80))
def test_the_exact_ratio_of_the_protocol_is_the_definition(a, b, lo, width):
    """Two independent derivations agree as fractions, points and small widths included."""
    assert Fraction(*ratio_between(*a, *b, lo, lo + width)) == probability(a, b, lo, lo + width)


@given(intervals, intervals, st.integers(-60, 60), st.integers(0, 80))
def test_counting_points_of_a_fine_grid_comes_near(a, b, lo, width):
    """A crude count over a grid of midpoints is wrong by no more than the cells that the limits cut."""
    cells = 40
    xs = [a[0] + Fraction(a[1] - a[0]) * (2 * n + 1) / (2 * cells) for n in range(cells)]
    ys = [b[0] + Fraction(b[1] - b[0]) * (2 * n + 1) / (2 * cells) for n in range(cells)]
    hits = sum(lo <= y - x <= lo + width for x in xs for y in ys)
    points = a[0] == a[1] and b[0] == b[1]
    assert abs(Fraction(hits, cells * cells) - probability(a, b, lo, lo + width)) <= (
        0 if points else Fraction(6, cells)
    )
