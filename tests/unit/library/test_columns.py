"""`wa.within_probability` on columns of every kind: the probability of the definition."""

import datetime as dt

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whenabouts as wa
from support.library.kinds import CONNECTION
from support.search import examples
from whenabouts_cloud.language.errors import RuleError
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_protocol import ratio_between

NAMES = ["a_min", "a_max", "b_min", "b_max"]
TIMES = st.integers(-30, 30) | st.integers(1 << 55, (1 << 55) + 40)
ROWS = st.lists(st.tuples(*[st.none() | TIMES] * 4) | st.tuples(TIMES, TIMES, TIMES, TIMES).map(
    lambda row: (*sorted(row[:2]), *sorted(row[2:]))
), min_size=1, max_size=8)  # fmt: skip


def table(given):
    return pa.table({
        name: pa.array(list(column), pa.int64()) for name, column in zip(NAMES, zip(*given, strict=True), strict=True)
    })  # fmt: skip


def _from_duckdb(rows, *condition):
    relation = CONNECTION.from_arrow(rows)
    made = relation.select(wa.within_probability(*map(duckdb.ColumnExpression, NAMES), *condition))
    return [row[0] for row in made.fetchall()]


KINDS = {
    "pyarrow": lambda rows, *x: wa.within_probability(*[rows[name] for name in NAMES], *x).to_pylist(),
    "pandas": lambda rows, *x: [
        None if one != one else one
        for one in wa.within_probability(
            *[rows.to_pandas(types_mapper=pd.ArrowDtype)[name] for name in NAMES], *x
        ).tolist()
    ],
    "polars": lambda rows, *x: wa.within_probability(*[pl.from_arrow(rows)[name] for name in NAMES], *x).to_list(),
    "polars, expressions": lambda rows, *x: (
        pl.from_arrow(rows)
        .lazy()
        .select(wa.within_probability(*map(pl.col, NAMES), *x))
        .collect()
        .to_series()
        .to_list()
    ),
    "duckdb": _from_duckdb,
}


@settings(max_examples=examples(80), deadline=None)
@given(given=ROWS, low=st.integers(-20, 20), width=st.integers(0, 30))
def test_the_probability_is_that_of_the_definition_in_every_kind(given, low, width):
    """By exact fractions; null beside a null and for an interval that ends before it begins."""
    wanted = []
    for row in given:
        if None in row or row[0] > row[1] or row[2] > row[3]:
            wanted.append(None)
        else:
            num, den = ratio_between(*row, low, low + width)
            wanted.append(pytest.approx(num / den, abs=1e-12))
    for name, found in KINDS.items():
        assert found(table(given), f"@b - @a IN [{low} us, {low + width} us]") == wanted, name


def test_a_condition_is_a_distance_or_one_of_rules():
    rows = table([(0, 10, 5, 15)])
    same = [5, "5 us", dt.timedelta(microseconds=5), "|@a - @b| <= 5 us", "|@a - @b| <= 5 us OVER 90 %"]
    same.append(Condition("within", d=5, confidence=1))
    assert [KINDS["pyarrow"](rows, one) for one in same] == [[0.5]] * len(same)
    with pytest.raises(RuleError, match="condition:1:16: found the unit foo"):
        KINDS["pyarrow"](rows, "|@a - @b| <= 2 foo")
    with pytest.raises(wa.FrameError, match="condition: found -1, expected a duration such as"):
        KINDS["pyarrow"](rows, -1)


def test_columns_hold_times_of_any_type_and_keep_their_form():
    """A Series of pandas keeps its index; chunks stay chunks; nanoseconds are rounded outwards."""
    begin = dt.datetime(2026, 1, 1, 12)
    at = [pa.array([begin + dt.timedelta(seconds=n)] * 2, pa.timestamp("ms")) for n in (0, 10, 5, 15)]
    assert wa.within_probability(*at, "5 s").to_pylist() == [0.5, 0.5]
    series = [one.to_pandas().set_axis([7, 9]) for one in at]
    found = wa.within_probability(*series, "5 s")
    assert (found.index.tolist(), found.tolist(), found.name) == ([7, 9], [0.5, 0.5], "probability")
    fine = [pa.array([n], pa.timestamp("ns")) for n in (1500, 1500, 3500, 3500)]
    assert wa.within_probability(*fine, 1).to_pylist() == [0.0]  # of [1, 2] and [3, 4] us
    assert wa.within_probability(*fine, 2).to_pylist() == [0.5]
    arrays = [np.array([one]) for one in (0, 10, 5, 15)]
    assert wa.within_probability(*arrays, 5).tolist() == [0.5]
    assert wa.within_probability(*[pa.array([], pa.int64())] * 4, 5).to_pylist() == []


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (NAMES, "a_min: found str, expected a column: a Series, an array, or an expression"),
        (
            [pa.array([1])] * 3 + [pl.Series([1])],
            "columns: found columns of pyarrow, polars, expected four of one kind",
        ),
        ([pa.array([1])] * 3 + [pa.array([1, 2])], "columns: found 1, 1, 1, 2 rows, expected as many in each"),
        ([pa.array(["now"])] * 4, "a_min: found string, expected timestamps, dates or whole numbers"),
        ([pa.array([1 << 60])] * 4, "columns: found a time 1152921504606846976 us from 1970, expected less than 2^60"),
        ([pd.Series([1])] * 3 + [pd.Series([1], index=[4])], "columns: found Series with different indices"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_cannot_be_used_is_refused_with_what_was_found_and_expected(columns, text):
    with pytest.raises(wa.FrameError) as refused:
        wa.within_probability(*columns, 5)
    assert text in str(refused.value)
