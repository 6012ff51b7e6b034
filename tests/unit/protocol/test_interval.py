"""Closed intervals of integer microseconds: touching ends, points and nesting are the ordinary case."""

import pytest

from whenabouts_protocol.interval import Interval

#          0    10   20   30   40
# a             |---------|
# inner              |
# touching                |----|
# after                        |----|
A, INNER, TOUCHING, AFTER = Interval(10, 30), Interval(20, 20), Interval(30, 40), Interval(40, 50)


def test_length_and_middle_are_integers():
    """A point has length 0; the middle is kept doubled."""
    assert (A.width_us, A.doubled_middle) == (20, 40)
    assert (INNER.width_us, INNER.doubled_middle) == (0, 40)
    assert Interval(1, 2).doubled_middle == 3


def test_both_ends_belong_to_it():
    """Closed at both sides."""
    assert [A.contains(t) for t in (9, 10, 20, 30, 31)] == [False, True, True, True, False]


@pytest.mark.parametrize(
    ("other", "overlaps", "before", "common"),
    [
        (A, True, False, A),
        (INNER, True, False, INNER),
        (TOUCHING, True, False, Interval(30, 30)),
        (AFTER, False, True, None),
        (Interval(31, 31), False, True, None),
        (Interval(0, 9), False, False, None),
        (Interval(0, 99), True, False, A),
    ],
)
def test_two_intervals(other, overlaps, before, common):
    """Overlap and intersection are symmetric, touching ends share an instant, certain order needs a gap."""
    assert A.overlaps(other) == other.overlaps(A) == overlaps
    assert A.certainly_before(other) == before
    assert A.intersection(other) == other.intersection(A) == common
    assert A.hull(other) == other.hull(A) == Interval(min(10, other.t_min), max(30, other.t_max))


def test_widening_moves_the_ends_outwards():
    """Before and after are separate; widening by too little makes no interval."""
    assert A.widened() == A
    assert A.widened(before_us=5) == Interval(5, 30)
    assert A.widened(before_us=1, after_us=2) == Interval(9, 32)
    with pytest.raises(ValueError, match="found t_min 11 later than t_max 9"):
        Interval(10, 10).widened(before_us=-1, after_us=-1)


def test_equal_intervals_are_one_key():
    """Equal and hashable by value; printed as it is made."""
    assert len({A, Interval(10, 30), INNER}) == 2
    assert A != (10, 30)
    assert eval(repr(A)) == A


def test_ends_in_the_wrong_order_are_refused():
    """The text has what was found."""
    with pytest.raises(ValueError, match="found t_min 2 later than t_max 1, expected t_min <= t_max"):
        Interval(2, 1)
