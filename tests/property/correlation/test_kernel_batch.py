"""The batch interface gives exactly the pairs of the definition: every predicate, both engines, any kind of input."""

import contextlib
import itertools
import tracemalloc
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.predicates import limits, pairs
from support.search import examples
from whenabouts_cloud.correlation import Condition, correlate, count_pairs
from whenabouts_cloud.correlation.batch import input, ordered_numba, slabs
from whenabouts_cloud.correlation.batch.api import correlate_chunks, correlate_narrow, correlate_ranges
from whenabouts_cloud.correlation.batch.input import Numbered, codes
from whenabouts_cloud.correlation.batch.join import Given

EPOCH_US = 1_795_000_000_000_000
ENGINES = ("numpy", "numba")

engines = st.sampled_from(ENGINES)
grids = st.sampled_from([1, 7, 1000])  # one for a whole example: coarse grids make ties the ordinary case
offsets = st.sampled_from([0, EPOCH_US, EPOCH_US * 1000, -EPOCH_US, (1 << 62) - 10**6, -(1 << 63), (1 << 63) - 10**6])
thresholds = st.sampled_from([Fraction(x) for x in ("1", "0.8", "0.5", "0.9", "0.05", "0.999", "0.333", "0.000001")])


@st.composite
def sides(draw, max_size=12):
    """Rows of one side as (key, (t_min, t_max)) in units of the grid."""
    lengths = st.sampled_from([0, 0, 1, 2, 5, 10, 30, 200])
    rows = draw(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 60), lengths), max_size=max_size))
    return [(key, (t, t + length)) for key, t, length in rows]


@st.composite
def predicates(draw):
    """(kind, its limits in units of the grid); d below, between and above the lengths."""
    kind = draw(st.sampled_from(["within", "between", "deadline", "delay"]))
    near, far = sorted(draw(st.tuples(st.integers(-70, 70), st.integers(-70, 70))))
    return kind, {
        "within": {"d": abs(near)},
        "between": {"lo": near, "hi": far},
        "deadline": {"d": far, "window": -near},
        "delay": {"d": near, "window": far},
    }[kind]


def columns(rows, grid, offset):
    """Keys and stamps as arrays; stamps at the rim of int64 stay inside it."""
    rim = (1 << 63) - 1
    t = np.array([[min(max(x * grid + offset, -rim - 1), rim) for x in stamp] for _, stamp in rows], dtype=np.int64)
    t = t.reshape(-1, 2)
    return [key for key, _ in rows], t[:, 0], t[:, 1]


def listed(i, j):
    """The pairs of two index arrays."""
    return list(zip(i.tolist(), j.tolist(), strict=True))


def expected_pairs(a, b, keyed, limit, ct):
    """The pairs by definition of (keys, minima, maxima)."""
    rows = [
        list(zip(keys if keyed else [0] * len(keys), zip(lo.tolist(), hi.tolist(), strict=True), strict=True))
        for keys, lo, hi in (a, b)
    ]
    return pairs(*rows, *limit, ct)


