"""A timing join of any two frames in Spark's own operators: buckets of time, an equality join, exact expressions.

Spark turns a join on a range into nested loops over all pairs. Here the doubled middle is cut into buckets as wide as the
band that a pair can span; a row of b is put into its own bucket and both neighbours, a row of a into one, so an equality
join meets each pair exactly once, and integers decide it. `floor`, not `div`, makes the buckets: `div` rounds
towards zero and would make the bucket around zero twice as wide.

It pays where pairs are many and stay in Spark; where a task can aggregate them, `ordered` and `batch` are faster. A key that
most rows carry is divided by the buckets as well. Cost: b is copied three times, and Spark shuffles both sides.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from whenabouts_cloud.correlation.condition import Condition
from whenabouts_cloud.spark.expressions import probability_of

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
    band = condition.band(2 * condition.longest_us)
    sides = []
    for name, frame in (("a", a), ("b", b)):
        renamed = frame.select(*(F.col(column).alias(f"{name}_{column}") for column in frame.columns))
        low, high = (F.col(f"{name}_{end}") for end in stamps)
        in_range = (low >= -STAMP_LIMIT) & (high <= STAMP_LIMIT) & (high >= low)
        useful = renamed.where(in_range & (high - low <= min(condition.longest_us, 2 * STAMP_LIMIT)))
        middle = low + high - (condition.doubled_centre if name == "b" else 0)
        sides.append(useful.withColumns({f"{name}__middle": middle, f"{name}__length": high - low}))
    one, other = sides
    buckets = [_floor(F.col(f"{name}__middle"), max(band, 1)) for name in "ab"]
    one = one.withColumn("a__bucket", buckets[0])
    other = other.withColumn("b__bucket", F.explode(F.array(*(buckets[1] + n for n in (-1, 0, 1)))))
    equal = F.col("a__bucket") == F.col("b__bucket")
    for key in keys:
        equal &= F.col(f"a_{key}") == F.col(f"b_{key}")
    apart = F.abs(F.col("b__middle") - F.col("a__middle"))
    ends = [f"{name}_{end}" for name in "ab" for end in stamps]
    pairs = one.join(other, equal & (apart <= band) & _holds(condition, apart))
    pairs = pairs.drop(*(f"{name}__{x}" for name in "ab" for x in ("middle", "length", "bucket")))
    return pairs.withColumn("probability", probability_of(condition, *ends)) if probability else pairs


def _holds(condition: Condition, apart: "Column") -> "Column":
    """The condition from the distance of the doubled middles and the lengths, in integers alone.

    In doubled units s, s' = D + T -+ |M|, clamped to [0, 2T], and N as in `expressions`: (N(s) + N(s') - W) q >= p W with
    W = 8 w_a w_b; with one point (s + s' - 2T) q >= p 2T; with two |M| <= D, which is the first test. The lengths are
    at most those that can match, so it is known beforehand whether 64 bits are enough; else it is DECIMAL(38, 0).
    """
    p, q, longest = condition.ct.numerator, condition.ct.denominator, condition.longest_us
    kind = "bigint" if 64 * (longest + 1) ** 2 * q < 1 << 63 else "decimal(38,0)"
    w_a, w_b = (F.col(f"{name}__length").cast(kind) for name in "ab")
    total = w_a + w_b
    ends = [F.greatest(F.least(condition.width + total + by, 2 * total), F.lit(0).cast(kind)) for by in (-apart, apart)]

    def area(s: "Column") -> "Column":
        cut = [F.greatest(s - 2 * w, F.lit(0).cast(kind)) for w in (w_a, w_b)]
        return s * s - cut[0] * cut[0] - cut[1] * cut[1]

    whole = 8 * w_a * w_b
    return (
        F.when(apart + total <= condition.width, F.lit(True))
        .when(total == 0, F.lit(False))
        .when(whole == 0, (ends[0] + ends[1] - 2 * total) * q >= 2 * total * p)
        .otherwise((area(ends[0]) + area(ends[1]) - whole) * q >= whole * p)
    )


def _floor(value: "Column", width: int) -> "Column":
    """floor(value / width) in integers."""
    return F.call_function("div", value - F.pmod(value, F.lit(width)), F.lit(width))
