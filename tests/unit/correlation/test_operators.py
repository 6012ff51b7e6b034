"""Operators one situation at a time: look-up at its traps, heartbeats, limits of buffers, keys, response times, refusals."""

import random

import numpy as np
import pytest

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators import OPERATORS, Counters, operator
from whenabouts_cloud.research.operators.base import StreamBounds
from whenabouts_cloud.research.operators.block_buffer import Columns
from whenabouts_cloud.research.operators.block_kernels import Arrivals, Bands, Bases, Targets, compiled
from whenabouts_cloud.research.operators.block_operator import BlockOperator
from whenabouts_cloud.research.operators.eager import Eager
from whenabouts_cloud.research.operators.keyed import Keyed
from whenabouts_cloud.research.operators.simple import Simple
from whenabouts_cloud.research.operators.tuple_buffer import TupleBuffer
from whenabouts_cloud.research.operators.variants import Banded, Lazy, Lookup, SimpleSort

NAMES = list(OPERATORS)
LAZY = ("lazy", "lookup")


def within(d, ct="0.8"):
    return Condition("within", d=d, confidence=ct)


def make(name, condition, *, delay=0, pi=20, rho=0, block=None, **more):
    lazy = {"block": block or (None if "every" in more else 2)} if name in LAZY else {}
    both = {"delay_a": delay, "delay_b": delay, "pi_a": pi, "pi_b": pi, "rho_a": rho, "rho_b": rho}
    return operator(name, condition, **{**both, **lazy, **more})


def crowd(seed, count, *, length, span):
    """Two streams of intervals that crowd together, as (index, t_min, t_max) a side."""
    rng = random.Random(seed)
    sides = []
    for _ in "ab":
        ends = [rng.randrange(span) for _ in range(count)]
        sides.append([(i, t - rng.randrange(length + 1), t) for i, t in enumerate(ends)])
    return sides


@pytest.mark.parametrize("ct", ["0.1", "0.3", "0.5", "0.8", "1"])
@pytest.mark.parametrize(("d", "length"), [(1000, 300), (300, 300), (100, 300), (7, 300), (0, 3)])
def test_look_up_reuses_only_what_holds(ct, d, length):
    """Whole blocks of crowded tuples: equal to the exact test of every pair, for d far above and below the lengths."""
    condition = within(d, ct)
    a, b = crowd(f"{ct}{d}", 120, length=length, span=4 * max(d, 100))
    op = make("lookup", condition, delay=10**6, pi=length, block=1000)
    op.push("b", *zip(*b, strict=True), 0)
    assert op.flush() == []
    op.push("a", *zip(*a, strict=True), 0)
    pairs = op.flush()
    expected = {(i, j) for i, *x in a for j, *y in b if condition.holds(*x, *y)}
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == expected
    counts = op.counters
    assert counts.lookups == counts.hits + counts.evaluations
    assert counts.blocks == 2


def test_look_up_is_used_and_saves_evaluations():
    """With many bases a target the hit ratio is that of the papers' range, and lazy evaluates what is not hit."""
    a, b = crowd(5, 400, length=200, span=2000)
    counts = {}
    for name in LAZY:
        op = make(name, within(500), delay=10**6, pi=200, block=1000)
        for side, rows in (("b", b), ("a", a)):
            op.push(side, *zip(*rows, strict=True), 0)
            op.flush()
        counts[name] = op.counters
    assert counts["lookup"].pairs == counts["lazy"].pairs
    assert counts["lookup"].lookups == counts["lazy"].evaluations
    assert 0.2 < counts["lookup"].hit_ratio < 0.8


def test_the_right_side_is_not_reused_by_the_printed_test():
    """min(n) = 863 <= min(k) = 1118 would take over prob(k, e) = .92 for the pair (n, e), whose probability is .09."""
    #  n 863|-------------------|1139      e 2101|--|2127, walked after k 1118|-|1138 in the right region
    op = make("lookup", within(1000), delay=10**6, pi=300, rho=20, block=1000)
    op.push("b", 0, 2101, 2127, 0)
    op.flush()
    op.push("a", [0, 1], [1118, 863], [1138, 1139], 0)
    assert op.flush() == [(0, 0)]