@pytest.mark.compiles
@given(
    sides(),
    sides(),
    predicates(),
    grids,
    offsets,
    thresholds,
    st.booleans(),
    engines,
    st.sampled_from([1, 2, 7, 17, 23, 40, 100]),
)
@settings(max_examples=examples(500), deadline=None)
def test_all_four_forms_of_the_result_are_the_definition(a, b, predicate, grid, offset, ct, keyed, engine, chunk):
    """Sorted pairs with probabilities, count, chunks and ranges, for any predicate, lengths, ct and place in time."""
    kind, given_limits = predicate
    given_limits = {name: value * grid for name, value in given_limits.items()}
    a, b = columns(a, grid, offset), columns(b, grid, offset)
    expected = expected_pairs(a, b, keyed, limits(kind, **given_limits), ct)
    stamps = (*a[1:], *b[1:], Condition(kind, **given_limits, confidence=ct))
    keys = {"key_a": a[0], "key_b": b[0]} if keyed else {}

    i, j, p = correlate(*stamps, **keys, probability=True, engine=engine)
    assert listed(i, j) == sorted(expected)
    assert np.allclose(p, [float(expected[k]) for k in sorted(expected)], atol=1e-14, rtol=0)
    assert (p >= float(ct)).all()
    assert (i.dtype, j.dtype, p.dtype) == (np.int64, np.int64, np.float64)

    numbered = codes(a[0], b[0], len(a[0]), len(b[0])) if keyed else (None, None)
    sides = [
        Given(*side[1:], code if code is None else Numbered(code)) for side, code in zip((a, b), numbered, strict=True)
    ]
    narrow = correlate_narrow(*sides, stamps[-1], engine=engine)
    assert all(np.array_equal(x, y) for x, y in zip(narrow, (i, j, p), strict=True))

    assert count_pairs(*stamps, **keys, engine=engine) == len(expected)

    chunks = [listed(*part) for part in correlate_chunks(*stamps, **keys, engine=engine, chunk_pairs=chunk)]
    assert all(len(part) <= chunk for part in chunks)
    assert sorted(itertools.chain(*chunks)) == sorted(expected)

    ranges = correlate_ranges(*stamps, **keys, engine=engine)
    runs = list(zip(ranges.i.tolist(), ranges.first.tolist(), ranges.last.tolist(), strict=True))
    assert sorted((i, row) for i, x, y in runs for row in ranges.b_order[x:y].tolist()) == sorted(expected)
    assert runs == sorted(runs)


@pytest.mark.compiles
@given(sides(40), sides(40), st.integers(0, 70), thresholds, st.booleans(), engines, st.sampled_from([1, 2, 5]))
@settings(max_examples=examples(200), deadline=None)
def test_slabs_of_any_size_give_the_same_pairs(a, b, d, ct, keyed, engine, zone):
    """Rows in random order, cut into slabs of a few: dealt out by time, or ordered as a whole, nothing is lost or twice."""
    a, b = columns(a, 1, EPOCH_US), columns(b, 1, EPOCH_US)
    stamps = (*a[1:], *b[1:], Condition("within", d=d, confidence=ct))
    keys = {"key_a": a[0], "key_b": b[0]} if keyed else {}
    whole = correlate(*stamps, **keys, probability=True, engine="numpy")
    with small_slabs(zone):
        for column, expected in zip(correlate(*stamps, **keys, probability=True, engine=engine), whole, strict=True):
            assert np.array_equal(column, expected)
        chunks = [listed(*part) for part in correlate_chunks(*stamps, **keys, engine=engine)]
    assert sorted(itertools.chain(*chunks)) == listed(*whole[:2])


@pytest.mark.compiles
@given(
    sides(40), sides(40), st.integers(0, 70), thresholds, st.booleans(), st.integers(1, 9), st.sampled_from([1, 5, 9])
)
@settings(max_examples=examples(200), deadline=None)
def test_sorted_pairs_do_not_depend_on_the_blocks_that_collect_them(a, b, d, ct, keyed, block, zone):
    """Blocks that end amid a slab, of narrow and of wide numbers in turn, and slabs that are too wide for either."""
    a, b = columns(a, 1, EPOCH_US), columns(b, 1, EPOCH_US)
    stamps = (*a[1:], *b[1:], Condition("within", d=d, confidence=ct))
    keys = {"key_a": a[0], "key_b": b[0]} if keyed else {}
    whole = correlate(*stamps, **keys, engine="numpy")
    with small_slabs(zone), pytest.MonkeyPatch.context() as patch:
        patch.setattr(slabs, "REPEATS", 1000)  # rows in any order follow
        patch.setattr(ordered_numba, "FIRST_PAIRS", 1)
        patch.setattr(ordered_numba, "BLOCK_PAIRS", block)
        for narrow, wide in ((1 << 16, 1 << 31), (0, 1 << 31), (8, 1 << 31), (4, 16)):
            patch.setattr(ordered_numba, "NARROW", narrow)
            patch.setattr(ordered_numba, "WIDE", wide)
            for engine in ENGINES:
                assert listed(*correlate(*stamps, **keys, engine=engine)) == listed(*whole)


