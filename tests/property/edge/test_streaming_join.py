"""The streaming join against brute force in exact rationals: every prefix of every arrival order, purging, limits."""

from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from property.strategies import EPOCH_US
from reference.predicates import probability
from support.search import examples
from whenabouts_protocol.streaming_join import StreamingJoin, isqrt, quantile

THRESHOLDS = [(1, 20), (3, 10), (1, 2), (4, 5), (99, 100), (1, 1)]


def is_pair(a, b, lo, hi, p, q):
    """By the integral of the definition."""
    return probability(a, b, lo, hi) >= Fraction(p, q)


@st.composite
def conditions(draw):
    """lo, hi, p, q: any distance, often smaller than the lengths, often one-sided or off centre."""
    lo = draw(st.integers(-25, 25))
    return lo, lo + draw(st.one_of(st.just(0), st.integers(0, 60))), *draw(st.sampled_from(THRESHOLDS))


@st.composite
def arrivals(draw):
    """(side, t_min, t_max, key) in any order; small numbers, so that ties, points and repeats are frequent."""
    origin = draw(st.sampled_from([0, EPOCH_US, -EPOCH_US]))
    longest = draw(st.sampled_from([0, 3, 20, 70]))
    one = st.tuples(st.integers(0, 1), st.integers(0, 60), st.integers(0, longest), st.sampled_from(["x", "y", None]))
    return [(side, origin + at, origin + at + w, key) for side, at, w, key in draw(st.lists(one, max_size=24))]


@settings(max_examples=examples(400), deadline=None)
@given(conditions(), arrivals(), st.integers(0, 80), st.integers(0, 20), st.booleans())
@example((-10, 10, 1, 5), [(0, 0, 100, "x"), (1, 40, 41, "x")], 0, 0, False)
@example((0, 0, 1, 1), [(0, 5, 5, "x"), (1, 5, 5, "x"), (1, 5, 6, "x")], 0, 0, True)
def test_every_prefix_gives_the_pairs_of_the_definition(condition, arrived, pi, rho, by_key):
    """Each pair once, with the later of its arrivals, whatever the order and the stated lengths."""
    lo, hi, p, q = condition
    join = StreamingJoin(lo, hi, p, q, *2 * [(rho, max(pi, rho))], by_key)
    seen = ([], [])
    for n, (side, t_min, t_max, key) in enumerate(arrived):
        pairs = join.push(side, n, t_min, t_max, key)
        one = (t_min, t_max)
        expected = [
            m
            for m, other, other_key in seen[1 - side]
            if (not by_key or (key is not None and key == other_key))
            and is_pair(*((one, other) if side == 0 else (other, one)), lo, hi, p, q)
        ]
        assert sorted(pairs) == expected
        seen[side].append((n, one, key))
    assert join.kept + join.too_long + join.keyless == len(arrived)


@st.composite
def watermarked(draw):
    """Arrivals within the stated delay and length: after each one, both sides' frontiers."""
    pi = draw(st.sampled_from([0, 5, 30]))
    delays = draw(st.tuples(st.sampled_from([0, 10, 40]), st.sampled_from([0, 10, 40])))
    events = []
    for _ in range(draw(st.integers(0, 80))):
        side, t_max = draw(st.integers(0, 1)), draw(st.integers(0, 600))
        events.append((t_max + draw(st.integers(0, delays[side])), side, t_max - draw(st.integers(0, pi)), t_max))
    return pi, delays, sorted(events)


