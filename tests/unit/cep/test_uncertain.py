"""Single situations of uncertain time: ties, borders, scales, limits, causal order, and the numbers in the document."""

import functools
import math
import random
import re
from fractions import Fraction

import numpy as np
import pytest

from reference import cep_causal
from support.paths import REPOSITORY
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.cep.uncertain.chain_probability import NODES_MAX, STATES, probability, rules
from whenabouts_cloud.cep.uncertain.forbidden_events import Obstacles
from whenabouts_cloud.cep.uncertain.order_ideals import extensions, ideals
from whenabouts_cloud.cep.uncertain.possible import possible
from whenabouts_cloud.cep.uncertain.refine import OBSTACLES, Candidates, Counters, refine
from whenabouts_cloud.jit import compiled
from whenabouts_cloud.pattern.plan import Alternative, Negation, Plan

ENDLESS = 10**12


def chain(n, *gaps):
    return Alternative(
        (0,) * n, tuple(range(n)), tuple((1 << i) - 1 for i in range(n)), tuple(Negation(1, *g) for g in gaps)
    )


def unordered(n, *gaps):
    return Alternative((0,) * n, tuple(range(n)), (0,) * n, tuple(Negation(1, *g) for g in gaps))


def ask(mode, alternative, stamps, *negated, window=ENDLESS, strict=False, p=Fraction(1, 2), names=None, **options):
    """keep and probability of one candidate; `negated` holds a list of stamps for each negation."""
    plan = Plan((), (alternative,), len(stamps), window, strict, mode, p)
    a, b = np.array(stamps, np.int64).T
    lists = []
    for k, intervals in enumerate(negated):
        low, high = np.array(intervals, np.int64).reshape(-1, 2).T
        ids = names[k] if names else range(1000 * (k + 1), 1000 * (k + 1) + len(intervals))
        lists.append((np.array([0, len(intervals)]), low, high, np.array(ids, np.int64)))
    keep, value = refine(alternative, plan, Candidates(a[None], b[None], np.arange(len(a))[None], lists), **options)
    return bool(keep[0]), float(value[0])


@pytest.mark.parametrize(
    ("stamps", "window", "strict", "expected"),
    [
        ([(5, 5), (5, 5)], 9, False, False),
        ([(4, 5), (5, 5)], 9, False, True),
        ([(5, 5), (5, 6)], 9, False, True),
        ([(5, 6), (4, 5)], 9, False, False),
        ([(0, 1), (5, 6)], 4, False, True),  # only at 1 and 5
        ([(0, 1), (5, 6)], 4, True, False),  # 4 is the least distance, and not less than 4
        ([(0, 2), (5, 6)], 4, True, True),
        ([(5, 5), (5, 6)], 0, False, False),  # any distance but 0, the least is not attained
        ([(0, 1), (2, 5), (5, 6)], 4, False, True),
        ([(0, 1), (5, 5), (5, 6)], 4, False, False),  # c would have to be after 5
    ],
)
def test_possible_is_exact_at_ties_and_borders(stamps, window, strict, expected):
    """Strict order, closed stamps, closed or open window: touching ends decide."""
    assert ask("possible", chain(len(stamps)), stamps, window=window, strict=strict)[0] is expected


@pytest.mark.parametrize(
    ("gap", "x", "expected"),
    [
        # a [0,10]  e [5,15]
        ((1, 2), (3, 12), True),
        ((1, 2), (10, 10), True),  # a and x at 10
        ((0, 1), (-9, 12), True),
        ((3, 0), (14, 16), True),  # e at 14 or later, or x after a + 9
        ((3, 0), (15, 15), True),
        ((0, 0), (5, 9), True),  # x at 5 and e at 15
        ((0, 0), (6, 9), False),  # within 9 of both
    ],
)
def test_possible_looks_for_a_way_round_the_negated_event(gap, x, expected):
    """Inner, leading, trailing and all-round gaps with a window of 9."""
    assert ask("possible", chain(2, gap), [(0, 10), (5, 15)], [x], window=9)[0] is expected


