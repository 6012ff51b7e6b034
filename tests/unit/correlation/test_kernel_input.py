"""Input that the batch interface accepts and refuses, equality of keys, and the modules that it loads."""

import datetime
import importlib
import os
import subprocess
import sys
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest

from support.paths import REPOSITORY
from whenabouts_cloud.correlation import Condition, correlate, count_pairs
from whenabouts_cloud.correlation.batch.api import correlate_chunks, correlate_ranges
from whenabouts_cloud.jit import compiled

SURE = Condition("within", d=10, confidence="0.5")
T = np.array([0, 1, 2])


def matches(key_a, key_b, engine="numpy"):
    """Pairs of rows that are all at the same time, so that only keys decide."""
    a, b = np.zeros(len(key_a), np.int64), np.zeros(len(key_b), np.int64)
    i, j = correlate(a, a, b, b, SURE, key_a, key_b, engine=engine)
    return list(zip(i.tolist(), j.tolist(), strict=True))


DAY = np.datetime64("2026-01-01", "s")


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize(
    ("key_a", "key_b", "expected"),
    [
        ([1, 2], [2, 1], [(0, 1), (1, 0)]),
        (np.array([1, 2], np.int8), np.array([2, 300], np.int64), [(1, 0)]),
        (np.array([(1 << 63) + 1], np.uint64), np.array([(1 << 63) - 1, 5], np.int64), []),
        (np.array([(1 << 60) + 1], np.uint64), np.array([1 << 60, (1 << 60) + 1], np.int64), [(0, 1)]),
        ([1 << 100], [1 << 100, 1], [(0, 0)]),
        (["a", "bb"], np.array(["bb", "ccc"]), [(1, 0)]),
        (np.array(["a", "bb"]), np.array(["ccc", "bb"]), [(1, 1)]),
        (np.array(["a"], dtype=np.dtypes.StringDType()), ["a"], [(0, 0)]),
        (np.array([b"a"]), np.array(["a"]), []),
        ([("x", 1), ("x", 2)], [("x", 2), (1, 2)], [(1, 0)]),
        ([1, "1", True, Decimal(1)], [1.0], [(0, 0), (2, 0), (3, 0)]),
        (np.array([True, False]), np.array([False]), [(1, 0)]),
        (np.array([0.5, np.nan]), np.array([np.nan, 0.5]), [(0, 1)]),
        (["a", None], [None, "a"], [(0, 1)]),
        (np.array([DAY, "NaT"], "M8[s]"), np.array(["NaT", DAY], "M8[s]"), [(0, 1)]),
        (np.array([DAY, "NaT"], "M8[s]"), np.array(["NaT", DAY], "M8[us]"), [(0, 1)]),
        ([datetime.date(2026, 1, 1)], [datetime.date(2026, 1, 1)], [(0, 0)]),
        ([frozenset("ab")], [frozenset("ba")], [(0, 0)]),
        ([None], [None], []),
    ],
)
def test_keys_of_any_type_pair_up_where_they_are_equal(key_a, key_b, expected, engine):
    """Equality is Python's; None, NaN and NaT equal nothing."""
    assert matches(key_a, key_b, engine) == expected


@pytest.mark.parametrize(
    ("stamps", "keys", "message"),
    [
        ((T, T[:2], T, T), (), "a_min and a_max: found 3 and 2 stamps"),
        ((T, T, T, T[:1]), (), "b_min and b_max: found 3 and 1 stamps"),
        ((T, T - 1, T, T), (), r"interval 0 of a: found \[0, -1\], expected the minimum first"),
        ((T, T, T, np.array([0, 1, 1])), (), r"interval 2 of b: found \[2, 1\]"),
        ((T.reshape(-1, 1), T, T, T), (), "a_min: found 2 dimensions"),
        ((T.astype(float), T, T, T), (), "a_min: found float64 stamps, expected whole numbers"),
        ((T, T, T.astype("M8[us]"), T), (), r"b_min: found datetime64\[us\] stamps"),
        ((T, T, T, np.array([True, False, True])), (), "b_max: found bool stamps"),
        ((T, [0, None, 2], T, T), (), "a_max: found object stamps"),
        ((T, T, T, T), (T, None), "keys: found them on one side"),
        ((T, T, T, T), (None, T), "keys: found them on one side"),
        ((T, T, T, T), (T, T[:2]), r"key_b: found shape \(2,\), expected a key for each of the 3 intervals"),
        ((T, T, T, T), ([[], [], []], T), r"key_a: found \[\], expected keys that can be hashed"),
    ],
)
@pytest.mark.parametrize("call", [correlate, count_pairs, correlate_chunks, correlate_ranges])
def test_input_that_makes_no_sense_is_refused_by_name_and_place(call, stamps, keys, message):
    """Every form of the interface names the argument, what was found and what was expected, before the first pair."""
    with pytest.raises(ValueError, match=message):
        call(*stamps, SURE, *keys)


