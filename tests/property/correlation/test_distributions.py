"""Distributions inside the interval against their definition: exact fractions, every bound, every pair by brute force."""

from fractions import Fraction

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.search import examples
from whenabouts_cloud.correlation.batch import one_by_one
from whenabouts_cloud.correlation.distributions import (
    PROBABILITY_ERROR,
    Bounds,
    TruncatedNormal,
    correlate_distributed,
    exact_probability,
    histogram,
    may_reuse,
    probability,
    stochastically_below,
    triangular,
    uniform,
)
from whenabouts_cloud.pattern.condition import Condition

EPOCH_US = 1_795_000_000_000_000

linear = st.one_of(
    st.just(uniform()),
    st.builds(triangular, st.fractions(0, 1, max_denominator=20)),
    st.builds(histogram, st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)),
    st.builds(lambda k: histogram([k] + [0] * 8 + [100 - k]), st.integers(0, 100)),  # lumps make the bounds tight
)
normals = st.builds(
    TruncatedNormal, st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.sampled_from([0.02, 0.1, 0.3, 1.0, 10.0])
)
shapes = st.one_of(linear, normals)
thresholds = st.sampled_from([Fraction(x) for x in ("1", "0.95", "0.8", "0.5", "0.3", "0.05", "0.001")])
stamps = st.tuples(st.integers(0, 80), st.sampled_from([0, 0, 1, 2, 7, 20, 60, 300])).map(lambda x: (x[0], x[0] + x[1]))
grids = st.sampled_from([(1, 0), (1, EPOCH_US), (1000, -EPOCH_US), (10**9, 0)])


@st.composite
def conditions(draw, grid=1):
    """A between with any limits, so that every predicate is among them."""
    lo, width = draw(st.integers(-60, 60)), draw(st.sampled_from([0, 1, 5, 20, 80]))
    return Condition("between", lo=lo * grid, hi=(lo + width) * grid, confidence=draw(thresholds))


@st.composite
def sides(draw, max_size=8):
    """Two sides of keyed stamps and a condition on one grid somewhere on the time axis."""
    grid, offset = draw(grids)
    rows = st.lists(st.tuples(st.sampled_from("xy"), stamps), max_size=max_size)
    a, b = ([(key, (s * grid + offset, e * grid + offset)) for key, (s, e) in draw(rows)] for _ in "ab")
    return a, b, draw(conditions(grid))


def columns(rows):
    """Begins and ends of a side."""
    return [stamp[0] for _, stamp in rows], [stamp[1] for _, stamp in rows]


@given(linear, stamps, linear, stamps, conditions(), grids)
@settings(max_examples=examples(300), deadline=None)
def test_floats_keep_the_stated_error_where_fractions_know_the_answer(a_shape, a, b_shape, b, condition, grid):
    """Any piecewise linear shapes, zero lengths, far places and coarse grids."""
    a, b = ([x * grid[0] + grid[1] for x in stamp] for stamp in (a, b))
    exact = exact_probability(a_shape, tuple(a), b_shape, tuple(b), condition)
    assert abs(probability(a_shape, *a, b_shape, *b, condition).item() - exact) <= PROBABILITY_ERROR


@given(stamps, stamps, conditions())
@settings(max_examples=examples(200), deadline=None)
def test_uniform_fractions_are_the_conditions_own(a, b, condition):
    """The general integral on fractions gives the closed form of the exact kernel."""
    num, den = condition.ratio(*a, *b)
    assert exact_probability(uniform(), a, uniform(), b, condition) == Fraction(num, den)


@given(shapes, stamps, shapes, stamps, conditions())
@settings(max_examples=examples(600), deadline=None)
def test_nothing_outside_the_bounds_matches_and_nothing_inside_the_sure_range_fails(a_shape, a, b_shape, b, condition):
    """`never`, `sure`, the longest useful lengths and the band of middles, for one pair."""
    p = probability(a_shape, *a, b_shape, *b, condition).item()
    bounds, (v, w) = Bounds(condition, a_shape, b_shape), (a[1] - a[0], b[1] - b[0])
    ct = float(condition.ct)
    matches, fails = p >= ct - PROBABILITY_ERROR, p < ct - PROBABILITY_ERROR
    if matches:
        low, high = bounds.middle_band(v, w)
        assert not bounds.never(a[0], v, b[0], w)
        assert low <= sum(b) - sum(a) <= high
        assert v <= bounds.longest_us(a_shape)
        assert w <= bounds.longest_us(b_shape)
    assert not (fails and bounds.sure(a[0], v, b[0], w))


def test_the_bounds_decide_most_pairs_and_leave_some():
    """They are worth having: of triangles at random distances a few per cent remain to be evaluated."""
    random = np.random.default_rng(3)
    bounds = Bounds(Condition("within", d=500_000, confidence="0.8"), triangular(), triangular())
    v, w = random.integers(20_000, 300_000, (2, 10_000)).astype(float)
    start = random.integers(-2_000_000, 2_000_000, 10_000)
    never, sure = bounds.never(0, v, start, w), bounds.sure(0, v, start, w)
    assert not (never & sure).any()
    assert never.mean() > 0.6
    assert sure.mean() > 0.1
    assert 0 < (~never & ~sure).mean() < 0.15