@pytest.mark.compiles
@pytest.mark.parametrize("keys", [1, 40])
def test_matches_that_lie_far_apart_in_the_input_are_in_order(keys):
    """Rows of B in random order, so that the matches of a row are thousands of rows apart, and each slab has all of B."""
    rng = np.random.default_rng(8)
    a_min, a_max = random_side(rng, 5000, 2_000_000, 500)
    b_min, b_max = random_side(rng, 30_000, 2_000_000, 500)
    order = rng.permutation(30_000)
    stamps = (a_min, a_max, b_min[order], b_max[order], Condition("within", d=900, confidence="0.8"))
    key_a, key_b = rng.integers(0, keys, 5000), rng.integers(0, keys, 30_000)
    found = [correlate(*stamps, key_a, key_b, engine=engine) for engine in ENGINES]
    assert len(found[0][0]) > 5000 * 20 / keys
    assert listed(*found[1]) == sorted(listed(*found[0])) == listed(*found[0])


@contextlib.contextmanager
def small_slabs(zone):
    """Slabs of `zone` rows of A and buckets of twice as many."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (input, slabs):
            patch.setattr(module, "ZONE", zone)
        patch.setattr(slabs, "SLAB_ZONES", 1)
        patch.setattr(slabs, "BUCKET_ROWS", 2 * zone)
        yield


def random_side(rng, rows, span, longest):
    """Rows in the order of their minima; lengths of every size, nearly a third of them points."""
    start = np.sort(rng.integers(0, span // 50, rows)) * 50 + EPOCH_US
    length = np.where(rng.random(rows) < 0.3, 0, longest ** rng.random(rows)).astype(np.int64)
    return start, start + length


REACHES = (0, 7, 1_000, 50_000)
THRESHOLDS = ("0.000001", "0.5", "0.8", "1", "0.1", "0.3", "0.95")
# Every d and every outer threshold once; the whole product in deep runs.
QUICK = {(0, "0.000001"), (7, "1"), (1_000, "0.5"), (50_000, "0.8")}


@pytest.mark.compiles
@pytest.mark.parametrize(
    ("d", "ct"),
    [
        pytest.param(*pair, marks=() if pair in QUICK else pytest.mark.deep)
        for pair in itertools.product(REACHES, THRESHOLDS)
    ],
)
@pytest.mark.parametrize("how", ["in order", "any order", "keyed", "keyed, any order"])
def test_both_engines_find_the_same_in_thousands_of_rows(how, d, ct):
    """Pairs and probabilities are equal bit by bit, for d far below and above the lengths."""
    rng = np.random.default_rng(5)
    sides = [random_side(rng, 3000, 1_000_000, 60_000) for _ in "ab"]
    if "any order" in how:
        orders = [rng.permutation(3000) for _ in "ab"]
        sides = [(lo[order], hi[order]) for (lo, hi), order in zip(sides, orders, strict=True)]
    keys = {name: rng.integers(0, 5, 3000) for name in ("key_a", "key_b")} if "keyed" in how else {}
    condition = Condition("between", lo=50 - d, hi=50 + d, confidence=ct)
    with small_slabs(64):
        numpy_found = correlate(*sides[0], *sides[1], condition, **keys, probability=True, engine="numpy")
        numba_found = correlate(*sides[0], *sides[1], condition, **keys, probability=True, engine="numba")
    assert len(numpy_found[0])
    for x, y in zip(numpy_found, numba_found, strict=True):
        assert np.array_equal(x, y)


@cache
def tied(lengths, ct):
    """Stamps in ms of each length, and the pairs by definition of every so many of them with all."""
    stamps = [(t, t + w) for w in lengths for t in range(0, 300, 5)]
    scaled = [(0, (x * 1000, y * 1000)) for x, y in stamps]
    return stamps, pairs(scaled[:: len(lengths)], scaled, -100_000, 100_000, Fraction(ct))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("lengths", "ct"),
    [((100,), "0.5"), ((100,), "1"), ((0,), "1"), ((0, 100), "0.8"), ((0, 20, 25, 100), "0.5"), ((20, 50, 125), "0.8")],
)
def test_ties_on_a_millisecond_grid_are_decided_as_by_definition(engine, lengths, ct):
    """Equal lengths, points and mixtures around d = 100 ms: every tie is in, and the one beyond is out."""
    stamps, expected = tied(lengths, ct)
    ms = np.array(stamps, dtype=np.int64).reshape(-1, 2) * 1000 + EPOCH_US
    a = ms[:: len(lengths)]
    condition = Condition("within", d=100_000, confidence=ct)
    assert listed(*correlate(a[:, 0], a[:, 1], ms[:, 0], ms[:, 1], condition, engine=engine)) == sorted(expected)
    assert any(p == Fraction(ct) for p in expected.values())


@pytest.mark.parametrize("engine", ENGINES)
def test_an_overflowing_buffer_of_runs_goes_on_with_the_next_row(engine):
    """Every second row of B matches surely, the others never, so that each row of A has as many runs as there can be."""
    #   b   | ---- | ---- | ---- |     points match, long ones cannot reach ct
    rows = 600
    b_min = np.repeat(np.arange(rows) * 2, 2)
    b_max = b_min + np.tile([0, 3 * rows], rows)
    a = np.arange(200) + rows
    condition = Condition("within", d=2 * rows, confidence="0.999")
    matches = correlate(a, a, b_min, b_max, condition, engine=engine)
    base = correlate(a, a, b_min, b_max, condition, engine="numpy")
    assert len(matches[0]) > 65536
    assert all(np.array_equal(x, y) for x, y in zip(matches, base, strict=True))
    ranges = correlate_ranges(a, a, b_min, b_max, condition, engine=engine)
    assert (ranges.last - ranges.first).sum() == len(matches[0])


def test_memory_beside_the_input_is_that_of_a_slab_and_four_bytes_a_row_in_random_order():
    """Four times the rows take the same in the order of time; dealt out by time, only their numbers are kept."""

    def peak(rows, shuffled):
        rng = np.random.default_rng(6)
        order = rng.permutation(rows) if shuffled else np.arange(rows)
        t = order * 100 + EPOCH_US
        stamps = t, t + rng.integers(0, 300, rows), t.copy(), t + 150
        tracemalloc.start()
        condition = Condition("within", d=400, confidence="0.8")
        count = sum(len(i) for i, _ in correlate_chunks(*stamps, condition, engine="numba"))
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count > 4 * rows
        return taken

    peak(1000, False)
    assert peak(400_000, False) < 1.05 * peak(100_000, False)
    assert peak(400_000, True) - peak(100_000, True) < 300_000 * 2 * 4 * 1.5


@pytest.mark.parametrize("ct", ["0.3", "0.8"])
@pytest.mark.parametrize("d", [10, 40, 3_000])
def test_crowds_and_stragglers_of_one_side_are_found(d, ct):
    """Thousands of rows of B in a millisecond of an hour share one bucket of any index over time; no pair is lost."""
    #   b   |      |||||||||||||||      |      |      |
    rng = np.random.default_rng(3)
    b_min = np.sort(np.concatenate([rng.integers(0, 1000, 5000) + 10**9, rng.integers(0, 36 * 10**8, 500)]))
    b_max = b_min + rng.integers(0, 60, len(b_min))
    a_min = np.sort(np.concatenate([rng.integers(-500, 1500, 300) + 10**9, b_min[::40]]))
    a_max = a_min + rng.integers(0, 60, len(a_min))
    condition = Condition("within", d=d, confidence=ct)
    for column, base in zip(
        *(correlate(a_min, a_max, b_min, b_max, condition, engine=engine) for engine in ("numba", "numpy")), strict=True
    ):
        assert len(column) > 1000
        assert np.array_equal(column, base)


@pytest.mark.parametrize("chunk", [50, 10_000])
@pytest.mark.parametrize("span", [1 << 40, input.SAFE_SPAN - 1])
def test_keys_and_middles_that_do_not_fit_one_number_pair_up_all_the_same(span, chunk):
    """Thirty keys over all of time that int64 can hold, against the same with room to spare."""
    rng = np.random.default_rng(4)
    t = np.concatenate([rng.integers(0, 1000, 300), [span - 10]])
    key = np.arange(301) % 30
    stamps = (t, t + 5, t, t + 5, Condition("within", d=100, confidence="0.9"), key, key)
    chunks = [listed(*part) for part in correlate_chunks(*stamps, engine="numba", chunk_pairs=chunk)]
    assert sorted(itertools.chain(*chunks)) == listed(*correlate(*stamps, engine="numpy"))
    assert sorted(itertools.chain(*chunks)) == listed(*correlate(*stamps, engine="numba"))
    assert count_pairs(*stamps, engine="numba") == count_pairs(*stamps, engine="numpy") > 500


@given(
    st.integers(0, 1 << 58), st.integers(0, 1 << 58), st.integers(0, 1 << 58), st.integers(-3, 3), thresholds,
    st.integers(0, 58), engines,
)  # fmt: skip
@settings(max_examples=examples(300), deadline=None)
def test_decisions_hold_a_tick_around_the_threshold_at_any_scale(w_a, w_b, d, aside, ct, shrink, engine):
    """B is put where the probability crosses the threshold, by bisection with the definition, and a few ticks beside it."""
    w_a, w_b, d = w_a >> shrink, w_b >> shrink, d >> shrink
    condition = Condition("within", d=d, confidence=ct)
    near, far = 0, w_a + w_b + d + 1
    while far - near > 1:
        at = (near + far) // 2
        near, far = (at, far) if condition.holds(0, w_a, at, at + w_b) else (near, at)
    start = max(0, near + aside)
    stamps = [np.array([x]) for x in (0, w_a, start, start + w_b)]
    assert count_pairs(*stamps, condition, engine=engine) == condition.holds(0, w_a, start, start + w_b)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("span", [input.SAFE_SPAN, input.SAFE_SPAN + 1])
def test_stamps_at_the_limit_of_int64_and_beyond_match_exactly(engine, span):
    """Intervals as long as all of time, and limits far beyond it, are decided as by definition."""
    a = [(0, (0, span)), (0, (0, 0)), (0, (span, span)), (0, (span // 3, span // 2))]
    b = [(0, (0, span)), (0, (0, 1)), (0, (span - 1, span)), (0, (span // 2, span // 2))]
    stamps = [np.array(x) for side in (a, b) for x in zip(*(stamp for _, stamp in side), strict=True)]
    for lo, hi in ((0, span // 2), (-(1 << 200), 1 << 200), (-span, -span), (1, 1 << 70), (1 << 70, 1 << 80)):
        for ct in ("0.5", "0.75", "1", "0.000000000001"):
            matches = correlate(*stamps, Condition("between", lo=lo, hi=hi, confidence=ct), engine=engine)
            assert listed(*matches) == sorted(pairs(a, b, lo, hi, Fraction(ct)))


@given(
    st.integers(1, 1 << 57), st.integers(0, 9), st.integers(0, 9), st.integers(-20, 20), st.integers(0, 20), thresholds
)
@settings(max_examples=examples(400), deadline=None)
def test_ties_between_huge_lengths_are_decided_exactly(scale, w_a, w_b, start, width, ct):
    """A small tie, scaled beyond the resolution of floating point, stays a tie; one tick less is none."""
    scale = max(1, scale // 40)
    for shift in (-1, 0, 1):
        a, b = (0, (0, w_a * scale)), (0, (start * scale + shift, (start + w_b) * scale + shift))
        stamps = [np.array([x]) for _, stamp in (a, b) for x in stamp]
        condition = Condition("between", lo=0, hi=width * scale, confidence=ct)
        expected = len(pairs([a], [b], 0, width * scale, ct))
        assert [count_pairs(*stamps, condition, engine=engine) for engine in ENGINES] == [expected, expected]