def test_each_order_of_unordered_events_is_tried():
    """a and b in any order with x between a and b: passable only in the order that the other one excludes.

    a   [0 . . . 4]
    x        3 |           a, x, b is forbidden; b before a, or both on one side of x, are not
    b   [0 . . . 4]
    """
    alternative, none = unordered(2, (1, 2)), np.zeros(0, np.int64)
    a, b = np.array([[0, 3], [0, 4]]), np.array([[2, 4], [2, 4]])  # the second: a before 2, b at 4
    obstacles = Obstacles(np.array([0, 1, 2]), np.array([3, 3]), np.array([3, 3]), np.array([1, 1]))
    orders = extensions((0, 0))
    assert possible(ideals(alternative), orders, a, b, obstacles, ENDLESS, False).tolist() == [True, False]
    nothing = Obstacles(np.zeros(3, np.int64), none, none, none)
    assert possible(ideals(alternative), orders, a, b, nothing, 2, False).tolist() == [True, True]
    assert possible(ideals(alternative), orders, a, b, nothing, 2, True).tolist() == [True, False]


def test_the_far_border_of_a_strict_window_is_free():
    """A negated event exactly a window away is in the gap of `WITHIN 5` and outside that of `WITHIN < 5`.

    x | 2     a | 3   b [6 7]           and    a [3 4] b | 4..5   x | 8
    """
    for strict in (False, True):
        assert ask("possible", chain(2, (0, 3)), [(3, 3), (6, 7)], [(2, 2)], window=5, strict=strict)[0] is strict
        assert ask("possible", chain(2, (3, 0)), [(3, 4), (5, 5)], [(8, 8)], window=5, strict=strict)[0] is strict


def test_one_way_round_must_serve_all_negated_events():
    """Either can be avoided by itself, both together cannot: the first needs a late a, the second an early one.

    a   [0 . . . 4]
    b         [3 . . . 7]
    x1        3 |           before b only with a at 3 or later
    x2  | 2  (leading: x2 before a - and within the window)
    """
    alternative = chain(2, (1, 2), (0, 1))
    stamps = [(0, 4), (4, 7)]
    assert ask("possible", alternative, stamps, [(3, 3)], [])[0]
    assert ask("possible", alternative, stamps, [], [(2, 2)])[0]
    assert not ask("possible", alternative, stamps, [(3, 3)], [(2, 2)])[0]


def test_an_event_of_the_match_is_no_obstacle_to_it():
    """A reading of the match may satisfy the negated class; a reading of equal stamp but another number is in the way."""
    alternative, stamps = unordered(2, (0, 0)), [(0, 5), (3, 9)]
    assert ask("over", alternative, stamps, [(3, 9)], names=[[1]]) == (True, 1.0)
    assert ask("over", alternative, stamps, [(3, 9)], names=[[7]]) == (False, 0.0)
    assert ask("certain", alternative, stamps, [(3, 9)], names=[[1]])[0]


def test_an_event_forbidden_by_two_gaps_is_one_event():
    """SEQ(a, !x, b, !x, c) at 0, 10, 20 with x in [-10, 30]: half of it is outside both, not three quarters squared."""
    alternative = chain(3, (1, 6), (3, 4))
    point = [(0, 0), (10, 10), (20, 20)]
    assert ask("over", alternative, point, [(-10, 30)], [(-10, 30)], names=[[9], [9]], exact=True) == (True, 0.5)
    assert ask("over", alternative, point, [(-10, 30)], [(-10, 30)], names=[[8], [9]], exact=True)[1] == pytest.approx(
        0.5625
    )


def test_a_microsecond_beside_a_day_loses_no_digit():
    """P(a < b < c) with a anywhere in a day, b and c within three microseconds at noon of a day in 2026."""
    day, noon, epoch = 86_400_000_000, 43_200_000_000, 1_790_000_000_000_000
    stamps = [(epoch, epoch + day), (epoch + noon, epoch + noon + 2), (epoch + noon + 1, epoch + noon + 3)]
    # b before c with probability 7/8, then b is noon + 17/21 on average
    exact = Fraction(7, 8) * (noon + Fraction(17, 21)) / day
    assert ask("over", chain(3), stamps, exact=True, p=Fraction(1, 9))[1] == pytest.approx(float(exact), rel=1e-15)
    # a window of 2: a within 2 before c
    narrow = ask("over", chain(3), stamps, window=2, exact=True, p=Fraction(1, 10**13))[1]
    # E over b < c of max(0, b - max(a_low, c - 2)) = E[(b - c + 2)+ ; b < c], by unit cells of b - noon and c - noon - 1
    assert narrow == pytest.approx(float(_narrow() / day), rel=1e-12)


