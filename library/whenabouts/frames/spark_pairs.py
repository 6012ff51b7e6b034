"""Pairs of two Spark frames, classic or Connect, by Spark's own operators (`spark.native`); nothing is collected."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts.frames.kinds import FrameError, Given, given
from whenabouts.frames.times import DAY_US, columns_of
from whenabouts_cloud.pattern.condition import Condition

if TYPE_CHECKING:
    from pyspark.sql import Column

LOW, HIGH = "whenabouts_low", "whenabouts_high"  # columns of a frame while it is joined
Names = dict[str, str]


def joined(a: Given, b: Given, condition: Condition, keys: list[str], renamed: tuple[Names, Names]) -> Any:
    """The pairs as a frame with the renamed columns. Nulls and wrong ends of times raise when Spark computes them."""
    from whenabouts_cloud.spark.native import timing_join

    known_session(a)
    sides = [with_times(side) for side in (a, b)]
    pairs = timing_join(sides[0], sides[1], condition, stamps=(LOW, HIGH), keys=keys)
    wanted = [
        pairs[quoted(f"{prefix}_{own}")].alias(name)
        for prefix, names in zip("ab", renamed, strict=True)
        for own, name in names.items()
    ]
    return pairs.select(*wanted, "probability")


def known_session(side: Given) -> None:
    """Raise FrameError for a frame of a session that PySpark's functions do not know."""
    from pyspark.sql.utils import is_remote

    if type(side.native).__module__.startswith("pyspark.sql.connect") and not is_remote():
        raise FrameError(
            f"{side.name}: found a frame of a Spark Connect session that PySpark's functions do not know, expected one of "
            "pyspark.sql.SparkSession.builder.remote(...)"
        )


def with_times(side: Given) -> Any:
    """The frame with the columns LOW and HIGH, the times of each row as microseconds."""
    from pyspark.sql import functions as F

    kinds = dict(side.native.dtypes)
    begin, end = columns_of(list(kinds), side.name)
    low, high = _microseconds(side, begin, kinds[begin]), _microseconds(side, end, kinds[end])
    null = f"{side.name}: found a null in {begin}, expected a time in each row; leave those rows out"
    wrong = f"{side.name}: found a row whose {end} is before its {begin}, expected each to end at its begin or later"
    low = F.when(low.isNull(), F.raise_error(null)).otherwise(low)
    high = F.coalesce(high, low)
    high = F.when(high < low, F.raise_error(wrong)).otherwise(high)
    return side.native.withColumns({LOW: low, HIGH: high})


def _microseconds(side: Given, name: str, kind: str) -> "Column":
    """A column as microseconds. Timestamps without a zone count as UTC."""
    from pyspark.sql import functions as F

    column: Column = side.native[quoted(name)]
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return column.cast("bigint")
    if kind == "timestamp":
        return F.unix_micros(column)
    if kind == "timestamp_ntz":
        return F.expr(f"timestampdiff(MICROSECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', {quoted(name)})")
    if kind == "date":
        return F.unix_date(column).cast("bigint") * DAY_US
    raise FrameError(
        f"{side.name}: found {kind} in {name}, expected timestamps, dates or whole numbers of microseconds"
    )


def quoted(name: str) -> str:
    """A name of a column as Spark's expressions take it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


Find = Callable[[Given, npt.NDArray[np.int64], npt.NDArray[np.int64]], "nw.DataFrame[Any]"]


def in_task(find: Find, name: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What is found in a whole partition of a frame `with_times`; runs in a task. find: gets its rows, begins and ends."""
    parts = list(batches)
    if not parts:
        return
    table = pa.Table.from_batches(parts)
    low, high = (table[column].combine_chunks().to_numpy(zero_copy_only=False) for column in (LOW, HIGH))
    made: Any = nw.to_native(find(given(table.drop_columns([LOW, HIGH]), name), low, high))
    yield from made.combine_chunks().to_batches()