def test_the_left_side_is_not_reused_without_the_guard():
    """d 10: e = (100, 101), k = (100, 104) is certain, n = (0, 104) has .13 although it is smaller at both ends."""
    op = make("lookup", within(10), delay=10**6, pi=104, block=1000)
    op.push("b", 0, 100, 101, 0)
    op.flush()
    op.push("a", [0, 1], [100, 0], [104, 104], 0)
    assert op.flush() == [(0, 0)]


@pytest.mark.parametrize("name", NAMES)
def test_a_silent_stream_is_moved_by_heartbeats(name):
    """Only A sends; with the clock going on its buffer stays bounded, and what a late B could need is still there."""
    op = make(name, within(50), delay=10, pi=4, block=5)
    for n in range(2000):
        op.push("a", n, 10 * n, 10 * n + 4, 10 * n + 4)
    assert op.counters.buffer_a <= 20
    op.advance(30_000)
    op.flush()
    op.advance(30_001)
    assert op.counters.buffer_a == 0
    assert op.counters.purged_a == 2000


@pytest.mark.parametrize("name", NAMES)
def test_a_clock_that_stands_still_drops_nothing(name):
    """Heartbeats of the same time, however many."""
    op = make(name, within(50), delay=10, pi=4, block=5)
    op.push("a", 1, 0, 4, 4)
    for _ in range(3):
        op.advance(4)
    op.push("b", 2, 50, 50, 50)
    assert op.counters.pairs + len(op.flush()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_full_buffer_drops_its_oldest_and_counts_them(name):
    """Room for three a side: the fourth pushes out the first."""
    op = make(name, within(1000, "0.5"), delay=100, pi=4, block=1, max_buffer=3)
    for n in range(5):
        op.push("a", n, n, n, 10)
    pairs = op.push("b", 0, 2, 2, 10)
    assert sorted(pairs + op.flush()) == [(2, 0), (3, 0), (4, 0)]
    assert op.counters.overflow == 2
    assert op.counters.buffer_a_max <= 5


@pytest.mark.parametrize("name", NAMES)
def test_a_late_tuple_joins_the_rows_held_and_goes_to_the_side_output(name):
    """Arrived 30 after its maximum with a delay of 5: joined with the rows held, counted, reported once."""
    op = make(name, within(100), delay=5, pi=4, block=1)
    op.push("a", 1, 0, 4, 4)
    pairs = op.push("b", 9, 6, 10, 40)
    assert pairs + op.flush() == [(1, 9)]
    assert [(x.side, x.index, x.late_by) for x in op.take_late()] == [("b", 9, 25)]
    assert op.take_late() == []
    assert op.counters.late == 1


@pytest.mark.parametrize("name", NAMES)
def test_only_equal_keys_pair_up_and_empty_keys_are_forgotten(name):
    """Tuples of the same time with two keys; long after, no key is held."""
    op = make(name, within(10), delay=0, pi=4, block=1, key=True)
    pairs = op.push("a", [0, 1], [0, 0], [4, 4], 4, ["x", "y"])
    pairs += op.push("b", 5, 4, 4, 4, "x")
    pairs += op.push("b", 6, 4, 4, 4, None)
    assert sorted(pairs + op.flush()) == [(0, 5)]
    assert op.keys_held == 3
    op.advance(1000)
    assert op.keys_held == 0
    assert op.counters.tuples == 4
    assert op.counters.pairs == 1


def test_response_times_are_those_of_both_papers():
    """a ends at 10 and comes at 12, b ends at 20 and comes at 25; a heartbeat at 40 evaluates both."""
    #  a [0 10]-12      b [20]----25         40
    for name, at in (("simple", 25), ("eager", 25), ("banded", 25), ("lazy", 40), ("lookup", 40)):
        op = make(name, within(50), delay=10, pi=10, every=20) if name in LAZY else make(name, within(50), delay=10)
        op.push("a", 0, 0, 10, 12)
        op.push("b", 0, 20, 20, 25)
        op.advance(40)
        assert op.counters.pairs == 1
        assert op.counters.response_2009 == at - 25, name
        assert op.counters.response_2010 == at - 20, name


@pytest.mark.parametrize("name", ["eager", "simple_sort"])
def test_response_times_count_the_later_maximum_of_the_two(name):
    """The target ends after the base that completes the pair, in the sure and in the probe regions."""
    rng = random.Random(name)
    op, expected, seen = make(name, within(60), delay=100, pi=20), 0, {"a": [], "b": []}
    for n in range(300):
        side = rng.choice("ab")
        t_max = 3 * n + rng.randrange(100)
        now = 3 * n + 100
        pairs = op.push(side, len(seen[side]), t_max - rng.randrange(21), t_max, now)
        seen[side].append(t_max)
        expected += sum(now - max(seen["a"][i], seen["b"][j]) for i, j in pairs)
    assert expected > 0
    assert op.counters.response_2010_sum == expected


@pytest.mark.parametrize("name", NAMES)
def test_intervals_too_long_to_match_are_not_held(name):
    """Longer than (hi - lo)/ct: within 10 at 0.8 is 25."""
    op = make(name, within(10), delay=0, pi=1000, block=1)
    assert op.push("a", 0, 0, 26, 26) == []
    assert op.counters.unmatchable == 1
    assert op.counters.buffer_a == 0
    op.push("a", 1, 1, 26, 26)
    assert op.counters.buffer_a == 1


@pytest.mark.parametrize("name", NAMES)
def test_an_interval_that_ends_before_it_begins_changes_nothing(name):
    """Refused with the interval found, as a single tuple or anywhere in a block."""
    op = make(name, within(10))
    with pytest.raises(ValueError, match=r"found \[5, 4\], expected the minimum first"):
        op.push("a", 0, 5, 4, 4)
    with pytest.raises(ValueError, match=r"found \[5, 4\], expected the minimum first"):
        op.push("a", [0, 1], [0, 5], [4, 4], 4)
    if name in (*LAZY, "banded"):
        with pytest.raises(ValueError, match="found float64 values, expected whole numbers"):
            op.push("a", [0, 1], [0.5, 1.5], [4, 4], 4)
    with pytest.raises(ValueError, match="side: found 'c'"):
        op.push("c", 0, 0, 4, 4)
    assert op.counters == Counters()


@pytest.mark.parametrize("name", ["lazy", "lookup", "banded"])
def test_stamps_out_of_reach_are_refused_before_anything_happens(name):
    """Block operators count in int64 from the first stamp; eager takes any."""
    op = make(name, within(10))
    op.push("a", 0, 0, 0, 0)
    before = op.counters
    for bad in ((1, 1 << 60, 1 << 60, 0), ([1], [1 << 60], [1 << 60], 0)):
        with pytest.raises(ValueError, match="within 2\\^58 of the first, 0; eager has no such bound"):
            op.push("a", *bad)
    assert op.counters == before
    eager = make("eager", within(10))
    eager.push("a", 0, 0, 0, 0)
    assert eager.push("a", 1, 1 << 90, 1 << 90, 1 << 90) == []


@pytest.mark.parametrize("name", NAMES)
def test_nanosecond_epochs_and_ties_are_exact(name):
    """ct 4/5 on a tie at stamps of 1.8e18: one tick of distance more is no result."""
    t = 1_790_000_000_000_000_000
    d, w = (
        500_000_000,
        300_000_000,
    )  # K = 2d + 2w - 2 s*; s* at ct .8 with equal lengths: no square, so ct .5 and 1 as well
    for ct, gap in (("0.5", d), ("1", d - w)):
        for more, count in ((0, 1), (1, 0)):
            op = make(name, within(d, ct), delay=0, pi=w, rho=w, block=1)
            pairs = op.push("a", 0, t, t + w, t + w)
            pairs += op.push("b", 0, t + gap + more, t + gap + more + w, t + 2 * d + w)
            assert len(pairs + op.flush()) == count


@pytest.mark.parametrize("name", ["lazy", "lookup"])
def test_a_block_is_evaluated_by_count_by_time_or_by_both(name):
    """Each pair comes out when its block is due, not before."""
    by_count = make(name, within(10), delay=100, pi=0, block=2)
    assert by_count.push("a", 0, 0, 0, 0) + by_count.push("b", 0, 0, 0, 1) + by_count.push("b", 1, 1, 1, 50) == []
    assert sorted(by_count.push("a", 1, 2, 2, 60)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    by_time = make(name, within(10), delay=100, pi=0, every=30)
    assert by_time.push("a", 0, 0, 0, 0) + by_time.push("b", 0, 0, 0, 29) == []
    assert by_time.advance(30) == [(0, 0)]
    both = make(name, within(10), delay=100, pi=0, block=3, every=30)
    assert both.push("a", 0, 0, 0, 0) + both.push("b", 0, 0, 0, 29) == []
    assert both.push("b", [1, 2], [1, 2], [1, 2], 29) == []
    assert sorted(both.push("a", [1, 2], [1, 2], [1, 2], 29)) == [(i, j) for i in range(3) for j in range(3)]


def test_arrays_come_back_as_arrays():
    """Every operator returns the pairs of the list as two int64 columns."""
    a, b = crowd(3, 50, length=20, span=300)
    results = set()
    for name in NAMES:
        op = make(name, within(60), delay=1000, pi=20, block=50)
        op.push_arrays("a", *(np.array(x) for x in zip(*a, strict=True)), 300)
        i, j = op.push_arrays("b", *(np.array(x) for x in zip(*b, strict=True)), 300)
        assert i.dtype == j.dtype == np.int64
        results.add(frozenset(zip(i.tolist(), j.tolist(), strict=True)))
    assert len(results) == 1
    assert next(iter(results))


def test_partners_are_the_other_half_of_the_pairs():
    """`partners`, the short form of the operator eager."""
    one, other = make("eager", within(10)), make("eager", within(10))
    for op in (one, other):
        op.push("a", [3, 4], [0, 1], [2, 2], 2)
    assert one.partners("b", 8, 5, 5, 5) == [3, 4]
    assert other.push("b", 8, 5, 5, 5) == [(3, 8), (4, 8)]


def test_columns_stay_in_order_through_growth_and_dropping():
    """Blocks that overlap what is held, by the thousand."""
    rng = random.Random(1)
    held, expected = Columns(), []
    for n in range(200):
        keys = sorted(10 * n + rng.randrange(60) for _ in range(rng.randrange(12)))
        held.merge(np.array([[k] * 5 for k in keys], np.int64).reshape(-1, 5).T)
        expected = sorted([*expected, *keys])
        bound = 10 * n - 300
        assert held.drop_below(bound) == sum(k < bound for k in expected)
        expected = [k for k in expected if k >= bound]
        assert held.rows[0].tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("hasty", {}), "operator: found 'hasty', expected one of simple, "),
        (("eager", {"block": 5}), "eager: found block or every"),
        (("lazy", {"block": 0}), "lazy: found block 0"),
        (("eager", {"rho_a": 5, "pi_a": 4}), "lengths: found rho 5 and pi 4"),
        (("eager", {"max_buffer": 0}), "max_buffer: found 0"),
    ],
)
def test_wrong_arguments_are_refused_with_what_was_expected(arguments, text):
    """The name, and what contradicts it."""
    name, more = arguments
    with pytest.raises(ValueError, match=text):
        operator(name, within(10), **{"delay_a": 0, "delay_b": 0, **more})


