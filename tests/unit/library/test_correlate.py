"""`wa.correlate` on frames of every kind: the pairs of the definition, as a frame of that kind."""

import datetime as dt
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whenabouts as wa
from support.library.kinds import CONNECTION, KINDS, rows
from support.search import examples
from whenabouts.frames.kinds import given as frame_of
from whenabouts.frames.times import columns_of, times
from whenabouts.pairs import new_names
from whenabouts_cloud.language.errors import RuleError
from whenabouts_cloud.pattern.condition import Condition

TIMES = st.integers(-40, 40)
SIDES = st.lists(st.tuples(st.sampled_from(["x", "y", None]), TIMES, st.integers(0, 20)), max_size=8)
BEGIN = dt.datetime(2026, 1, 1, 12)


def table(side, **more):
    """Rows of (key, begin, length) as an Arrow table."""
    columns = {
        "key": pa.array([key for key, _, _ in side], pa.string()),
        "t_min": pa.array([begin for _, begin, _ in side], pa.int64()),
        "t_max": pa.array([begin + length for _, begin, length in side], pa.int64()),
    }
    return pa.table({**columns, **{name: pa.array(values) for name, values in more.items()}})


def definition(a, b, condition, keyed):
    """All pairs by exact fractions."""
    pairs = []
    for i, (key, begin, length) in enumerate(a):
        for j, (other_key, other_begin, other_length) in enumerate(b):
            if keyed and (key is None or key != other_key):
                continue
            num, den = condition.ratio(begin, begin + length, other_begin, other_begin + other_length)
            if Fraction(num, den) >= condition.ct:
                pairs.append((i, j, num / den))
    return pairs


@settings(max_examples=examples(60), deadline=None)
@given(a=SIDES, b=SIDES, d=st.integers(0, 30), percent=st.integers(1, 100), keyed=st.booleans())
def test_the_pairs_are_those_of_the_definition_in_every_kind(a, b, d, percent, keyed):
    """In order, with the rows' own columns and probabilities; nulls equal nothing."""
    condition = Condition("within", d=d, confidence=Fraction(percent, 100))
    wanted = definition(a, b, condition, keyed)
    left, right = table(a, row=list(range(len(a)))), table(b, other=list(range(len(b))))
    text = f"|@a - @b| <= {d} us OVER {percent} %"
    for name, made in KINDS.items():
        found = wa.correlate(made(left), made(right), text, on="key" if keyed else None)
        assert type(found) is type(made(left)), name
        found = rows(found)
        assert [(one["row"], one["other"]) for one in found] == [(i, j) for i, j, _ in wanted], name
        for one, (i, j, probability) in zip(found, wanted, strict=True):
            assert one["probability"] == pytest.approx(probability, abs=1e-14)
            assert (one["key_a"], one["t_min_a"], one["key_b"], one["t_max_b"]) == (
                a[i][0], a[i][1], b[j][0], b[j][1] + b[j][2],
            )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_times_are_timestamps_with_or_without_a_zone_dates_or_microseconds(kind):
    """All say the same; a moment needs no t_max, and a null there is one."""
    made = KINDS[kind]
    us = int((BEGIN - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1))
    columns = [pa.array([us], pa.int64())]
    columns += [pa.array([BEGIN], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")]
    columns += [pa.array([BEGIN], pa.timestamp("us", "UTC")), pa.array([BEGIN], pa.timestamp("us", "Asia/Tokyo"))]
    other = made(pa.table({"ts": pa.array([us + 5], pa.int64())}))
    for column in columns:
        for frame in (
            pa.table({"ts": column}),
            pa.table({"t_min": column}),
            pa.table({"t_min": column, "t_max": column}),
        ):
            [one] = rows(wa.correlate(made(frame), other, "@a + 5 us >= @b WITHIN 5 us OVER 100 %"))
            assert one["probability"] == 1.0
            assert rows(wa.correlate(made(frame), other, "@a + 4 us >= @b WITHIN 5 us OVER 100 %")) == []
    day = pa.table({"ts": pa.array([BEGIN.date()], pa.date32())})
    midnight = pa.table({"ts": pa.array([us - 12 * 3_600_000_000], pa.int64())})
    assert len(rows(wa.correlate(made(day), made(midnight), "|@a - @b| <= 0 us OVER 100 %"))) == 1


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"pandas"}))
def test_a_null_end_is_a_moment(kind):
    frame = KINDS[kind](pa.table({"t_min": [5, 7], "t_max": pa.array([None, 9], pa.int64())}))
    found = rows(wa.correlate(frame, frame, "|@a - @b| <= 0 us OVER 100 %"))
    assert [(one["t_min_a"], one["t_min_b"]) for one in found] == [(5, 5)]


