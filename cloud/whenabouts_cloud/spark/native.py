"""A timing join of any two frames in Spark's own operators: buckets of time, an equality join, exact expressions.

Spark turns a join on a range into nested loops over all pairs. Here the doubled middle is cut into buckets of
BUCKET_BANDS times the band that a pair can span; a row of a is put into its own bucket, a row of b into every bucket it
can reach, which is one or two, so an equality join tests each pair exactly once, and integers decide it. `floor`, not
`div`, makes the buckets: `div` rounds towards zero and would make the bucket around zero twice as wide.

The test of a pair must stay below the 8000 bytecodes up to which Java compiles a method, including the code that Spark
copies for columns; so values that depend on one side are columns of that side, and none of them is null.

It pays if pairs are many and stay in Spark; if a task can aggregate them, `sorted_files` is faster. Buckets also divide
a key that most rows have. Cost: Spark shuffles both sides, b with a quarter more rows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.spark.probability_columns import holds, share

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STAMP_LIMIT = 1 << 61  # |stamp|: the doubled middle and the neighbouring bucket stay below 2^63
BUCKET_BANDS = 8  # more would copy fewer rows of b (now one in four) but test more pairs that do not match


def timing_join(
    a: "DataFrame",
    b: "DataFrame",
    condition: Condition,
    *,
    stamps: tuple[str, str] = ("t_min", "t_max"),
    keys: Sequence[str] = (),
    probability: bool = True,
) -> "DataFrame":
    """Return all pairs of rows that satisfy the condition, exactly: columns of both as a_ and b_, and the probability.

    Stamps are BIGINT columns in the condition's ticks. `keys` are columns of both frames that must be equal. Rows in which a
    stamp is null or outside +-2^61, or the interval is longer than any that can match, are in no pair.
    """
    band = condition.band(2 * condition.longest_us)
    if band + abs(condition.doubled_centre) >= 2 * STAMP_LIMIT:
        raise ValueError(
            f"condition: found {condition!r}, whose pairs are up to {band} doubled ticks apart, expected less than 2^62; "
            "take narrower limits or a higher confidence"
        )
    width = BUCKET_BANDS * max(band, 1)
    one = _side("a", a, condition, stamps, 0)
    other = _side("b", b, condition, stamps, condition.doubled_centre)
    middle = F.col("b__middle")
    first, last = _floor(middle - band, width), _floor(middle + band, width)
    length = F.col("a__length")
    one = one.withColumns(
        {
            "a__bucket": _floor(F.col("a__middle"), width),
            "a__over": length - condition.width,
            "a__under": -length - condition.width,
        }
    )
    other = other.withColumn("b__bucket", F.explode(F.sequence(first, last)))
    equal = F.col("a__bucket") == F.col("b__bucket")
    for key in keys:
        equal &= F.col(f"a_{key}") == F.col(f"b_{key}")
    apart = F.abs(middle - F.col("a__middle"))
    ends = [f"{name}_{end}" for name in "ab" for end in stamps]
    exact = _holds(condition, apart) if _fits(condition) else holds(condition, *ends)
    pairs = one.join(other, equal & (apart <= band) & exact)
    if probability:
        pairs = pairs.withColumn("probability", _probability(apart))
    helpers = [f"{name}__{x}" for name in "ab" for x in ("middle", "length", "bucket")]
    return pairs.drop(*helpers, "a__over", "a__under")


def _probability(apart: "Column") -> "Column":
    """Probability from the same columns as `_holds`, to avoid repeated work on the stamps; the halved cuts are in ticks."""
    w_a, w_b, over = (F.col(name).cast("double") for name in ("a__length", "b__length", "a__over"))
    rests = [(over + w_b + by) / 2 for by in (apart.cast("double"), -apart.cast("double"))]
    return share(w_a, w_b, [(w_a + w_b - rest, rest) for rest in rests])


def _side(name: str, frame: "DataFrame", condition: Condition, stamps: tuple[str, str], centre: int) -> "DataFrame":
    """The rows that can be in a pair, columns renamed, with the length, and the doubled middle minus the centre."""
    renamed = frame.select(*(F.col(column).alias(f"{name}_{column}") for column in frame.columns))
    low, high = (F.col(f"{name}_{end}") for end in stamps)
    in_range = (low >= -STAMP_LIMIT) & (high <= STAMP_LIMIT) & (high >= low)
    useful = renamed.where(in_range & (high - low <= min(condition.longest_us, 2 * STAMP_LIMIT)))
    zero = F.lit(0)  # never used; it shows Spark that there is no null, which halves the generated code
    made = {"middle": low + high - centre, "length": high - low}
    return useful.withColumns({f"{name}__{x}": F.coalesce(value, zero) for x, value in made.items()})


def _fits(condition: Condition) -> bool:
    """True if all numbers in `_holds` fit 64 bits for lengths that can match."""
    return 64 * (condition.longest_us + 1) ** 2 * condition.ct.denominator < 1 << 63


def _holds(condition: Condition, apart: "Column") -> "Column":
    """Test of the condition from the distance of the doubled middles and the lengths, in 64-bit integers only.

    The part cut off by the condition at either end is, in doubled units, r = T - D +- |M|, and its share of the whole is
    (r+^2 - (r - 2 w_a)+^2 - (r - 2 w_b)+^2) / 8 w_a w_b for r <= 2T, or r+ / 2T where one of the two is a point
    (correlation mathematics, section 2, from the other end). The sum of the cuts must not exceed 1 - p/q.
    """
    p, q = condition.ct.numerator, condition.ct.denominator
    w_a, w_b, over, under = (F.col(name) for name in ("a__length", "b__length", "a__over", "a__under"))
    near, far = over + w_b + apart, over + w_b - apart

    def squared(x: "Column") -> "Column":
        return F.greatest(x, F.lit(0).cast("bigint")) * x

    cut = squared(near) - squared(under + w_b + apart) - squared(over - w_b + apart)
    cut += squared(far) - squared(under + w_b - apart) - squared(over - w_b - apart)
    total = w_a + w_b
    return (
        F.when(near <= 0, F.lit(True))
        .when(near >= 2 * total, F.lit(False))
        .when(w_a * w_b == 0, (near + F.greatest(far, F.lit(0).cast("bigint"))) * q <= total * (2 * (q - p)))
        .otherwise(cut * q <= w_a * w_b * (8 * (q - p)))
    )


def _floor(value: "Column", width: int) -> "Column":
    """floor(value / width) in integers."""
    return F.call_function("div", value - F.pmod(value, F.lit(width)), F.lit(width))
