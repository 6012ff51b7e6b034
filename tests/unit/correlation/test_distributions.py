"""Distributions inside the interval: known values, independent integration, and where the look-up rule fails."""

import functools
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from whenabouts_cloud.correlation.distributions import (
    PROBABILITY_ERROR,
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
from whenabouts_cloud.correlation.distributions.lookup import Stamp
from whenabouts_cloud.correlation.distributions.normal import SIGMA_MAX, SIGMA_MIN, normal_cdf
from whenabouts_cloud.correlation.distributions.probability import STAMP_LIMIT
from whenabouts_cloud.correlation.distributions.quantile_bounds import Bounds
from whenabouts_cloud.correlation.distributions.shaped_join import GUARD
from whenabouts_cloud.correlation.distributions.shapes import MAX_BINS, PiecewiseLinear
from whenabouts_cloud.pattern.condition import Condition

EPOCH_US = 1_795_000_000_000_000
SHAPES = {
    "uniform": uniform(),
    "triangular": triangular(),
    "skewed": triangular("0.2"),
    "falling": triangular(0),
    "rising": triangular(1),
    "bins": histogram([3, 0, 5, 1]),
    "narrow bins": histogram([0, 0, 7, 0]),
    "normal": TruncatedNormal(),
    "narrow": TruncatedNormal(0.0, SIGMA_MIN),
    "flat": TruncatedNormal(1.0, SIGMA_MAX),
    "skewed normal": TruncatedNormal(0.7, 0.1),
}
NORMALS = [name for name, shape in SHAPES.items() if isinstance(shape, TruncatedNormal)]


@pytest.mark.parametrize("name", SHAPES)
def test_the_quantile_is_the_least_place_that_reaches_its_probability(name):
    """cdf(quantile(p)) is p, and a little before it is less; the ends are those of the support."""
    shape = SHAPES[name]
    for p in np.linspace(0.001, 0.999, 97):
        u = shape.quantile(float(p))
        assert shape.cdf(u).item() == pytest.approx(p, abs=1e-12)
        assert shape.cdf(u - 1e-9).item() < p
    assert (shape.quantile(0.0), shape.quantile(1.0)) == shape.support
    assert shape.cdf(shape.support[0]).item() == 0
    assert shape.cdf(shape.support[1]).item() == 1


@pytest.mark.parametrize("name", SHAPES)
def test_the_density_is_the_slope_of_the_distribution_function_and_stays_below_its_peak(name):
    """Differences of the cdf over small steps, away from knots, are the density; nothing lies outside [0, 1]."""
    shape, step = SHAPES[name], 1e-6
    u = np.linspace(0.0007, 0.9993, 1001)
    u = u[np.abs(u[:, None] - shape.grid).min(axis=1) > 2 * step]
    slope = (shape.cdf(u + step) - shape.cdf(u - step)) / (2 * step)
    assert np.abs(slope - shape.density(u)).max() < 1e-4 * shape.peak
    assert shape.density(np.linspace(0, 1, 4001)).max() <= shape.peak * (1 + 1e-12)
    assert shape.density(np.array([-0.1, 1.1])).tolist() == [0, 0]
    assert shape.cdf(np.array([-0.1, 1.1])).tolist() == [0, 1]


def test_the_table_of_the_normal_distribution_is_right_to_its_stated_error():
    """Against math.erfc at places that are no table entries."""
    x = np.random.default_rng(1).uniform(-9, 9, 20_000)
    exact = np.array([math.erfc(-v / math.sqrt(2)) / 2 for v in x])
    assert np.abs(normal_cdf(x) - exact).max() < 2e-15


def test_what_the_error_bound_assumes_of_truncated_normals_holds():
    """Peaks up to 40, a mass of 0.04 or more, half a panel times the peak below 0.6, panels of one sigma at most."""
    for sigma in np.geomspace(SIGMA_MIN, SIGMA_MAX, 60):
        for mean in np.linspace(0, 1, 11):
            shape = TruncatedNormal(float(mean), float(sigma))
            panels = np.diff(shape.grid)
            within = np.abs(shape.grid - mean) <= 8.5 * sigma * (1 + 1e-12)
            assert shape.peak <= 40
            assert 1 / (shape.peak * math.sqrt(2 * math.pi) * sigma) > 0.038
            assert panels[within[1:] & within[:-1]].max() <= sigma * (1 + 1e-9)
            assert min(0.5, sigma / 2) * shape.peak < 0.6


def simpson(y):
    """Mean of a function from an odd number of equidistant values."""
    return (y[0] + y[-1] + 4 * y[1::2].sum() + 2 * y[2:-1:2].sum()) / 3 / (len(y) - 1)


@functools.cache
def ends(shape):
    """The error function where a normal is cut off, at 0 and at 1."""
    return [math.erf((x - shape.mean) / shape.sigma / math.sqrt(2)) for x in (0, 1)]


def reference(a_shape, a, b_shape, b, lo, hi):
    """P(lo <= Y - X <= hi) by Simpson's rule with math.erf, extrapolated, between all kinks of both sides; no points."""
    v, w = a[1] - a[0], b[1] - b[0]

    def cdf(shape, u):
        u = min(max(u, 0.0), 1.0)
        if isinstance(shape, TruncatedNormal):
            least, most = ends(shape)
            return (math.erf((u - shape.mean) / shape.sigma / math.sqrt(2)) - least) / (most - least)
        return float(shape.exact_cdf(Fraction(u)))

    def density(shape, u):
        if isinstance(shape, TruncatedNormal):
            z, (least, most) = (u - shape.mean) / shape.sigma, ends(shape)
            return math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / shape.sigma / ((most - least) / 2)
        return float(shape.exact_density(Fraction(u)))

    def inner(x):
        start = a[0] + v * x - b[0]
        return density(a_shape, x) * (cdf(b_shape, (start + hi) / w) - cdf(b_shape, (start + lo) / w))

    kinks = {min(max((g * w + b[0] - a[0] - s) / v, 0.0), 1.0) for g in b_shape.grid for s in (lo, hi)}
    cuts, total = sorted({*a_shape.grid.tolist(), *kinks}), 0.0
    for left, right in pairwise(cuts):
        edge = (right - left) * 1e-12  # a density may jump at the knot itself
        x = np.linspace(left + edge, right - edge, 129)
        y = np.array([inner(float(u)) for u in x])
        fine, coarse = (right - left) * simpson(y), (right - left) * simpson(y[::2])
        total += fine + (fine - coarse) / 15
    return total


@pytest.mark.parametrize("b_name", ["uniform", "skewed", "bins", "normal", "narrow", "flat"])
@pytest.mark.parametrize("a_name", NORMALS)
def test_probabilities_with_a_normal_keep_the_stated_error(a_name, b_name):
    """Against Simpson's rule with math.erf, lengths from equal to a thousandfold, both ways round."""
    for v, w, shift, d in ((100, 100, 30, 40), (1000, 100, 350, 90), (3, 2000, -900, 55)):
        a, b = (EPOCH_US, EPOCH_US + v), (EPOCH_US + shift, EPOCH_US + shift + w)
        for x, xs, y, ys in ((a, SHAPES[a_name], b, SHAPES[b_name]), (b, SHAPES[b_name], a, SHAPES[a_name])):
            within = Condition("within", d=d, confidence=1)
            p = probability(xs, *x, ys, *y, within).item()
            relative = [(z[0] - EPOCH_US, z[1] - EPOCH_US) for z in (x, y)]
            assert p == pytest.approx(reference(xs, relative[0], ys, relative[1], -d, d), abs=PROBABILITY_ERROR, rel=0)


def draws_of(shape, random, count):
    """Random draws from what a shape means, by numpy's own generators."""
    if isinstance(shape, TruncatedNormal):
        draws = np.empty(0)
        while len(draws) < count:
            more = random.normal(shape.mean, shape.sigma, 4 * count)
            draws = np.concatenate([draws, more[(more >= 0) & (more <= 1)]])
        return draws[:count]
    if shape.heights[0][0] != shape.heights[0][1]:
        mode = next(k for k, (left, _) in zip(shape.knots, [*shape.heights, (2, 0)], strict=True) if left == 2)
        return random.triangular(0, float(mode), 1, count)
    share = [float(h[0]) / len(shape.heights) for h in shape.heights]
    return (random.choice(len(share), count, p=share) + random.random(count)) / len(share)


@functools.cache
def fixed_draws(name, seed):
    """100 000 draws of a shape, the same in every test."""
    return draws_of(SHAPES[name], np.random.default_rng([seed, *name.encode()]), 100_000)


@pytest.mark.parametrize("b_name", SHAPES)
@pytest.mark.parametrize("a_name", SHAPES)
def test_probabilities_of_any_two_kinds_agree_with_random_draws(a_name, b_name):
    """Within four standard deviations of 100 000 draws by numpy's generators; the seed is fixed."""
    difference = -30 + 170 * fixed_draws(b_name, 1) - 100 * fixed_draws(a_name, 2)
    share = float(((difference >= -20) & (difference <= 45)).mean())
    condition = Condition("between", lo=-20, hi=45, confidence=1)
    p = probability(SHAPES[a_name], 0, 100, SHAPES[b_name], -30, 140, condition).item()
    assert abs(share - p) <= 4 * math.sqrt(max(p * (1 - p), 1e-5) / len(difference))


def test_known_probabilities_are_exact():
    """Two triangles of one length: P(|Y - X| <= w / 2) is that of four summed uniforms, 23/24 - 1/24; halves by symmetry."""
    #   X [0 ... 2], Y [0 ... 2], both triangular: Y - X is the sum of four uniforms on [0, 1] less 2
    triangle = triangular()
    assert exact_probability(
        triangle, (0, 2), triangle, (0, 2), Condition("within", d=1, confidence=1)
    ) == 1 - 2 * Fraction(1, 24)
    assert exact_probability(
        triangle, (0, 2), triangle, (0, 2), Condition("between", lo=0, hi=9, confidence=1)
    ) == Fraction(1, 2)


def test_points_are_exact_whatever_their_shape():
    """Two points at the limit match with certainty; a point against an interval asks the interval's shape only."""
    within = Condition("within", d=10, confidence=1)
    for shape in SHAPES.values():
        assert probability(shape, [5, 5], [5, 5], shape, [15, 16], [15, 16], within).tolist() == [1, 0]
        assert probability(shape, 0, 0, shape, 0, 20, within).item() == pytest.approx(shape.cdf(0.5).item(), abs=1e-15)


def test_a_tie_of_two_triangles_is_a_result_and_its_neighbours_are_decided_rightly():
    """P is 3/4 at the point's place 50 with d 25 exactly: in; one microsecond off it is a little less: out."""
    #   a [0 ... 100] triangular       b a point at 49, 50, 51
    within = Condition("within", d=25, confidence="0.75")
    _, j, p = correlate_distributed(
        [0], [100], [49, 50, 51], [49, 50, 51], within, triangular(), uniform(), probability=True
    )
    assert (j.tolist(), p.tolist()) == ([1], [0.75])


def test_a_probability_of_a_normal_that_equals_ct_up_to_rounding_is_a_result():
    """The centre of a symmetric bell is at 1/2 up to rounding; the documented rule takes it, and refuses what is below."""
    half = Condition("between", lo=-100, hi=0, confidence="0.5")
    normal = TruncatedNormal()
    i, j = correlate_distributed([0], [100], [50, 49, 51], [50, 49, 51], half, normal, normal)
    #   P(Y - X <= 0) = P(X >= y): one half at the centre 50, more before it
    assert list(zip(i.tolist(), j.tolist(), strict=True)) == [(0, 0), (0, 1)]
    assert PROBABILITY_ERROR < GUARD


@pytest.mark.parametrize(("mirrored", "lo", "hi"), [(False, -1000, -50), (True, 50, 1000)])
def test_the_bounds_are_as_sharp_as_their_proofs(mirrored, lo, hi):
    """Lumps at the ends leave no slack: 0.9 * 0.9 = 0.81 is certain and no more, 1 - 0.81 = 0.19 is possible and no more."""
    #   low   |#######..........|   9 of 10 in the first tenth       Z <= -50 iff Y is in its first and X in its last tenth;
    #   high  |..........#######|   9 of 10 in the last              mirrored: Z >= 50 iff the other way round
    low, high = histogram([9] + [0] * 8 + [1]), histogram([1] + [0] * 8 + [9])
    for a_shape, b_shape, p in ((high, low, Fraction(81, 100)), (low, high, Fraction(1, 100))):
        a_shape, b_shape = (b_shape, a_shape) if mirrored else (a_shape, b_shape)
        exact = exact_probability(
            a_shape, (0, 100), b_shape, (0, 100), Condition("between", lo=lo, hi=hi, confidence=1)
        )
        assert exact == p
    for ct, sure in (("0.80", True), ("0.82", False)):
        shapes = (low, high) if mirrored else (high, low)
        bounds = Bounds(Condition("between", lo=lo, hi=hi, confidence=ct), *shapes)
        assert bool(bounds.sure(0, 100, 0, 100)) is sure
    # The other way round Y in its first tenth or X in its last is enough for Z <= 50: 1 - 0.9 * 0.9.
    wide = (-1000, 50) if not mirrored else (-50, 1000)
    for ct, never in (("0.18", False), ("0.20", True)):
        shapes = (high, low) if mirrored else (low, high)
        bounds = Bounds(Condition("between", lo=wide[0], hi=wide[1], confidence=ct), *shapes)
        assert bool(bounds.never(0, 100, 0, 100)) is never
        assert exact_probability(shapes[0], (0, 100), shapes[1], (0, 100), bounds.condition) == Fraction(19, 100)


# --- the look-up rule


def test_moving_both_ends_down_keeps_a_satisfied_pair_when_the_shape_stays():
    """k satisfies e - k >= 5; n lies lower at both ends, so it does too, for every shape."""
    #   n   [0 ......... 9]
    #   k     [2 ........... 12]
    #   e                    [14 .. 20]
    delay = Condition("delay", d=5, window=1000, confidence="0.8")
    for shape in SHAPES.values():
        known: Stamp = (2, 12)
        assert may_reuse("left", delay, (shape, known), (shape, (0, 9)), (14, 20))
        p_known, p_new = probability(shape, [2, 0], [12, 9], shape, [14, 14], [20, 20], delay)
        assert p_new >= p_known - PROBABILITY_ERROR


def test_another_shape_breaks_the_rule():
    """n lies lower at both ends, but its mass sits at its end: k is satisfied, n is not, as the predicate decides."""
    #   n [0 .............. 9]  all mass in the last tenth: about 8.5
    #   k [1 .............. 10] falling: about 4
    #   e                  10, at least 3 later
    delay = Condition("delay", d=3, window=1000, confidence="0.6")
    late = histogram([0] * 9 + [1])
    p_known = probability(triangular(0), 1, 10, uniform(), 10, 10, delay).item()
    p_new = probability(late, 0, 9, uniform(), 10, 10, delay).item()
    assert p_known >= 0.6 > p_new
    assert not stochastically_below(late, triangular(0))
    assert not may_reuse("left", delay, (triangular(0), (1, 10)), (late, (0, 9)), (10, 10))
    assert may_reuse("left", delay, (late, (1, 10)), (triangular(0), (0, 9)), (10, 10))


@pytest.mark.parametrize("name", ["uniform", "triangular", "normal"])
def test_the_other_limit_of_a_short_condition_breaks_the_rule(name):
    """d = 10: k = (100, 104) is certainly near e = (100, 101), n = (0, 104) is mostly long before; the guard refuses it."""
    within, shape, target = Condition("within", d=10, confidence="0.5"), SHAPES[name], (100, 101)
    p_known, p_new = probability(shape, [100, 0], [104, 104], shape, [100, 100], [101, 101], within)
    assert p_known == pytest.approx(1)
    assert p_new < 0.5
    assert not may_reuse("left", within, (shape, (100, 104)), (shape, (0, 104)), target)
    assert may_reuse("left", within, (shape, (100, 104)), (shape, (92, 104)), target)


def test_orders_that_can_be_shown_and_orders_that_cannot():
    """Modes and means order triangles and normals; crossing ones and unlike kinds are not ordered."""
    assert stochastically_below(triangular("0.2"), triangular("0.7"))
    assert not stochastically_below(triangular("0.7"), triangular("0.2"))
    assert stochastically_below(TruncatedNormal(0.3, 0.2), TruncatedNormal(0.4, 0.2))
    assert not stochastically_below(TruncatedNormal(0.3, 0.2), TruncatedNormal(0.4, 0.3))
    assert not stochastically_below(histogram([0, 1, 0]), uniform())  # crosses
    assert not stochastically_below(uniform(), histogram([0, 1, 0]))
    assert not stochastically_below(TruncatedNormal(), uniform())  # equal in the middle, not shown


# --- refusals


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: triangular("1.5"), "expected a share of the length"),
        (lambda: histogram([]), "found 0 bins"),
        (lambda: histogram([1] * (MAX_BINS + 1)), "expected 1 to 128"),
        (lambda: histogram([0, 0]), "not all 0"),
        (lambda: histogram([1, -1]), "expected integers from 0"),
        (lambda: histogram([True, 1]), "expected integers from 0"),
        (lambda: TruncatedNormal(0.5, 0.0), "expected a share of the length from 0.02"),
        (lambda: TruncatedNormal(math.nan, 0.1), "found mean nan"),
        (lambda: PiecewiseLinear((Fraction(0), Fraction(1)), ((Fraction(1), Fraction(2)),)), "density of area 3/2"),
        (lambda: PiecewiseLinear((Fraction(0), Fraction(2)), ((Fraction(1), Fraction(1)),)), "rise from 0 to 1"),
        (lambda: PiecewiseLinear((Fraction(0), Fraction(1)), ((Fraction(3), Fraction(-1)),)), "negative density"),
    ],
)
def test_shapes_that_make_no_sense_are_refused(make, text):
    """The text names what was found and what was expected."""
    with pytest.raises(ValueError, match=text):
        make()