def test_a_one_sided_condition_without_a_window_is_refused_with_the_reason():
    """Every older tuple would match forever; with a window the buffers of both sides are emptied."""
    with pytest.raises(ValueError, match="match for ever"):
        Condition("deadline", d=10, confidence="0.8")
    for kind in ("deadline", "delay"):
        for name in NAMES:
            op = make(name, Condition(kind, d=10, window=50, confidence="0.8"), delay=5, pi=2, block=1)
            for n in range(300):
                op.push("a", n, 5 * n, 5 * n + 2, 5 * n + 2)
                op.push("b", n, 5 * n, 5 * n + 1, 5 * n + 2)
            assert 0 < op.counters.pairs < 300 * 15
            assert max(op.counters.buffer_a_max, op.counters.buffer_b_max) < 30


def test_names_lead_to_the_operators_of_their_files():
    """One file each; the block operators share their machinery, and a key wraps any of them."""
    kinds = {
        "simple": Simple,
        "simple_sort": SimpleSort,
        "eager": Eager,
        "lazy": Lazy,
        "lookup": Lookup,
        "banded": Banded,
    }
    assert kinds == OPERATORS
    assert {n for n, kind in kinds.items() if issubclass(kind, BlockOperator)} == {"lazy", "lookup", "banded"}
    assert all(type(make(name, within(10))) is kind for name, kind in kinds.items())
    assert isinstance(make("eager", within(10), key=True), Keyed)


