"""The probability that two times are as far apart as a condition says, as a column of any library."""

import re
from datetime import timedelta
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts.frames.arrow import array_of
from whenabouts.frames.kinds import FrameError
from whenabouts.frames.rows import PROBABILITY
from whenabouts.frames.times import as_microseconds
from whenabouts.intervals import microseconds
from whenabouts.pairs import read_condition
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.pattern.plan import TIME_LIMIT

Column = TypeVar("Column")
NAMES = ("a_min", "a_max", "b_min", "b_max")


def within_probability(
    a_min: Column, a_max: Column, b_min: Column, b_max: Column, condition: "str | timedelta | int | Condition"
) -> Column:
    """For each row the probability that a time of [a_min, a_max] and one of [b_min, b_max] satisfy a condition.

    Columns are of one kind, and so is the result: Series of pandas or Polars, arrays of PyArrow or NumPy, expressions of
    Polars, of DuckDB (`ColumnExpression("a_min")`; whole microseconds, as from `epoch_us`) or of Spark (`F.col("a_min")`;
    timestamps with a zone, or whole microseconds). condition: a distance that the times may have at most, "2 s", a timedelta
    or microseconds; or one as in rules, "@b - @a IN [1 s, 5 s]", whose OVER does not matter here.

    Times are as in `correlate`. Null where one of the four is null, or an interval ends before it begins. Each time is
    uniform between its limits and independent of the other. Exact to 1e-12. Cost: some array operations; expressions are
    evaluated where they are used.

    Raises:
        RuleError: the condition has mistakes.
        FrameError: the columns are of different kinds, or hold no times; or the distance is none.

    >>> import pyarrow as pa
    >>> within_probability(*map(pa.array, ([0, 0], [10, 10], [5, 40], [15, None])), 5).to_pylist()
    [0.5, None]
    """
    limits = _limits(condition)
    columns: tuple[Any, ...] = (a_min, a_max, b_min, b_max)
    kinds = [type(one).__module__.partition(".")[0].lstrip("_") for one in columns]
    if len(set(kinds)) > 1:
        raise FrameError(f"columns: found columns of {', '.join(dict.fromkeys(kinds))}, expected four of one kind")
    kind = "expression" if type(a_min).__name__ in ("Expr", "Column") else "series"
    made: Any
    if kinds[0] == "duckdb":
        made = _duckdb(columns, *limits)
    elif kinds[0] == "pyspark" and kind == "expression":
        from whenabouts.frames.spark_columns import probability

        made = probability(columns, *limits)
    elif kinds[0] == "polars" and kind == "expression":
        made = _polars(columns, *limits)
    else:
        made = _series(columns, *limits)
    result: Column = made
    return result


def _limits(condition: "str | timedelta | int | Condition") -> tuple[int, int]:
    """The limits of b - a, microseconds."""
    if isinstance(condition, str) and "@" in condition:
        condition = read_condition(condition if re.search(r"\bOVER\b", condition) else f"{condition} OVER 100 %")[0]
    if isinstance(condition, Condition):
        return condition.lo_us, condition.hi_us
    distance = microseconds(condition, "condition")
    if distance >= TIME_LIMIT:
        raise FrameError(f"condition: found a distance of {distance} us, expected less than 2^60")
    return -distance, distance


def _series(columns: tuple[Any, ...], lo: int, hi: int) -> Any:
    """The probabilities as a column like the first one."""
    arrays = [_arrow(one, name) for one, name in zip(columns, NAMES, strict=True)]
    if len({len(one) for one in arrays}) > 1:
        raise FrameError(f"columns: found {', '.join(str(len(one)) for one in arrays)} rows, expected as many in each")
    first = columns[0]
    if (
        hasattr(first, "index")
        and hasattr(first.index, "equals")
        and not all(map(first.index.equals, _indices(columns)))
    ):
        raise FrameError("columns: found Series with different indices, expected those of one frame")
    up = (False, True, False, True)
    stamps = [as_microseconds(one, name, "", end) for one, name, end in zip(arrays, NAMES, up, strict=True)]
    chance = _probability(stamps, lo, hi)
    if isinstance(first, np.ndarray):
        return chance
    values = pa.array(chance, from_pandas=True)
    if isinstance(first, pa.Array | pa.ChunkedArray):
        return pa.chunked_array([values]) if isinstance(first, pa.ChunkedArray) else values
    like = nw.from_native(first, series_only=True)
    if like.implementation.is_pandas():
        import pandas as pd

        return pd.Series(chance, index=first.index, name=PROBABILITY)
    made: Any = nw.new_series(PROBABILITY, values.to_pylist(), nw.Float64(), backend=like.implementation)
    return made.to_native()


