"""Rows of frames at positions: the same values and types as the frame has, whatever a library keeps them in."""

import datetime as dt
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from whenabouts.frames.taking import beside, taken

AT = np.array([3, 0, 0, 2, 1])
MOMENT = dt.datetime(2026, 11, 28, 12, tzinfo=dt.UTC)
COLUMNS = {
    "small": pa.array([1, None, 255, 0], pa.uint8()),
    "fraction": pa.array([0.5, None, float("inf"), -0.0]),
    "yes": pa.array([True, None, False, True]),
    "at": pa.array([MOMENT, None, MOMENT, MOMENT], pa.timestamp("us", "UTC")),
    "local": pa.array([1, None, 2, 3], pa.timestamp("ns")),
    "lasts": pa.array([1, None, 2, 3], pa.duration("ms")),
    "day": pa.array([dt.date(2026, 11, 28), None, dt.date(1969, 1, 1), dt.date(1, 1, 1)]),
    "clock": pa.array([dt.time(1), None, dt.time(2), dt.time(3)], pa.time64("us")),
    "text": pa.array(["x", None, "", "long enough to be apart from its view"]),
    "bytes": pa.array([b"x", None, b"", b"\x00"]),
    "money": pa.array([Decimal("1.25"), None, Decimal("-3.50"), Decimal("0.00")], pa.decimal128(10, 2)),
    "word": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "many": pa.array([[1], None, [], [2, 3]]),
    "parts": pa.array([{"n": 1}, None, {"n": 2}, {"n": None}]),
    "nothing": pa.nulls(4),
}
TABLE = pa.table(COLUMNS)
CHUNKED = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 2), TABLE.slice(3)])


def wrapped(native):
    return nw.from_native(native, eager_only=True)


@pytest.mark.parametrize("table", [TABLE, CHUNKED], ids=["whole", "in chunks"])
def test_rows_of_arrow_are_what_taking_gives(table):
    assert taken(wrapped(table), AT).to_native().equals(TABLE.take(pa.array(AT)))


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_of_polars_keep_values_and_type(name):
    frame = pl.DataFrame({name: pl.Series(COLUMNS[name])})
    made = taken(wrapped(frame), AT).to_native()
    assert made.equals(frame[AT])
    assert made.schema == frame.schema


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("backed", [True, False], ids=["Arrow", "NumPy"])
def test_rows_of_pandas_keep_values_and_type(name, backed):
    frame = pa.table({name: COLUMNS[name]}).to_pandas(types_mapper=pd.ArrowDtype if backed else None)
    frame.index = [7, 7, 8, 9]
    made = taken(wrapped(frame), AT).to_native()
    pd.testing.assert_frame_equal(made, frame.take(AT).reset_index(drop=True))


def test_columns_of_parts_lie_beside_each_other_in_order():
    for native in (TABLE, pl.from_arrow(TABLE), TABLE.to_pandas(), TABLE.to_pandas(types_mapper=pd.ArrowDtype)):
        whole = taken(wrapped(native), AT)
        parts = [whole.select("word"), whole.select("text", "at"), whole.select("small")]
        assert beside(parts).columns == ["word", "text", "at", "small"]
        assert type(beside(parts).to_native()) is type(native)


def test_rows_of_a_result_can_be_written():
    """A column that Arrow or NumPy lent could not be changed in place."""
    made = taken(wrapped(pd.DataFrame({"n": [1, 2, 3, 4]})), AT).to_native()
    made.loc[0, "n"] = 9
    assert made["n"].tolist() == [9, 1, 1, 3, 2]


def test_no_rows_and_no_columns_stay_frames():
    for native in (TABLE, pl.from_arrow(TABLE), TABLE.to_pandas()):
        assert taken(wrapped(native), AT[:0]).shape == (0, len(COLUMNS))
    assert taken(wrapped(pl.DataFrame({"text": ["x"]})), np.array([0, 0])).to_native()["text"].to_list() == ["x", "x"]
