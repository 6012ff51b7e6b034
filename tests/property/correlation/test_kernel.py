"""The kernel finds exactly the pairs of the definition, ties included, whatever the stamps are like."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.predicates import pairs
from support.search import examples
from whenabouts_cloud.correlation.batch import one_by_one
from whenabouts_cloud.pattern.condition import Condition

EPOCH_US = 1_795_000_000_000_000

# One grid for a whole example: coarse grids make ties the ordinary case.
grids = st.sampled_from([1, 7, 1000])
offsets = st.sampled_from([0, EPOCH_US, -EPOCH_US, (1 << 60) - 10**6, 1 << 61, -(1 << 62), (1 << 63) - 10**6])
thresholds = st.sampled_from([Fraction(x) for x in ("1", "0.8", "0.5", "0.9", "0.05", "0.999", "0.333", "0.000001")])


@st.composite
def sides(draw, max_size=12):
    """Readings of one side as (key, (t_min, t_max)) in units of the grid."""
    lengths = st.sampled_from([0, 0, 1, 2, 5, 10, 30, 200])
    rows = draw(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 60), lengths), max_size=max_size))
    return [(key, (t, t + length)) for key, t, length in rows]


def columns(rows, grid, offset):
    """Keys and stamps as arrays; stamps at the rim of int64 stay inside it."""
    rim = (1 << 63) - 1
    t = np.array([[min(max(x * grid + offset, -rim - 1), rim) for x in stamp] for _, stamp in rows], dtype=np.int64)
    t = t.reshape(-1, 2)
    return np.array([key for key, _ in rows], dtype=object), t[:, 0], t[:, 1]


@given(sides(), sides(), st.integers(0, 70), grids, offsets, thresholds, st.booleans())
@settings(max_examples=examples(400), deadline=None)
def test_pairs_and_probabilities_are_those_of_the_definition(a, b, d, grid, offset, ct, keyed):
    """Same pairs, same order, probabilities within 1e-12, for any d, lengths, ct and place on the time axis."""
    a_key, a_min, a_max = columns(a, grid, offset)
    b_key, b_min, b_max = columns(b, grid, offset)
    stamps = [list(zip(lo.tolist(), hi.tolist(), strict=True)) for lo, hi in ((a_min, a_max), (b_min, b_max))]
    keys = [k if keyed else [None] * len(k) for k in (a_key, b_key)]
    expected = pairs(
        *(list(zip(k, s, strict=True)) for k, s in zip(keys, stamps, strict=True)), -d * grid, d * grid, ct
    )

    i, j, p = one_by_one.pairs(
        a_key if keyed else None,
        a_min,
        a_max,
        b_key if keyed else None,
        b_min,
        b_max,
        Condition("within", d=d * grid, confidence=ct),
    )

    assert list(zip(i.tolist(), j.tolist(), strict=True)) == sorted(expected)
    assert np.allclose(p, [float(expected[k]) for k in sorted(expected)], atol=1e-12, rtol=0)


@given(sides(20), sides(20), st.integers(0, 70), st.integers(1, 9))
@settings(max_examples=examples(100), deadline=None)
def test_chunks_of_any_size_give_the_same_pairs(a, b, d, size):
    """Cutting the candidates anywhere, inside a row of A too, changes nothing."""
    a_columns, b_columns = columns(a, 1, 0), columns(b, 1, 0)
    whole = one_by_one.pairs(*a_columns, *b_columns, Condition("within", d=d, confidence=Fraction(1, 2)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_by_one, "CHUNK_CANDIDATES", size)
        cut = one_by_one.pairs(*a_columns, *b_columns, Condition("within", d=d, confidence=Fraction(1, 2)))
    for x, y in zip(whole, cut, strict=True):
        assert np.array_equal(x, y)


@given(sides(), sides(), st.integers(0, 70), thresholds)
@settings(max_examples=examples(100), deadline=None)
def test_python_integers_and_int64_take_the_same_decisions(a, b, d, ct):
    """The fallback for wide stamps is the same function."""
    a_key, *a_stamps = columns(a, 1000, EPOCH_US)
    b_key, *b_stamps = columns(b, 1000, EPOCH_US)
    narrow = one_by_one.pairs(a_key, *a_stamps, b_key, *b_stamps, Condition("within", d=d * 1000, confidence=ct))
    shifted = [[x.astype(object) + (1 << 70) for x in stamps] for stamps in (a_stamps, b_stamps)]
    wide = one_by_one.pairs(a_key, *shifted[0], b_key, *shifted[1], Condition("within", d=d * 1000, confidence=ct))
    for x, y in zip(narrow, wide, strict=True):
        assert np.array_equal(x, y)


@given(st.integers(0, 60), st.integers(0, 200), st.integers(-200, 200), st.integers(0, 200), thresholds)
@settings(max_examples=examples(500))
def test_nothing_outside_the_two_bounds_ever_matches(d, w_a, b_min, w_b, ct):
    """A pair that satisfies the condition keeps within the longest useful length and within the band."""
    condition = Condition("within", d=d, confidence=ct)
    if pairs([(0, (0, w_a))], [(0, (b_min, b_min + w_b))], -d, d, ct):
        assert max(w_a, w_b) <= condition.longest_us
        assert abs(2 * b_min + w_b - w_a) <= condition.band(w_a + w_b)


def test_ties_on_a_millisecond_grid_all_belong_to_the_result():
    """Equal lengths, d the length and ct 1/2: the tie is at a distance of exactly d, and it is in."""
    #   a [0 ........ 100 ms]      middle  50
    #   b     [100 ....... 200 ms] middle 150 = 50 + d  -> P = 1/2
    a = np.array([0]) * 1000 + EPOCH_US
    b = np.arange(95, 106) * 1000 + EPOCH_US
    _, j, p = one_by_one.pairs(
        None, a, a + 100_000, None, b, b + 100_000, Condition("within", d=100_000, confidence=Fraction(1, 2))
    )
    assert j.tolist() == [0, 1, 2, 3, 4, 5]
    assert p[-1] == 0.5


def test_the_longest_useful_interval_still_matches_a_point():
    """2d/ct is reached: an interval of that length around a point has probability ct exactly, one longer has less."""
    point = np.array([EPOCH_US])
    for length, expected in ((25_000_000, 1), (25_000_001, 0)):
        start = point - 12_000_000
        matched, _, _ = one_by_one.pairs(
            None,
            point,
            point,
            None,
            start,
            start + length,
            Condition("within", d=10_000_000, confidence=Fraction(4, 5)),
        )
        assert len(matched) == expected


@pytest.mark.parametrize(("d", "ct"), [(-1, Fraction(1, 2)), (5, Fraction(0)), (5, Fraction(3, 2))])
def test_conditions_without_meaning_are_refused(d, ct):
    """A negative distance and a threshold outside (0, 1] are errors, not empty results."""
    one = np.array([0])
    with pytest.raises(ValueError, match="expected"):
        one_by_one.pairs(None, one, one, None, one, one, Condition("within", d=d, confidence=ct))


def test_an_interval_that_ends_before_it_begins_is_refused():
    """The position and the stamp are named."""
    one = np.array([5])
    with pytest.raises(ValueError, match=r"interval 0: found \[5, 4\]"):
        one_by_one.pairs(None, one, one - 1, None, one, one, Condition("within", d=1, confidence=Fraction(1)))
