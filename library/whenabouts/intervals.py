"""From timestamps and an error to the times between which each row surely happened."""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Any, TypeVar

import narwhals as nw

from whenabouts.frames.kinds import FrameError, checked
from whenabouts.frames.times import BEGIN, END
from whenabouts_cloud.language.timing import UNITS_US

Frame = TypeVar("Frame")


def interval(df: Frame, at: str = "ts", error: str | timedelta | int = 0, late: str | timedelta | int = 0) -> Frame:
    """The frame with t_min and t_max: `at` less the error and less what it may be late, and `at` with the error.

    at: a column of timestamps, dates (their midnight) or whole microseconds. error: how far it may lie from the true time,
    in either direction. late: how much later than the true time it may be taken, beside that. Both as text such as "0.5 s",
    a timedelta, or microseconds. Columns t_min and t_max that were there are replaced. Nulls stay nulls. Nothing is
    collected.

    Raises:
        FrameError: the column is missing, or holds no times; or the error is no duration.

    >>> import pyarrow as pa
    >>> interval(pa.table({"ts": [1_000_000]}), error="0.5 s", late="200 ms").to_pylist()
    [{'ts': 1000000, 't_min': 300000, 't_max': 1500000}]
    """
    checked(df, "df")
    frame: Any = nw.from_native(df)
    schema = frame.collect_schema()
    if at not in schema:
        raise FrameError(f"at: found {at!r}, expected a column of df: {', '.join(list(schema)[:20])}")
    early_us, late_us = microseconds(error, "error"), microseconds(late, "late")
    kind, column = schema[at], nw.col(at)
    if kind.is_integer():
        column = column.cast(nw.Int64)  # smaller types and those without a sign would wrap
        begin, end = column - (early_us + late_us), column + early_us
    elif isinstance(kind, nw.Datetime | nw.Date):
        begin, end = (_fine(column, kind) + timedelta(microseconds=us) for us in (-early_us - late_us, early_us))
    else:
        raise FrameError(f"df: found {kind} in {at}, expected timestamps, dates or whole numbers of microseconds")
    made: Frame = frame.with_columns(begin.alias(BEGIN), end.alias(END)).to_native()
    return made


def microseconds(duration: "str | timedelta | int", name: str) -> int:
    """A duration in microseconds.

    Raises:
        FrameError: it is none, or is negative.

    >>> microseconds("1.5 ms", "error")
    1500
    """
    us: int | None = None
    if isinstance(duration, timedelta):
        us = duration // timedelta(microseconds=1)
    elif isinstance(duration, int) and not isinstance(duration, bool):
        us = duration
    elif isinstance(duration, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h)\s*", duration, re.ASCII)
        value = Fraction(found[1]) * UNITS_US[found[2]] if found else Fraction(-1)
        us = int(value) if value.denominator == 1 else None
    if us is None or us < 0:
        raise FrameError(
            f"{name}: found {duration!r}, expected a duration such as '0.5 s' (us, ms, s, min, h), 0 or more"
        )
    return us


def _fine(column: Any, kind: Any) -> Any:
    """The column with a unit that microseconds fit in."""
    if isinstance(kind, nw.Date):
        return column.cast(nw.Datetime("us"))
    return column if kind.time_unit in ("us", "ns") else column.cast(nw.Datetime("us", kind.time_zone))
