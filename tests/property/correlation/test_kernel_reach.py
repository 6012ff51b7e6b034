"""The table of reach never rules out a match and never accepts a pair that is no match."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reference.predicates import probability
from support.search import examples
from whenabouts_cloud.correlation.batch import decide
from whenabouts_cloud.correlation.batch.matches_numpy import exactly
from whenabouts_cloud.correlation.batch.reach import Terms, reach

lengths = st.lists(st.one_of(st.integers(0, 40), st.integers(0, 100_000)), min_size=1, max_size=4)
confidences = st.one_of(
    st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(4, 5), Fraction(1, 10**12), Fraction(10**12 - 1, 10**12)]),
    st.fractions(0, 1, max_denominator=1000).filter(bool),
)


@given(lengths, lengths, st.integers(0, 120_000), confidences, st.sampled_from([1, 10**6, 1 << 40]))
@settings(max_examples=examples(400), deadline=None)
@example([0], [0], 0, Fraction(1), 1)
@example([5, 100_000], [0, 100_000], 1000, Fraction(1, 10), 1)
def test_far_and_sure_hold_for_every_pair_of_lengths(w_a, w_b, width, ct, scale):
    """Just beyond far no pair of these lengths matches, up to sure every one does; D smaller than the lengths too."""
    a, b = np.array(w_a) * scale, np.array(w_b) * scale
    terms = Terms(0, width * scale, ct.numerator, ct.denominator)
    table = reach(a, b, terms)
    for x in a.tolist():
        at = (x - table.shortest) >> table.shift
        far, sure = int(table.far[at]), int(table.sure[at])
        assert far >= sure
        for y in b.tolist():
            assert not exactly(max(far + 1, 0), x, y, terms)
            assert sure < 0 or exactly(sure, x, y, terms)


@given(st.integers(-90, 90), st.integers(0, 40), st.integers(0, 40), st.integers(0, 80), confidences)
@settings(max_examples=examples(400), deadline=None)
def test_exact_decisions_are_the_definition(middle, w_a, w_b, width, ct):
    """The one in Python's and the one in machine integers, for the doubled distance of the middles."""
    # Everything is doubled, lengths, distance and D, so that the ends are whole numbers around every middle.
    apart = abs(middle)
    apart += (apart + w_a + w_b + width) % 2  # as it is for intervals with whole ends
    expected = probability((-w_a, w_a), (apart - w_b, apart + w_b), -width, width) >= ct
    assert exactly(apart, w_a, w_b, Terms(0, width, ct.numerator, ct.denominator)) == expected
    assert decide.exactly(apart, w_a, w_b, width, ct.numerator, ct.denominator) == expected


@given(st.integers(0, 1 << 59), st.integers(0, 1 << 59), st.integers(0, 1 << 60), st.integers(0, 1 << 61), confidences)
@settings(max_examples=examples(400), deadline=None)
def test_machine_integers_decide_as_pythons_do_up_to_the_limit(w_a, w_b, width, apart, ct):
    """Products of 160 bits are compared without loss."""
    apart += (apart + w_a + w_b + width) % 2
    expected = exactly(apart, w_a, w_b, Terms(0, width, ct.numerator, ct.denominator))
    assert decide.exactly(apart, w_a, w_b, width, ct.numerator, ct.denominator) == expected
