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
import pyarrow.compute as pc
from pyspark.sql import functions as F

from whenabouts_cloud.correlation.pairs import READING, correlate, without_repeats
from whenabouts_cloud.rules.model import CorrelateRule
from whenabouts_cloud.spark.schema import (
    INT64_MAX,
    INT64_MIN,
    LANDING,
    LOOK_UP,
    OUTPUT,
    counts_row,
    pair_rows,
    readings_of,
    shard_of,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

GROUP_READINGS = 200_000  # readings aimed at in one group, which a worker holds in memory whole
MAX_SLABS = 512  # of time; more would cost more in the comparison with every border than it saves


def read_landing(spark: "SparkSession", landing: str) -> "DataFrame":
    """The readings of a landing folder, only the columns a correlation needs."""
    return spark.read.schema(LANDING).options(**LOOK_UP).parquet(landing)


def correlate_landing(
    rule: CorrelateRule, landing: "DataFrame", shards: int = 4, group_readings: int = GROUP_READINGS
) -> "DataFrame":
    """All pairs of a rule in a landing, with the columns of RESULT.

    Runs a small job at once, to place the slabs; the result itself is lazy like any frame.
    """
    rows = correlate_landing_counted(rule, landing, shards, group_readings)
    return rows.where("counts is null").drop("counts")


def correlate_landing_counted(
    rule: CorrelateRule, landing: "DataFrame", shards: int = 4, group_readings: int = GROUP_READINGS
) -> "DataFrame":
    """The same with rows that tell what each group counted, as the sink takes them (OUTPUT)."""
    readings = readings_of(rule, landing)
    middle = F.shiftright("t_min", 1) + F.shiftright("t_max", 1)  # an arithmetic shift is the floor of the half
    placed = readings.withColumn("middle", middle).withColumn("shard", shard_of(rule, shards))
    reach = reach_us(rule)
    slabs = _slabs(placed, reach, shards if rule.key_equal else 1, group_readings)
    a = _into_slabs(placed.where("side = 0"), slabs, 0)
    b = _into_slabs(placed.where("side = 1"), slabs, reach)
    work = functools.partial(_group, rule)
    return a.groupBy("slab", "shard").cogroup(b.groupBy("slab", "shard")).applyInArrow(work, OUTPUT)


def reach_us(rule: CorrelateRule) -> int:
    """How far apart the middles of a pair can be, with room for the rounding of both."""
    condition = rule.condition
    return (abs(condition.doubled_centre) + condition.band(2 * condition.longest_us)) // 2 + 2


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
    return list(zip([INT64_MIN, *borders], [*borders, INT64_MAX], strict=True))


def _into_slabs(side: "DataFrame", slabs: list[tuple[int, int]], reach: int) -> "DataFrame":
    """Each row in every slab with an instant at most `reach` from its middle; `home` marks the one its middle is in."""
    # The comparison is on widened borders rather than on middle +- reach, which could overflow.
    table = [
        (n, low, high, max(low - reach, INT64_MIN), min(high + reach, INT64_MAX)) for n, (low, high) in enumerate(slabs)
    ]
    borders = side.sparkSession.createDataFrame(table, "slab int, low long, high long, wide_low long, wide_high long")
    inside = _between("wide_low", "wide_high")
    joined = side.join(F.broadcast(borders), inside).withColumn("home", _between("low", "high"))
    # Aliases, so that Spark can tell the two sides apart though they come from one frame.
    return joined.select(*(joined[name].alias(name) for name in ("slab", "shard", "home", *READING.names)))


def _between(low: str, high: str) -> "Column":
    last = F.col(high) == INT64_MAX
    return (F.col("middle") >= F.col(low)) & ((F.col("middle") < F.col(high)) | last)


def _group(rule: CorrelateRule, a: pa.Table, b: pa.Table) -> pa.Table:
    """The pairs of one group, and a row of counts. A copy of a reading in a neighbouring slab is not counted again."""
    once = [without_repeats(side) for side in (a, b)]
    pairs = correlate(rule, *once)
    read = sum(pc.sum(side["home"]).as_py() or 0 for side in (a, b))
    distinct = sum(pc.sum(side["home"]).as_py() or 0 for side in once)
    counts = {"readings": read, "repeats": read - distinct, "pairs": pairs.num_rows}
    return pa.concat_tables([pair_rows(pairs), counts_row(counts)])
