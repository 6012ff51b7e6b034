"""Odd data in frames of every kind: the right result, or an error that says what was found."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import whenabouts as wa
from support.library.kinds import KINDS, rows
from whenabouts.frames.arrow import EXACT, check_exact, codes_of

NEAR = "|@a - @b| <= 2 s OVER 80 %"
PATTERN = "SEQ(x a, y b) WITHIN 1 h PER key"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("type_", ["int8", "int32", "uint8", "uint32", "uint64", "int64"])
def test_whole_numbers_of_every_type_are_widened_without_wrapping(kind, type_):
    """The interval reaches below 1970, and beyond what the type of the timestamps holds."""
    made = wa.interval(KINDS[kind](pa.table({"ts": pa.array([100], type_)})), error="1 h")
    assert rows(made) == [{"ts": 100, "t_min": 100 - 3_600_000_000, "t_max": 100 + 3_600_000_000}]


def test_a_table_of_the_callers_is_never_taken_for_the_result():
    """DuckDB looks a name up in its own catalogue first."""
    connection = duckdb.connect()
    connection.sql("CREATE TABLE whenabouts_result AS SELECT 42 AS other")
    found = wa.correlate(connection.sql("SELECT 1 AS ts"), connection.sql("SELECT 1 AS ts"), NEAR)
    assert found.fetchall() == [(1, 1, 1.0)]
    connection.sql("SET python_enable_replacements = false")
    with pytest.raises(wa.FrameError, match="python_enable_replacements switched off"):
        wa.correlate(connection.sql("SELECT 1 AS ts"), connection.sql("SELECT 1 AS ts"), NEAR)


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_that_conditions_cannot_tell_apart_are_refused(kind):
    """2^53 and 2^53 + 1 are one floating number; as texts they differ."""
    made = {"stream": ["x", "y"], "key": ["k", "k"], "ts": [0, 5], "serial": [EXACT, EXACT + 1]}
    condition = f"{PATTERN} WHERE a.serial = b.serial"
    with pytest.raises(wa.FrameError, match=r"found whole numbers beyond 2\^53 in serial"):
        wa.detect(KINDS[kind](pa.table(made)), condition)
    with pytest.raises(wa.FrameError, match=r"beyond 2\^53 in serial"):
        wa.verdicts(KINDS[kind](pa.table(made)), "POSSIBLY x.serial = 1 AND y.serial = 1")
    made["serial"] = [str(one) for one in made["serial"]]
    assert rows(wa.detect(KINDS[kind](pa.table(made)), condition)) == []
    check_exact(pa.array([EXACT, -EXACT, None]), "serial", "events")


def test_keys_are_equal_as_numbers_are():
    """nan is no key, both zeros are one; whole numbers of any size and type are compared."""
    for frame in (pl.DataFrame, pd.DataFrame):
        keys = frame({"ts": [0, 0, 0], "key": [float("nan"), 0.0, -0.0]})
        assert len(wa.correlate(keys, keys, NEAR, on="key")) == 4
    large = pa.table({"ts": [0, 0], "key": pa.array([2**64 - 1, 1], "uint64")})
    assert wa.correlate(large, large, NEAR, on="key").num_rows == 2
    small = pa.table({"ts": [0], "key": pa.array([1], "int8")})
    with pytest.raises(wa.FrameError, match=r"beyond 2\^63 in 'key'"):
        wa.correlate(large, small, NEAR, on="key")
    assert wa.correlate(large.slice(1), small, NEAR, on="key").num_rows == 1


@pytest.mark.parametrize(
    ("arrays", "codes"),
    [
        ([pa.array(["a", None, "b"]), pa.array(["b", "c"])], [[0, -1, 1], [1, 2]]),
        ([pa.array([0.5, float("nan"), None, -0.0]), pa.array([0.0])], [[0, -1, -1, 1], [1]]),
        ([pa.array([], pa.string()), pa.array(["a"])], [[], [0]]),
        ([pa.array(["a"]), pa.array([], pa.string())], [[0], []]),
        ([pa.array([], pa.int8()), pa.array([], pa.int8())], [[], []]),
        ([pa.nulls(2), pa.nulls(1)], [[-1, -1], [-1]]),
    ],
)
def test_equal_values_of_all_arrays_have_one_code(arrays, codes):
    assert [one.tolist() for one in codes_of(arrays, "key", "on")] == codes


@pytest.mark.parametrize("made", [pa.table, pl.DataFrame, lambda columns: pa.table(columns).to_pandas()])
def test_several_keys_are_equal_together_and_a_null_in_any_equals_nothing(made):
    texts, numbers = ["x", "x", None, "y", "x", "y"], [1, 2, 1, None, 1, 2]
    columns = {"ts": [0] * 6, "k": pa.array(texts), "n": pa.array(numbers, pa.float64()), "row": pa.array(range(6))}
    found = wa.correlate(made(columns), made(columns), NEAR, on=["k", "n"])
    pairs = [(0, 0), (0, 4), (1, 1), (4, 0), (4, 4), (5, 5)]
    assert list(zip(*(list(found[name].to_numpy()) for name in ("row_a", "row_b")), strict=True)) == pairs


MIXED = pd.DataFrame({"stream": ["x", "y"], "key": ["k", 5], "ts": [0, 1], "v": [1, "a"], "list": [[1], [2]]})


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda: wa.correlate(MIXED, MIXED, NEAR, on="key"), "a: found values of several types in key"),
        (lambda: wa.correlate(MIXED, MIXED, NEAR, on="list"), r"found list.* in list, expected values that can be equal"),
        (lambda: wa.detect(MIXED, PATTERN), "events: found values of several types in key"),
        (lambda: wa.detect(MIXED, PATTERN.replace("key", "list")), r"events: found list.* in list"),
        (lambda: wa.detect(MIXED.assign(key="k"), f"{PATTERN} WHERE a.v = b.v"), "found values of several types in v"),
        (lambda: wa.verdicts(MIXED, "POSSIBLY x.v = 1 AND y.v = 1"), "states: found values of several types in v"),
        (lambda: wa.verdicts(MIXED, "POSSIBLY x.ts = 1 AND y.ts = 1", group="key"), "found values of several types in key"),
        (lambda: wa.verdicts(MIXED.assign(stream=1), "POSSIBLY x.ts = 1"), "found Int64 in stream, expected the names"),
        (lambda: wa.verdicts(MIXED.assign(vclock=1), "POSSIBLY x.ts = 1", members=["x"]), "found int64 in vclock"),
        (lambda: wa.epc_names(MIXED), "df: found values of several types in key"),
        (lambda: wa.interval(MIXED.rename(columns={"ts": 7}), "7"), "column with the name 7, expected texts"),
        (lambda: wa.correlate(duckdb.sql("SELECT 1 AS ts, 2 AS x, 3 AS x"), duckdb.sql("SELECT 1 AS ts"), NEAR),
         "found the column 'x' twice"),
        (lambda: wa.correlate(MIXED, MIXED, NEAR, on=5), "on: found 5, expected the name of a column"),
        (lambda: wa.correlate(MIXED, MIXED, None), "condition: found NoneType, expected a text"),
        (lambda: wa.detect(MIXED, None), "pattern: found NoneType, expected a text"),
        (lambda: wa.verdicts(MIXED, None), "verdict: found NoneType, expected a text"),
        (lambda: wa.within_probability(*[pd.Series([1])] * 4, 1 << 62), r"found a distance of .* expected less than"),
        (lambda: wa.verdicts(MIXED.assign(ts=[1 << 60, 0]), "POSSIBLY x.ts = 1 AND y.ts = 1"), "states: found a time"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(ask, text):
    with pytest.raises(wa.FrameError, match=text):
        ask()


def test_an_empty_column_is_of_the_right_type():
    """pandas calls it one of fractions."""
    empty = pd.DataFrame({"stream": [], "key": [], "ts": np.array([], "int64")})
    assert len(wa.detect(empty, PATTERN)) == 0
    assert len(wa.verdicts(empty, "POSSIBLY x.ts = 1")) == 0
    assert len(wa.epc_names(empty)) == 0


def test_other_companies_are_named_in_the_error():
    with pytest.raises(wa.EpcError, match=r"expected one of 0614142$"):
        wa.epc("3074257BF7194E4000001A85", prefixes="0614142")
    with pytest.raises(wa.EpcError, match="found 614141, expected company prefixes"):
        wa.epc("3074257BF7194E4000001A85", prefixes=614141)