def test_a_lazy_operator_that_is_never_due_is_refused():
    """Neither a count nor a time."""
    with pytest.raises(ValueError, match="lazy: found neither block nor every"):
        Lazy(within(10), StreamBounds(0, 1, 0), StreamBounds(0, 1, 0), block=None, every=None)


@pytest.mark.parametrize("name", ["match_block", "match_block_lookup"])
def test_a_kernel_leaves_ties_to_the_exact_test(name):
    """A point and an interval of 10 at d 10, ct 1/2: middle 10 away is a tie, 9 a match, 11 none; all are probed."""
    one, rows = np.array([0]), np.array([[-100, 1, 0, 100]])
    middles = np.array([18, 20, 22])  # doubled, of targets of length 10
    lengths = np.array([10, 10, 10])
    targets = Targets(middles // 2 + 5, middles, lengths)
    result = compiled(name)(Bases(one, one, one), targets, Bands(rows, 0, 1), 20, 0.5)
    i, j, near_i, near_j, evaluations, sure = result[:6]
    assert (i.tolist(), j.tolist()) == ([0], [0])
    assert (near_i.tolist(), near_j.tolist()) == ([0], [1])
    assert (evaluations, sure) == (3, 0)


def test_the_extent_of_a_block_is_that_of_its_intervals():
    """Shortest, longest, least minimum, least and greatest maximum, for blocks of one and of many."""
    rng = np.random.default_rng(1)
    for count in (1, 2, 50):
        low = rng.integers(-1000, 1000, count)
        high = low + rng.integers(-5, 300, count)  # an interval that ends before it begins is seen as well
        rows = np.stack([low, high, low, low])
        expected = ((high - low).min(), (high - low).max(), low.min(), high.min(), high.max())
        assert compiled("extent")(rows) == expected


def test_the_waits_of_pairs_end_now_and_begin_with_the_later_of_two():
    """Base [2, 6] that came at 7; targets [0, 10] at 11 and [1, 3] at 9; now is 20."""
    #  by arrival: 20 - 11 and 20 - 9; by maximum: 20 - 10 and 20 - 6
    one = Arrivals(*(np.array([x]) for x in (7, 8, 4)))
    two = Arrivals(*(np.array(x) for x in ([11, 9], [10, 4], [10, 2])))
    assert compiled("waits")(20, one, two, np.array([0, 0]), np.array([0, 1])) == (9 + 11, 10 + 14)
    assert compiled("waits")(20, one, two, np.empty(0, np.int64), np.empty(0, np.int64)) == (0, 0)


def test_a_buffer_drops_from_its_front_and_gives_the_room_back():
    """Unsorted it stops at the first that is needed; long after, dropped tuples are gone from the lists."""
    held = TupleBuffer()
    for n, t_max in enumerate([1, 9, 2, 3]):
        held.append(n, 0, t_max)
    assert held.drop_below(5) == 1
    assert len(held) == 3
    held = TupleBuffer()
    for n in range(2000):
        held.insert(n, n, n + n % 2)
    assert held.t_max == sorted(held.t_max)
    assert held.drop_below(1900) == 1899
    assert len(held.t_max) == len(held) == 101
    assert (held.index[0], held.t_max[0]) == (1899, 1900)