def test_nanoseconds_are_rounded_outwards():
    """The true time stays between the ends: of 1500 ns the begin is 1 us, the end 2 us."""
    fine = pa.table({"ts": pa.array([1500], pa.timestamp("ns"))})
    whole = pa.table({"t_min": [1], "t_max": [2]})
    [one] = rows(wa.correlate(fine, whole, "|@a - @b| <= 1 us OVER 1 %"))
    assert one["probability"] == rows(wa.correlate(whole, whole, "|@a - @b| <= 1 us OVER 1 %"))[0]["probability"]


@pytest.mark.parametrize("kind", KINDS)
def test_frames_without_rows_have_no_pairs_and_all_columns(kind):
    made = KINDS[kind]
    empty, one = made(table([], v=pa.array([], pa.int64()))), made(table([("x", 0, 1)]))
    for a, b in ((empty, one), (one, empty), (empty, empty)):
        found = wa.correlate(a, b, "|@a - @b| <= 1 s OVER 50 %", on="key")
        assert rows(found) == []
        assert "probability" in list(found.collect_schema() if isinstance(found, pl.LazyFrame) else found.columns) or (
            isinstance(found, pa.Table) and "probability" in found.column_names
        )


def test_several_keys_and_keys_in_the_condition():
    a = pa.table({"t_min": [0, 0, 0], "key": ["x", "x", "y"], "site": [1, 2, 1]})
    b = pa.table({"t_min": [0, 0], "key": ["x", "y"], "site": [1, 2]})
    condition = "|@a - @b| <= 0 us OVER 100 %"
    assert len(rows(wa.correlate(a, b, condition, on=["key", "site"]))) == 1
    assert len(rows(wa.correlate(a, b, f"{condition} AND a.key = b.key"))) == 3
    assert len(rows(wa.correlate(a, b, condition))) == 6


def test_a_pandas_index_does_not_matter():
    frame = pd.DataFrame({"t_min": [5, 5]}, index=[7, 7])
    found = wa.correlate(frame, frame, "|@a - @b| <= 0 us OVER 100 %")
    assert list(found.index) == [0, 1, 2, 3]


def test_a_relation_stays_in_its_connection():
    CONNECTION.sql("CREATE OR REPLACE TABLE seen AS SELECT 5 AS t_min")
    found = wa.correlate(CONNECTION.table("seen"), CONNECTION.table("seen"), "|@a - @b| <= 0 us OVER 100 %")
    assert found.join(CONNECTION.table("seen"), "t_min_a = t_min").fetchall() == [(5, 5, 1.0, 5)]