@given(sides(), shapes, shapes, st.booleans())
@settings(max_examples=examples(250), deadline=None)
def test_the_join_is_brute_force(side, a_shape, b_shape, keyed):
    """Same pairs, ordered, with exact ties for piecewise linear shapes and the documented rule for the others."""
    a, b, condition = side
    expected = []
    for i, (a_key, x) in enumerate(a):
        for j, (b_key, y) in enumerate(b):
            if keyed and a_key != b_key:
                continue
            if isinstance(a_shape, TruncatedNormal) or isinstance(b_shape, TruncatedNormal):
                p = probability(a_shape, *x, b_shape, *y, condition).item()
                match = p >= float(condition.ct) - PROBABILITY_ERROR
            else:
                match = exact_probability(a_shape, x, b_shape, y, condition) >= condition.ct
            if match:
                expected.append((i, j))
    keys = {"key_a": [k for k, _ in a], "key_b": [k for k, _ in b]} if keyed else {}
    call = (*columns(a), *columns(b), condition, a_shape, b_shape)
    i, j = correlate_distributed(*call, **keys)
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected
    i_again, j_again, p = correlate_distributed(*call, **keys, probability=True)
    assert (i_again.tolist(), j_again.tolist()) == (i.tolist(), j.tolist())
    for n in range(len(p)):
        single = probability(a_shape, *a[i[n]][1], b_shape, *b[j[n]][1], condition).item()
        assert abs(p[n] - single) <= PROBABILITY_ERROR


@given(sides(20), st.booleans())
@settings(max_examples=examples(200), deadline=None)
def test_uniform_through_this_path_is_the_exact_kernel(side, keyed):
    """Equal indices in equal order, probabilities within the stated error."""
    a, b, condition = side
    keys = [np.array([k for k, _ in rows], dtype=object) for rows in (a, b)] if keyed else [None, None]
    sides_ = [[np.array(x, np.int64) for x in columns(rows)] for rows in (a, b)]
    i, j, p = one_by_one.pairs(keys[0], *sides_[0], keys[1], *sides_[1], condition)
    i_too, j_too, p_too = correlate_distributed(
        *sides_[0], *sides_[1], condition, uniform(), uniform(), key_a=keys[0], key_b=keys[1], probability=True
    )
    assert (i_too.tolist(), j_too.tolist()) == (i.tolist(), j.tolist())
    assert np.abs(p_too - p).max(initial=0) <= PROBABILITY_ERROR


@given(shapes, stamps, shapes, stamps, shapes, stamps, conditions(), st.sampled_from(["left", "right"]))
@settings(max_examples=examples(600), deadline=None)
def test_a_verdict_that_may_be_reused_is_right(known_shape, known, new_shape, new, shape, target, condition, side):
    """Whenever the rule allows it, the new pair is at least as probable as the known one on the side that counts."""
    if side == "left":
        new = (min(new[0], known[0]), min(new[1], known[1]))
    else:
        new = (max(new[0], known[0]), max(new[1], known[1]))
    for other in (new_shape, known_shape):
        if may_reuse(side, condition, (known_shape, known), (other, new), target):
            p_known = probability(known_shape, *known, shape, *target, condition).item()
            p_new = probability(other, *new, shape, *target, condition).item()
            assert p_new >= p_known - 2 * PROBABILITY_ERROR


@given(linear, linear)
@settings(max_examples=examples(200), deadline=None)
def test_the_order_of_two_shapes_is_that_of_their_distribution_functions(low, high):
    """Shown exactly when no place of a fine grid with all knots contradicts it; a near touch between places is let pass."""
    places = sorted({Fraction(k, 400) for k in range(401)} | set(low.knots) | set(high.knots))
    gain = min(low.exact_cdf(u) - high.exact_cdf(u) for u in places)
    shown = stochastically_below(low, high)
    assume(shown or gain < 0 or gain > Fraction(1, 10))
    assert shown == (gain >= 0)


@given(normals, normals)
@settings(max_examples=examples(100), deadline=None)
def test_normals_classified_as_ordered_are(low, high):
    """Their distribution functions do not cross."""
    if stochastically_below(low, high):
        u = np.linspace(0, 1, 501)
        assert (low.cdf(u) - high.cdf(u)).min() >= -1e-12


@given(shapes, st.integers(1, 9), st.integers(0, 2**32))
@settings(max_examples=examples(30), deadline=None)
def test_a_pair_has_one_probability_whatever_stands_beside_it(shape, size, seed):
    """Singly or in a column, at any place of a chunk: bit for bit the same, so verdicts do not depend on other rows."""
    t = np.random.default_rng(seed).integers(0, 1000, (4, size)).cumsum(axis=0)
    a_min, a_max, b_min, b_max = t[0], t[2], t[1], t[3]
    within = Condition("within", d=500, confidence=1)
    together = probability(shape, a_min, a_max, shape, b_min, b_max, within)
    alone = [
        probability(shape, *x[:2], shape, *x[2:], within).item() for x in zip(a_min, a_max, b_min, b_max, strict=True)
    ]
    assert together.tolist() == alone