def _narrow() -> Fraction:
    """The mean of (2 - (c - b)) over b in [0, 2], c in [1, 3] where b < c < b + 2, by exact midpoint sums of a fine grid.

    With v = c - b in (0, 2): density of v is (v + 1)/4 up to 1 and (3 - v)/4 beyond.
    """
    rising = Fraction(1, 4) * (2 + Fraction(1, 2) - Fraction(1, 3))  # integral of (2 - v)(v + 1) over 0..1
    falling = Fraction(1, 4) * (6 - Fraction(15, 2) + Fraction(7, 3))  # of (2 - v)(3 - v) over 1..2
    return rising + falling


@pytest.mark.parametrize(
    ("alternative", "negated", "window"),
    [
        (chain(8, (3, 252), (15, 240)), [3, 3], 6000),
        (chain(8, (0, 255), (255, 0)), [2, 2], 6000),
        (chain(5, (1, 30), (3, 28), (7, 24), (15, 16)), [1, 1, 2, 1], ENDLESS),
        (unordered(5, (0, 0)), [2], 4000),
        (unordered(6, (3, 48)), [2], ENDLESS),
    ],
)
def test_long_patterns_agree_with_chance(alternative, negated, window):
    """Patterns too long for exact rationals: within 5 standard errors of a million drawn placements."""
    rng = np.random.default_rng(5)
    n, draws = len(alternative.before), 1_000_000
    a = np.arange(n) * 1000 + rng.integers(0, 500, n)
    stamps = [(int(v), int(v + rng.integers(1000, 4000))) for v in a]
    xs = [[(int(v), int(v) + 3000) for v in rng.integers(0, 1000 * n, count)] for count in negated]
    value = ask("over", alternative, stamps, *xs, window=window, p=Fraction(0), exact=True)[1]
    t = np.stack([rng.uniform(low, high, draws) for low, high in stamps])
    good = t.max(axis=0) - t.min(axis=0) <= window
    for i, mask in enumerate(alternative.before):
        for j in range(n):
            if mask >> j & 1:
                good &= t[j] < t[i]
    for negation, stamps_x in zip(alternative.negations, xs, strict=True):
        left, right = ([i for i in range(n) if mask >> i & 1] for mask in (negation.left, negation.right))
        begin = t[left].max(axis=0) if left else t.max(axis=0) - window
        end = t[right].min(axis=0) if right else t.min(axis=0) + window
        for low, high in stamps_x:
            x = rng.uniform(low, high, draws)
            good &= (x <= begin) | (x >= end)
    error = 5 * np.sqrt(max(value * (1 - value), 1 / draws) / draws)
    assert 0 < value < 1
    assert abs(good.mean() - value) < error


@pytest.mark.parametrize("n", [2, 5, 8])
def test_equal_stamps_have_the_textbook_probabilities(n):
    """The range of n uniform times is at most w with probability n w^(n-1) - (n-1) w^n; each order is equally likely.

    With k negated times in the same stamp all (n + k)! orders are equally likely. Those with the positives in order and none
    between the first two: take the two for one, then (n + k - 1)!/(n - 1)! orders have n - 1 of n + k - 1 in order.
    """
    w, orders = Fraction(4, 10), math.factorial(n)
    exact = n * w ** (n - 1) - (n - 1) * w**n
    stamps = [(-3, 7)] * n
    ask_over = functools.partial(ask, "over", p=Fraction(0), exact=True)
    assert ask_over(unordered(n), stamps, window=4)[1] == pytest.approx(float(exact), rel=1e-14)
    assert ask_over(chain(n), stamps, window=4)[1] == pytest.approx(float(exact / orders), rel=1e-14)
    assert ask_over(chain(n), stamps)[1] == pytest.approx(1 / orders, rel=1e-14)
    for k in (1, 4):
        among = Fraction(math.factorial(n + k - 1), math.factorial(n - 1) * math.factorial(n + k))
        assert ask_over(chain(n, (1, 2)), stamps, [(-3, 7)] * k)[1] == pytest.approx(float(among), rel=1e-13)


def test_unordered_points_at_the_same_time_are_counted_once():
    """AND(a, b, c) WITHIN 3 with a and b at 5, c anywhere in [0, 10]: 6 of 10."""
    result = ask("over", unordered(3), [(5, 5), (5, 5), (0, 10)], window=3, exact=True)
    assert result == (True, pytest.approx(0.6, rel=1e-14))