@pytest.mark.parametrize(
    ("a", "text"),
    [
        ([5], "a: found list, expected a frame of pandas, Polars, PyArrow, DuckDB or Spark"),
        (pa.table({"when": [5]}), "a: found the columns when; expected t_min and t_max, or t_min, or ts"),
        (pa.table({"t_max": [5]}), "expected t_min and t_max"),
        (pa.table({"t_min": pa.array([None, 5, None], pa.int64())}), "a: found 2 nulls in t_min"),
        (pa.table({"t_min": [1.5]}), "a: found double in t_min, expected timestamps, dates or whole numbers"),
        (pd.DataFrame({"t_min": [1, None]}), "are there nulls, which make whole numbers fractions in pandas"),
        (pa.table({"t_min": ["now"]}), "a: found string in t_min"),
        (pa.table({"t_min": [True]}), "a: found bool in t_min"),
        (pa.table({"t_min": [7, 5], "t_max": [8, 4]}), "found 1 rows whose t_max is before their t_min, the first is row 1"),
        (pa.table([[1], [2]], names=["t_min", "t_min"]), "a: found the column 't_min' twice"),
        (pd.DataFrame([[1, 2]], columns=["t_min", "t_min"]), "a: found the column 't_min' twice"),
        (pa.table({"t_min": pa.array([1 << 62], pa.timestamp("s"))}), "beyond all microseconds"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_what_was_found_and_expected(a, text):
    with pytest.raises(wa.FrameError) as refused:
        wa.correlate(a, a, "|@a - @b| <= 1 s OVER 50 %")
    assert text in str(refused.value)


def test_frames_of_two_kinds_and_missing_keys_are_refused():
    arrow, polars = pa.table({"t_min": [5]}), pl.DataFrame({"t_min": [5]})
    with pytest.raises(wa.FrameError, match="b: found polars's DataFrame beside pyarrow's Table as a"):
        wa.correlate(arrow, polars, "|@a - @b| <= 1 s OVER 50 %")
    with pytest.raises(wa.FrameError, match="on: found 'key', expected a column of a: t_min"):
        wa.correlate(arrow, arrow, "|@a - @b| <= 1 s OVER 50 %", on="key")
    texts, numbers = pa.table({"t_min": [5], "key": ["5"]}), pa.table({"t_min": [5], "key": [5]})
    with pytest.raises(wa.FrameError, match="on: found string in a and int64 in b as 'key', expected one type"):
        wa.correlate(texts, numbers, "|@a - @b| <= 1 s OVER 50 %", on="key")


def test_names_of_both_get_suffixes_and_may_not_meet():
    a = pa.table({"t_min": [5], "probability": [1], "v": [2]})
    b = pa.table({"t_min": [5], "w": [3]})
    assert wa.correlate(a, b, "|@a - @b| <= 1 s OVER 50 %").column_names == [
        "t_min_a", "probability_a", "v", "t_min_b", "w", "probability",
    ]  # fmt: skip
    c = pa.table({"t_min": [5], "t_min_a": [3]})
    with pytest.raises(wa.FrameError, match="would both be called 't_min_a'"):
        wa.correlate(c, b, "|@a - @b| <= 1 s OVER 50 %")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("|@a - @b| <= 2 s", "condition:1:17: found the end of the declaration, expected OVER or WITHIN"),
        ("|@a - @b| <= 2 foo OVER 80 %", "condition:1:16: found the unit foo"),
        ("|@a - @b| <= 2 s OVER 80 % NEAREST", "condition:1:1: found NEAREST, TOP, KEEP or ONLY"),
        (
            '|@a - @b| <= 2 s OVER 80 % AND a.epc_scheme = "sgtin"',
            'condition:1:1: found a.epc_scheme = "sgtin", expected a condition on the times of a and b',
        ),
    ],
)
def test_mistakes_in_a_condition_have_their_place(condition, text):
    frame = pa.table({"t_min": [5]})
    with pytest.raises(RuleError) as refused:
        wa.correlate(frame, frame, condition)
    assert text in str(refused.value)


def test_times_stand_in_the_columns_of_the_project_before_others():
    assert columns_of(["ts", "t_min", "t_max"], "a") == ("t_min", "t_max")
    assert columns_of(["ts", "t_min"], "a") == ("t_min", "t_min")
    assert columns_of(["ts", "x"], "a") == ("ts", "ts")
    begin, end = times(frame_of(pa.table({"ts": [5, 7]}), "a"))
    assert (begin.tolist(), end.tolist()) == ([5, 7], [5, 7])


def test_new_names_are_those_of_the_result():
    assert new_names(["x", "y"], ["y", "z"]) == ({"x": "x", "y": "y_a"}, {"y": "y_b", "z": "z"})
    assert new_names(["ts"], ["t_min", "t_max"]) == ({"ts": "ts"}, {"t_min": "t_min", "t_max": "t_max"})
