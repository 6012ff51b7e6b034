"""The correlation of a whole landing as one Spark job.

Time is cut into slabs of about equally many readings (quantiles, so that a burst or one reading from 1970 spoils nothing).
Side a goes into the slab its middle lies in, side b into every slab it can reach from, so each pair meets in exactly one
slab: that of its a. Slab and key shard make a group, and a group is the kernel's input. Repeats share everything with their
original, so they meet in the same group and are dropped there.

The middle is taken as floor(t_min / 2) + floor(t_max / 2), which cannot overflow and is at most 1 us off.
Cost: one pass for the quantiles, one shuffle of the narrow readings; a group is held in memory whole.
"""

import functools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from whenabouts_cloud.correlation.condition import Within
from whenabouts_cloud.correlation.pairs import READING, correlate, without_repeats
from whenabouts_cloud.rules.model import CorrelateRule
from whenabouts_cloud.spark.schema import INT64_MAX, LANDING, RESULT, readings_of, shard_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP_READINGS = 200_000  # readings aimed at in one group: some 60 MB in the worker
MAX_SLABS = 512  # of time; more would cost more in the comparison with every border than it saves


def read_landing(spark: "SparkSession", landing: str) -> "DataFrame":
    """The readings of a landing folder, only the columns a correlation needs."""
    return spark.read.schema(LANDING).parquet(landing)


def correlate_landing(
    rule: CorrelateRule, landing: "DataFrame", shards: int = 4, group_readings: int = GROUP_READINGS
) -> "DataFrame":
    """All pairs of a rule in a landing, with the columns of RESULT.

    Runs a small job at once, to place the slabs; the result itself is lazy like any frame.
    """
    readings = readings_of(rule, landing)
    middle = F.shiftright("t_min", 1) + F.shiftright("t_max", 1)  # an arithmetic shift is the floor of the half
    placed = readings.withColumn("middle", middle).withColumn("shard", shard_of(rule, shards))
    reach = reach_us(rule)
    slabs = _slabs(placed, reach, shards if rule.key_equal else 1, group_readings)
    a = _into_slabs(placed.where("side = 0"), slabs, 0)
    b = _into_slabs(placed.where("side = 1"), slabs, reach)
    work = functools.partial(_group, rule)
    return a.groupBy("slab", "shard").cogroup(b.groupBy("slab", "shard")).applyInArrow(work, RESULT)


def reach_us(rule: CorrelateRule) -> int:
    """How far apart the middles of a pair can be, with room for the rounding of both."""
    condition = Within(rule.d_us, rule.ct)
    return condition.band(2 * condition.longest_us) // 2 + 2


def _slabs(placed: "DataFrame", reach: int, shards: int, group_readings: int) -> list[tuple[int, int]]:
    """Half-open slabs [from, to) that cover all of time."""
    rows = placed.count()
    wanted = min(MAX_SLABS, rows // (group_readings * shards) + 1)
    borders: list[int] = []
    if wanted > 1:
        shares = [k / wanted for k in range(1, wanted)]
        cuts: Any = placed.agg(F.percentile_approx("middle", shares, 10_000)).first()
        for cut in cuts[0]:
            # Narrower slabs than the reach would only copy side b into ever more of them.
            if not borders or cut - borders[-1] > 2 * reach:
                borders.append(cut)
    return list(zip([-INT64_MAX - 1, *borders], [*borders, INT64_MAX], strict=True))


def _into_slabs(side: "DataFrame", slabs: list[tuple[int, int]], reach: int) -> "DataFrame":
    """Each row in every slab with an instant at most `reach` from its middle; with reach 0, in its own alone."""
    spark = side.sparkSession
    # The comparison is on widened borders rather than on middle +- reach, which could overflow.
    table = [(n, max(low - reach, -INT64_MAX - 1), min(high + reach, INT64_MAX)) for n, (low, high) in enumerate(slabs)]
    borders = spark.createDataFrame(table, "slab int, low long, high long")
    inside = (side["middle"] >= F.col("low")) & ((side["middle"] < F.col("high")) | (F.col("high") == INT64_MAX))
    joined = side.join(F.broadcast(borders), inside)
    # Aliases, so that Spark can tell the two sides apart though they come from one frame.
    return joined.select(*(joined[name].alias(name) for name in ("slab", "shard", *READING.names)))


def _group(rule: CorrelateRule, a: pa.Table, b: pa.Table) -> pa.Table:
    return correlate(rule, *(without_repeats(side.select(READING.names)) for side in (a, b)))