@pytest.mark.parametrize(
    ("columns", "keys", "text"),
    [
        (([1], [0], [0], [0]), {}, r"interval 0: found \[1, 0\]"),
        (([0], [0, 1], [0], [0]), {}, "found lengths 1, 2"),
        (([0], [0], [0], [STAMP_LIMIT + 1]), {}, "expected integers up to"),
        (([0.5], [1.0], [0], [0]), {}, "found float64"),
        (([0], [0], [0], [0]), {"key_a": ["x"]}, "on both or on none"),
    ],
)
def test_columns_that_make_no_sense_are_refused(columns, keys, text):
    """The text names what was found and what was expected."""
    with pytest.raises(ValueError, match=text):
        correlate_distributed(*columns, Condition("within", d=1, confidence=1), uniform(), uniform(), **keys)


def test_limits_beyond_the_stamps_are_refused():
    """A condition of 2^61 us would overflow."""
    with pytest.raises(ValueError, match="expected at most 2"):
        correlate_distributed([0], [0], [0], [0], Condition("within", d=1 << 61, confidence=1), uniform(), uniform())


def test_nothing_on_a_side_gives_nothing():
    """Empty sides, and sides whose intervals are all too long."""
    within = Condition("within", d=1, confidence=1)
    for a in ([], [0]):
        i, j, p = correlate_distributed(a, [x + 50 for x in a], [], [], within, uniform(), uniform(), probability=True)
        assert len(i) == len(j) == len(p) == 0
    assert Bounds(within, uniform(), uniform()).longest_us(uniform()) == pytest.approx(4, abs=0.01)