def test_too_many_undecided_obstacles_give_a_lower_bound_and_are_counted():
    """20 events that are in the gap with 1 % each: 0.99^20 is true, 8 are exact and 12 subtracted in full."""
    counters = Counters()
    xs = [(0, 10_000)] * 20
    stamps = [(0, 0), (100, 100)]
    keep, value = ask("over", chain(2, (1, 2)), stamps, xs, p=Fraction(802, 1000), counters=counters)
    assert value == pytest.approx(0.99**OBSTACLES - 0.01 * (20 - OBSTACLES))
    assert (keep, counters.candidates, counters.integrated, counters.limited) == (True, 1, 1, 1)
    assert not ask("over", chain(2, (1, 2)), stamps, xs, p=Fraction(81, 100))[0]  # true, but not shown


def test_more_states_than_the_limit_are_refused_not_computed():
    """Unordered positives with many events in the middle of a gap: nan, and refine leaves some of them out."""
    alternative, k = unordered(8, (1, 2)), 5
    assert len(ideals(alternative).sets) << k > STATES
    a, x = np.arange(8) * 100, np.arange(k) * 100
    everything = np.ones(k, np.int64)
    assert np.isnan(probability(ideals(alternative), a, a + 2000, x, x + 1500, everything, ENDLESS, False))
    counters = Counters()
    stamps = [(int(v), int(v) + 2000) for v in a]
    xs = [(int(v), int(v) + 1500) for v in x]
    value = ask("over", alternative, stamps, xs, p=Fraction(1, 2), counters=counters)[1]
    assert counters.limited == 1
    assert 0 <= value < 1


def test_points_are_never_integrated():
    """A thousand candidates of points, with negated points: bounds decide all."""
    rng = np.random.default_rng(1)
    t = rng.integers(0, 30, (1000, 3))
    x = rng.integers(0, 30, 1000)
    alternative, counters = chain(3, (1, 6)), Counters()
    negated = [(np.arange(1001), x, x, np.arange(1000) + 10_000)]
    ids = np.arange(3000).reshape(-1, 3)
    plan = Plan((), (alternative,), 3, 20, mode="over", probability=Fraction(9, 10))
    keep, value = refine(alternative, plan, Candidates(t, t, ids, negated), counters=counters)
    order = (t[:, 0] < t[:, 1]) & (t[:, 1] < t[:, 2]) & (t[:, 2] - t[:, 0] <= 20)
    expected = order & ~((t[:, 0] < x) & (x < t[:, 1]))
    np.testing.assert_array_equal(keep, expected)
    np.testing.assert_array_equal(value, expected.astype(float))
    assert counters.integrated == 0