def test_unknown_engines_and_empty_buffers_are_refused():
    """So are they by name."""
    with pytest.raises(ValueError, match="engine: found 'fortran', expected one of numpy, numba"):
        correlate(T, T, T, T, SURE, engine="fortran")
    with pytest.raises(ValueError, match="chunk_pairs: found 0, expected at least 1"):
        correlate_chunks(T, T, T, T, SURE, chunk_pairs=0)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_empty_sides_give_empty_results_of_the_right_type(engine):
    """An empty list is as good as an empty array, and the order of B is still returned."""
    i, j, p = correlate([], [], T, T, SURE, probability=True, engine=engine)
    assert (len(i), len(j), len(p)) == (0, 0, 0)
    assert (i.dtype, j.dtype, p.dtype) == (np.int64, np.int64, np.float64)
    assert count_pairs(T, T, [], [], SURE, [1, 2, 3], [], engine=engine) == 0
    assert list(correlate_chunks([], [], [], [], SURE, engine=engine)) == []
    assert len(correlate_ranges([], [], T, T, SURE, engine=engine).i) == 0


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, object])
def test_stamps_of_any_whole_type_are_taken(dtype):
    """They are the same pairs as of int64."""
    t = T.astype(dtype)
    assert [x.tolist() for x in correlate(t, t, t, t, Condition("between", lo=2, hi=2, confidence=1))] == [[0], [2]]


def test_stamps_beyond_int64_are_taken_as_python_integers():
    """uint64 beyond int64 as well; keys still decide, and the other forms of the result agree."""
    late = np.array([(1 << 63) + 5, (1 << 64) - 1], np.uint64)
    huge = np.array([1 << 80, (1 << 63) + 6], object)
    for keys, expected in ((), [(0, 1)]), (([1, 2], [1, 1]), [(0, 1)]), (([1, 2], [1, None]), []):
        i, j = correlate(late, late, huge, huge, SURE, *keys)
        assert list(zip(i.tolist(), j.tolist(), strict=True)) == expected
        counts = Counter()
        assert count_pairs(late, late, huge, huge, SURE, *keys, counts=counts) == counts["pairs"] == len(expected)
        chunks = correlate_chunks(late, late, huge, huge, SURE, *keys, chunk_pairs=1)
        assert [(int(i[0]), int(j[0])) for i, j in chunks] == expected


def test_counts_are_of_pairs_and_probabilities_evaluated():
    """For equal lengths no probability is evaluated but within the rounding of the limits."""
    t = np.arange(1000) * 1000
    counts = Counter()
    pairs = count_pairs(t, t + 500, t, t + 500, Condition("within", d=20_100, confidence="0.5"), counts=counts)
    assert counts == {"pairs": pairs, "probes": 0}
    list(correlate_chunks(t, t + 500, t, t + 500, Condition("within", d=20_100, confidence="0.5"), counts=counts))
    assert counts == {"pairs": 2 * pairs, "probes": 0}


def test_chunks_are_views_of_one_buffer():
    """The next step overwrites them, as documented."""
    steps = correlate_chunks(T, T, T, T, SURE, chunk_pairs=2)
    first = next(steps)
    before = [x.copy() for x in first]
    second = next(steps)
    assert all(np.shares_memory(x, y) for x, y in zip(first, second, strict=True))
    assert any(not np.array_equal(x, y) for x, y in zip(first, before, strict=True))


def python(code):
    """Output of the code in a separate process."""
    path = os.pathsep.join(str(REPOSITORY / name) for name in ("protocol", "cloud"))
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_numba_is_loaded_only_where_it_pays():
    """Neither the import nor a small correlation loads it; asking for it does, and then it stays in use."""
    code = (
        "import sys; from whenabouts_cloud.correlation import Condition, correlate, count_pairs\n"
        "c = Condition('within', d=1, confidence=1); t = list(range(100))\n"
        "seen = ['numba' in sys.modules]; correlate(t, t, t, t, c); seen.append('numba' in sys.modules)\n"
        "count_pairs(t, t, t, t, c, engine='numba'); print(*seen, 'numba' in sys.modules)"
    )
    assert python(code) == "False False True"


def test_many_rows_take_numba_by_themselves():
    """From NUMBA_ROWS on the loading pays."""
    code = (
        "import sys, numpy as np; from whenabouts_cloud.correlation import Condition, count_pairs\n"
        "from whenabouts_cloud.correlation.batch.join import NUMBA_ROWS\n"
        "t = np.arange(NUMBA_ROWS // 2) * 10\n"
        "print(count_pairs(t, t, t, t, Condition('within', d=1, confidence=1)), 'numba' in sys.modules)"
    )
    assert python(code) == "1000000 True"


def test_installations_without_a_place_for_machine_code_still_work(monkeypatch):
    """Where numba finds no folder to keep it in, the functions are compiled for this process only."""
    caching = importlib.import_module("numba.core.caching")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    square = compiled(lambda x: x * x)
    assert square(7) == 49
