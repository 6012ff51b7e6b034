"""The reference itself, against cases that can be worked out by hand, and against the exact ratios of the protocol."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.within import probability
from whenabouts_protocol import ratio_within


@pytest.mark.parametrize(
    ("a", "b", "d", "expected"),
    [
        ((0, 0), (10, 10), 10, Fraction(1)),
        ((0, 0), (11, 11), 10, Fraction(0)),
        ((0, 100), (40, 41), 10, Fraction(1, 5)),
        ((0, 10), (0, 10), 0, Fraction(0)),
        ((0, 10), (20, 20), 15, Fraction(1, 2)),
        ((0, 10), (10, 20), 10, Fraction(1, 2)),
    ],
)
def test_hand_worked_pairs(a, b, d, expected):
    """The definition gives the values worked out by hand."""
    assert probability(a, b, d) == expected
    assert probability(b, a, d) == expected


intervals = st.tuples(st.integers(-50, 50), st.integers(0, 40)).map(lambda x: (x[0], x[0] + x[1]))


@given(intervals, intervals, st.integers(0, 80))
def test_the_exact_ratio_of_the_protocol_is_the_definition(a, b, d):
    """Two independent derivations agree as fractions, points and small d included."""
    num, den = ratio_within(*a, *b, d)
    assert Fraction(num, den) == probability(a, b, d)