@settings(max_examples=examples(200), deadline=None)
@given(conditions(), watermarked())
def test_forgetting_never_loses_a_pair(condition, run):
    """With frontiers as late as the delays allow, the pairs are those of the definition."""
    lo, hi, p, q = condition
    pi, delays, events = run
    join = StreamingJoin(lo, hi, p, q, (0, pi), (0, pi))
    pairs, expected, sides = set(), set(), ([], [])
    for n, (now, side, t_min, t_max) in enumerate(events):
        join.advance(now - delays[0], now - delays[1])
        pairs |= {(n, m) if side == 0 else (m, n) for m in join.push(side, n, t_min, t_max)}
        for m, other in sides[1 - side]:
            one = (t_min, t_max)
            if is_pair(*((one, other) if side == 0 else (other, one)), lo, hi, p, q):
                expected.add((n, m) if side == 0 else (m, n))
        sides[side].append((n, (t_min, t_max)))
    assert pairs == expected
    assert join.late == join.beyond_length == join.overflow == 0
    join.advance(10_000, 10_000)
    assert join.kept == 0


@pytest.mark.parametrize("by_key", [False, True])
def test_what_is_kept_stays_near_what_can_still_match(by_key):
    """A long run in order of time keeps the last window and at most a chunk or a third more, keys that are over among it."""
    join = StreamingJoin(-100, 100, 4, 5, (0, 10), (0, 10), by_key=by_key)
    most = 0
    for n in range(20_000):
        join.push(n % 2, n, n, n + 10, n // 500)
        join.advance(n + 10, n + 10)
        most = max(most, join.kept)
    assert most < 2 * (130 + 64)
    assert len(join._groups) <= 3


def test_a_full_buffer_forgets_the_oldest_and_counts():
    """Beyond the limit a quarter goes, oldest first, over all keys; what is left still matches."""
    join = StreamingJoin(-1000, 1000, 1, 1, (0, 0), (0, 0), by_key=True, limit=40)
    for n in range(200):
        join.push(0, n, n, n, n % 50)
        assert join.kept <= 40
    assert join.overflow == 200 - join.kept
    assert join.push(1, "late", 170, 170, 149) == []
    assert join.push(1, "here", 199, 199, 199 % 50) == [199]


def test_a_length_beyond_the_stated_one_is_matched_and_counted():
    """The stated lengths are 10 to 20; 0, 35 and one too long for any pair arrive."""
    join = StreamingJoin(-50, 50, 1, 1, (10, 20), (10, 20))
    join.push(0, "a", 0, 20)
    assert join.push(1, "point", 10, 10) == ["a"]
    assert join.push(1, "long", 0, 35) == ["a"]
    assert join.push(1, "endless", 0, 101) == []
    assert (join.beyond_length, join.too_long, join.kept) == (2, 1, 3)


def test_readings_before_the_frontier_join_what_is_left():
    """Late ones are counted and matched."""
    join = StreamingJoin(-50, 50, 1, 1, (0, 10), (0, 10))
    join.push(0, "a", 100, 110)
    join.advance(130, 130)
    assert join.push(1, "b", 100, 110) == ["a"]
    assert join.late == 1


@pytest.mark.parametrize(
    "wrong",
    [(1, 0, 1, 2, (0, 5)), (0, 1, 0, 2, (0, 5)), (0, 1, 3, 2, (0, 5)), (0, 1, 1, 2, (-1, 5)), (0, 1, 1, 2, (6, 5))],
)
def test_parameters_that_make_no_sense_are_refused(wrong):
    """Limits in the wrong order, confidence outside (0, 1], lengths below 0 or in the wrong order."""
    with pytest.raises(ValueError, match="expected lo <= hi"):
        StreamingJoin(*wrong, (0, 5))


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from(THRESHOLDS))
def test_the_quantile_is_the_least_whole_number_that_reaches_the_threshold(w1, w2, threshold):
    """Compared with the distribution itself: P(Y - X <= d) for X and Y of these lengths."""
    p, q = threshold
    reached = [s for s in range(w1 + w2 + 1) if is_pair((-w1, 0), (0, w2), -(10**6), s, p, q)]
    assert quantile(w1, w2, p, q) == reached[0]


@given(st.integers(0, 1 << 80))
def test_the_integer_root_is_the_floor_of_the_root(n):
    """Also where a double no longer holds n."""
    assert isqrt(n) ** 2 <= n < (isqrt(n) + 1) ** 2
