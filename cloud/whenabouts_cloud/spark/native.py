"""A timing join of any two frames in Spark's own operators: buckets of time, an equality join, exact expressions.

Spark turns a join on a range into nested loops over all pairs. Here the doubled middle is cut into buckets as wide as the
band that a pair can span; a row of b is put into its own bucket and both neighbours, a row of a into one, so an equality
join meets each pair exactly once, and `expressions.holds` decides it. `floor`, not `div`, makes the buckets: `div` rounds
towards zero and would make the bucket around zero twice as wide.

It pays where pairs are many and stay in Spark; where a task can aggregate them, `ordered` and `batch` are faster. A key that
most rows carry is divided by the buckets as well. Cost: b is copied three times, and Spark shuffles both sides.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from whenabouts_cloud.correlation.condition import Condition
from whenabouts_cloud.spark.expressions import holds, probability_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STAMP_LIMIT = 1 << 61  # |stamp|: the doubled middle and the neighbouring bucket stay below 2^63


def timing_join(
    a: "DataFrame",
    b: "DataFrame",
    condition: Condition,
    *,
    stamps: tuple[str, str] = ("t_min", "t_max"),
    keys: Sequence[str] = (),
    probability: bool = True,
) -> "DataFrame":
    """All pairs of rows that satisfy the condition, exactly: every column of both with a_ and b_, and the probability.

    Stamps are BIGINT columns in the condition's ticks. `keys` are columns of both frames that must be equal. Rows in which
    a stamp is null, or lies outside +-2^61, or the interval is longer than any that can match, are in no pair.
    """
    width = max(condition.band(2 * condition.longest_us), 1)
    sides = []
    for name, frame in (("a", a), ("b", b)):
        renamed = frame.select(*(F.col(column).alias(f"{name}_{column}") for column in frame.columns))
        low, high = (F.col(f"{name}_{end}") for end in stamps)
        in_range = (low >= -STAMP_LIMIT) & (high <= STAMP_LIMIT) & (high >= low)
        useful = renamed.where(in_range & (high - low <= min(condition.longest_us, 2 * STAMP_LIMIT)))
        doubled = low + high - (condition.doubled_centre if name == "b" else 0)
        sides.append(useful.withColumn(f"{name}__bucket", _floor(doubled, width)))
    one, other = sides
    other = other.withColumn("b__bucket", F.explode(F.array(*(F.col("b__bucket") + n for n in (-1, 0, 1)))))
    equal = F.col("a__bucket") == F.col("b__bucket")
    for key in keys:
        equal &= F.col(f"a_{key}") == F.col(f"b_{key}")
    ends = [f"{name}_{end}" for name in "ab" for end in stamps]
    moved = F.col(ends[2]) + F.col(ends[3]) - F.col(ends[0]) - F.col(ends[1]) - condition.doubled_centre
    near = F.abs(moved) <= condition.band(2 * condition.longest_us)
    pairs = one.join(other, equal & near & holds(condition, *ends)).drop("a__bucket", "b__bucket")
    return pairs.withColumn("probability", probability_of(condition, *ends)) if probability else pairs


def _floor(value: "Column", width: int) -> "Column":
    """floor(value / width) in integers."""
    return F.call_function("div", value - F.pmod(value, F.lit(width)), F.lit(width))