def test_no_candidates_are_no_matches():
    """Empty columns go through every mode."""
    none, alternative = np.zeros((0, 2), np.int64), chain(2, (1, 2))
    negated = [(np.zeros(1, np.int64), *(np.zeros(0, np.int64),) * 3)]
    clocks = Clocks(np.zeros((0, 1), np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    for mode in ("certain", "possible", "over", "causal"):
        plan = Plan((), (alternative,), 2, 5, mode=mode)
        keep, value = refine(alternative, plan, Candidates(none, none, none, negated), clocks)
        assert (keep.shape, value.shape) == ((0,), (0,))


def test_too_many_orders_are_refused_with_what_to_do():
    """AND of 11 and of 9 exceed the limits of order ideals and of linear extensions."""
    with pytest.raises(ValueError, match="put some of an AND in a SEQ"):
        ideals(unordered(11))
    with pytest.raises(ValueError, match="put some of an AND in a SEQ"):
        extensions((0,) * 9)
    with pytest.raises(ValueError, match="at most 40"):
        probability(ideals(chain(41)), np.arange(41), np.arange(41) + 2, *[np.zeros(0, np.int64)] * 3, 99, False)


@pytest.mark.parametrize("q", [1, 2, 7, 20, NODES_MAX])
def test_rules_integrate_powers_exactly(q):
    """Over the interval up to degree 2q - 1, up to each node up to degree q - 1."""
    nodes, weights, upto = (v[q] for v in rules())
    for power in range(2 * q):
        assert weights[:q] @ nodes[:q] ** power == pytest.approx(1 / (power + 1), rel=1e-13)
    for power in range(q):
        expected = nodes[:q] ** (power + 1) / (power + 1)
        np.testing.assert_allclose(upto[:q, :q] @ nodes[:q] ** power, expected, atol=1e-15)


def test_compiled_functions_keep_their_meaning():
    """The decorator gives machine code that answers like the function."""
    assert compiled(lambda a, b: a * b + 1)(6, 7) == 43


@pytest.mark.parametrize("seed", range(20))
def test_causal_order_is_what_gateways_could_have_known(seed):
    """All pairs and all gaps of a random computation, against sets of facts handed on with messages."""
    events = cep_causal.computation(random.Random(seed), gateways=3, steps=60)
    clocks = Clocks(
        *(np.array(v, np.int64) for v in ([e.vector for e in events], [e.gateway for e in events], range(len(events))))
    )
    known = np.array([[cep_causal.before(x, y) for y in events] for x in events])
    count = len(events)
    a, b = (v.ravel() for v in np.meshgrid(np.arange(count), np.arange(count), indexing="ij"))
    ids = np.stack([a, b], axis=1)
    alternative = chain(2, (1, 2), (0, 1))
    zeros = np.zeros((len(ids), 2), np.int64)
    every = np.tile(np.arange(count), len(ids))
    no_time = np.zeros(len(every), np.int64)
    inner = (np.arange(len(ids) + 1) * count, no_time, no_time, every)
    leading = (np.zeros(len(ids) + 1, np.int64), *(np.zeros(0, np.int64),) * 3)
    plan = Plan((), (alternative,), 2, 10, mode="causal")
    keep, _ = refine(alternative, plan, Candidates(zeros, zeros, ids, [inner, leading]), clocks)
    between = (known[:, :, None] & known[None, :, :]).any(axis=1)
    np.testing.assert_array_equal(keep.reshape(count, count), known & ~between)
    keep, _ = refine(alternative, plan, Candidates(zeros, zeros, ids, [leading, inner]), clocks)
    np.testing.assert_array_equal(keep.reshape(count, count), known & ~known.any(axis=0)[:, None])


def test_causal_window_and_gaps_reach_as_far_as_stamps_allow():
    """Within a window of 5, an earlier negated event counts unless it is certainly out of reach.

    x   [0 1]                 a   [8 . . . . . . . 16]  b [20 21]
    """
    clocks = Clocks(np.array([[0, 0], [1, 0], [2, 0]]), np.zeros(3, np.int64), np.arange(3))
    a, b, ids = np.array([[8, 20]]), np.array([[16, 21]]), np.array([[1, 2]])

    def keep(alternative, window, strict, x):
        plan = Plan((), (alternative,), 2, window, strict, "causal")
        lists = [(np.array([0, 1]), np.array([x[0]]), np.array([x[1]]), np.array([0]))] if x else []
        return bool(refine(alternative, plan, Candidates(a, b, ids, lists), clocks)[0][0])

    assert keep(chain(2), 4, False, None)
    assert not keep(chain(2), 4, True, None)
    assert not keep(chain(2), 3, False, None)
    assert keep(chain(2, (0, 3)), 5, False, (0, 14))
    assert not keep(chain(2, (0, 3)), 5, False, (0, 15))
    assert keep(chain(2, (0, 3)), 5, True, (0, 15))


def test_causal_without_clocks_is_refused():
    """The mode cannot be decided by stamps."""
    with pytest.raises(ValueError, match="vector clocks"):
        ask("causal", chain(2), [(0, 1), (2, 3)])


def test_the_document_gives_the_true_probabilities():
    """Each row of its table is computed again."""
    text = (REPOSITORY / "docs" / "uncertain-time.md").read_text()
    rows = re.findall(r"^\| (a `\[.*) \| `(\w+)\((.*)\)(?: WITHIN (\d+))?` \| ([\d.]+) \|$", text, re.M)
    assert len(rows) == 5
    for stamps, kind, elements, window, emitted in rows:
        at = {name: (int(low), int(high)) for name, low, high in re.findall(r"(\w) `\[(\d+), (\d+)\]`", stamps)}
        names = [e.strip() for e in elements.split(",")]
        positives = [at[e] for e in names if e[0] != "!"]
        negated = [at[e[1]] for e in names if e[0] == "!"]
        alternative = (chain if kind == "SEQ" else unordered)(len(positives), *[(1, 2)] * len(negated))
        result = ask(
            "over",
            alternative,
            positives,
            *([x] for x in negated),
            window=int(window or ENDLESS),
            p=Fraction(0),
            exact=True,
        )
        assert f"{result[1]:.3f}" == emitted