def _indices(columns: tuple[Any, ...]) -> list[Any]:
    return [one.index for one in columns]


def _arrow(column: Any, name: str) -> Any:
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    if isinstance(column, np.ndarray):
        return pa.array(column)
    try:
        series: Any = nw.from_native(column, series_only=True)
    except TypeError:
        raise FrameError(
            f"{name}: found {type(column).__name__}, expected a column: a Series, an array, or an expression of Polars, "
            "DuckDB or Spark"
        ) from None
    return array_of(series.alias("column").to_frame(), "column", name)


def _probability(stamps: list[Any], lo: int, hi: int) -> npt.NDArray[np.float64]:
    """The probabilities of columns of microseconds, nan where there is none."""
    from whenabouts_cloud.correlation.batch.matches_numpy import probability
    from whenabouts_cloud.correlation.batch.reach import Terms

    known = np.ones(len(stamps[0]), np.bool_)
    for one in stamps:
        known &= one.is_valid().to_numpy(zero_copy_only=False)
    x_min, x_max, y_min, y_max = (one.fill_null(0).to_numpy(zero_copy_only=False)[known] for one in stamps)
    furthest = [int(np.abs(one).max(initial=0)) for one in (x_min, x_max, y_min, y_max)]
    if max(furthest) >= TIME_LIMIT:
        raise FrameError(f"columns: found a time {max(furthest)} us from 1970, expected less than 2^60")
    valid = (x_min <= x_max) & (y_min <= y_max)
    chance = np.full(len(known), np.nan)
    if valid.any():
        x_min, x_max, y_min, y_max = (one[valid] for one in (x_min, x_max, y_min, y_max))
        apart = np.abs((y_min - x_min) + (y_max - x_max) - (lo + hi))
        part = probability(apart, x_max - x_min, y_max - y_min, Terms(lo, hi, 1, 1))
        chance[np.flatnonzero(known)[valid]] = np.maximum(part, 0.0)
    return chance


def _polars(columns: tuple[Any, ...], lo: int, hi: int) -> Any:
    import polars as pl

    def of_struct(rows: Any) -> Any:
        return _series(tuple(rows.struct.field(name) for name in NAMES), lo, hi)

    named = [one.alias(name) for one, name in zip(columns, NAMES, strict=True)]
    return pl.struct(*named).map_batches(of_struct, return_dtype=pl.Float64, is_elementwise=True).alias(PROBABILITY)


def _duckdb(columns: tuple[Any, ...], lo: int, hi: int) -> Any:
    """P(Y - X <= hi) + P(Y - X >= lo) - 1, each the distribution of the sum of two uniform times."""
    from duckdb import CaseExpression, ConstantExpression, FunctionExpression

    def number(value: float) -> Any:
        return ConstantExpression(value)

    def least(one: Any, other: Any) -> Any:
        return FunctionExpression("least", one, other)

    a_min, a_max, b_min, b_max = (one.cast("HUGEINT") for one in columns)
    w_a, w_b = a_max - a_min, b_max - b_min
    low, high = least(w_a, w_b).cast("DOUBLE"), FunctionExpression("greatest", w_a, w_b).cast("DOUBLE")

    def share(part: Any, rest: Any) -> Any:
        """The distribution where `part` of the sum is inside, and the rest is not."""
        inside, outside = part.cast("DOUBLE"), rest.cast("DOUBLE")
        rising = inside * inside / (number(2.0) * low * high)
        falling = number(1.0) - outside * outside / (number(2.0) * low * high)
        return (
            CaseExpression(outside <= number(0.0), number(1.0))
            .when(inside <= number(0.0), number(0.0))
            .when(inside < low, rising)
            .when(inside <= high, (inside - low / number(2.0)) / high)
            .otherwise(falling)
        )

    before = share(number(hi) + a_max - b_min, b_max - a_min - number(hi))
    after = share(b_max - a_min - number(lo), number(lo) + a_max - b_min)
    chance = FunctionExpression("greatest", before + after - number(1.0), number(0.0))
    return CaseExpression((w_a >= number(0)) & (w_b >= number(0)), chance).alias(PROBABILITY)
