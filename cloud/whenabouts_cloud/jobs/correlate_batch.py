"""The correlation of a whole landing as one Spark job.

Readings are divided into shards by key, and each shard's time into slabs of about equally many of its readings: quantiles,
so that neither a burst, nor one reading from 1970, nor a key that most readings carry makes a group large. Side a goes into
the slab its middle lies in, side b into every slab it can reach from, so each pair meets in exactly one slab: that of its a,
which is also where it is known whether an a is in no pair and which pairs are its best. Slab and shard make a group, and a
group is the kernel's input. Repeats share everything with their original, so they meet in the same group and are dropped
there.

The middle is taken as floor(t_min / 2) + floor(t_max / 2), which cannot overflow and is at most 1 us off.
Cost: one shuffle of the narrow readings, and for landings above half of GROUP_READINGS rows a pass for the quantiles before
it. A group is held in memory whole; it is larger than wanted where more readings than that lie within twice the reach of the
condition, as slabs are never narrower.
"""

import functools
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from whenabouts_cloud.correlation.pairs import READING, condition_of, correlate, without_repeats
from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.event_ipc import PACKED_RESULT
from whenabouts_cloud.jobs.landing import (
    LANDING,
    LOOK_UP,
    OUTPUT,
    counts_row,
    readings_of,
    result_rows,
    shard_of,
)
from whenabouts_cloud.jobs.output.task_files import Tell
from whenabouts_cloud.rules.model import CorrelateRule

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

GROUP_READINGS = 200_000  # readings aimed at in one group, which a worker holds in memory whole
BORDERS = ("slab", "slab_shard", "low", "high", "wide_low", "wide_high")
MAX_SLABS = 512  # of time in a shard; more would cost more in the comparison with every border than it saves

Slab = tuple[int, int, int]  # shard, and middles [from, to)


def read_landing(spark: "SparkSession", landing: str) -> "DataFrame":
    """The readings of a landing folder, only the columns a correlation needs."""
    return spark.read.schema(LANDING).options(**LOOK_UP).parquet(landing)


def correlate_landing(
    rule: CorrelateRule, landing: "DataFrame", shards: int = 4, group_readings: int = GROUP_READINGS
) -> "DataFrame":
    """The result of a rule for a landing, with the columns of RESULT.

    May run small jobs at once, to place the slabs; the result itself is lazy like any frame.
    """
    rows = correlate_landing_counted(rule, landing, shards, group_readings)
    return rows.where("note is null").drop("note")


def correlate_landing_counted(
    rule: CorrelateRule,
    landing: "DataFrame",
    shards: int = 4,
    group_readings: int = GROUP_READINGS,
    tell: Tell | None = None,
) -> "DataFrame":
    """The same with rows that tell what each group counted (OUTPUT), or told in the way of a sink."""
    readings = readings_of(rule, landing)
    middle = F.shiftright("t_min", 1) + F.shiftright("t_max", 1)  # an arithmetic shift is the floor of the half
    placed = readings.withColumn("middle", middle).withColumn("shard", shard_of(rule, shards))
    reach, shift = reach_us(rule)
    a, b = placed.where("side = 0"), placed.where("side = 1")
    if 2 * landing.count() <= group_readings:  # a reading may belong to both streams
        a, b = _undivided(a), _undivided(b)
    else:
        slabs = _slabs(placed, reach, group_readings)
        a, b = _into_slabs(a, slabs, 0, 0), _into_slabs(b, slabs, reach, shift)
    both = a.groupBy("slab", "shard").cogroup(b.groupBy("slab", "shard"))
    if tell is None:
        return both.applyInArrow(functools.partial(_group, rule), OUTPUT)
    return both.applyInArrow(functools.partial(_told, rule, tell), PACKED_RESULT)


def reach_us(rule: CorrelateRule) -> tuple[int, int]:
    """How far from a's middle plus the second number b's can be in a pair, with room for the rounding of both."""
    condition = condition_of(rule)
    return condition.band(2 * condition.longest_us) // 2 + 3, condition.doubled_centre // 2


def _slabs(placed: "DataFrame", reach: int, group_readings: int) -> list[Slab]:
    """For each shard half-open slabs that cover all of time."""
    shares = [k / MAX_SLABS for k in range(1, MAX_SLABS)]
    quantiles = F.percentile_approx("middle", shares, 10_000)
    slabs: list[Slab] = []
    for shard, rows, cuts in placed.groupBy("shard").agg(F.count("*"), quantiles).collect():
        wanted = min(MAX_SLABS, rows // group_readings + 1)
        borders: list[int] = []
        for k in range(1, wanted):
            cut = cuts[k * MAX_SLABS // wanted - 1]
            # Narrower slabs than the reach would only copy side b into ever more of them.
            if not borders or cut - borders[-1] > 2 * reach:
                borders.append(cut)
        slabs += [(shard, *ends) for ends in zip([INT64_MIN, *borders], [*borders, INT64_MAX], strict=True)]
    return slabs


def _undivided(side: "DataFrame") -> "DataFrame":
    """A shard as one slab."""
    return _grouped(side.withColumns({"slab": F.col("shard"), "home": F.lit(True)}))


def _into_slabs(side: "DataFrame", slabs: list[Slab], reach: int, shift: int) -> "DataFrame":
    """Each row in every slab of its shard that is at most `reach` from its middle less `shift`; `home` marks one of them."""

    # The borders are moved and widened rather than the middle, which could overflow.
    def moved(border: int, by: int) -> int:
        return border if border in (INT64_MIN, INT64_MAX) else min(max(border + by, INT64_MIN), INT64_MAX)

    table = [
        (n, shard, moved(low, shift), moved(high, shift), moved(low, shift - reach), moved(high, shift + reach))
        for n, (shard, low, high) in enumerate(slabs)
    ]
    columns = [pa.array([row[n] for row in table], pa.int64()) for n in range(len(BORDERS))]
    # As Arrow; for rows of Python's Spark would start workers of another kind.
    borders = side.sparkSession.createDataFrame(pa.table(columns, names=BORDERS))
    inside = (F.col("shard") == F.col("slab_shard")) & _between("wide_low", "wide_high")
    return _grouped(side.join(F.broadcast(borders), inside).withColumn("home", _between("low", "high")))


def _grouped(side: "DataFrame") -> "DataFrame":
    """The columns that a group is given."""
    # Aliases, so that Spark can tell the two sides apart though they come from one frame.
    return side.select(*(side[name].alias(name) for name in ("slab", "shard", "home", *READING.names)))


def _between(low: str, high: str) -> "Column":
    # The last border is never reached: the sum of two halves is below INT64_MAX.
    return (F.col("middle") >= F.col(low)) & (F.col("middle") < F.col(high))


def _told(rule: CorrelateRule, tell: Tell, a: pa.Table, b: pa.Table) -> pa.Table:
    return pa.table({"told": pa.array(tell(_group(rule, a, b)), pa.binary())})


def _group(rule: CorrelateRule, a: pa.Table, b: pa.Table) -> pa.Table:
    """The result of one group, and a row of counts. A copy of a reading in a neighbouring slab is not counted again."""
    once = [without_repeats(side) for side in (a, b)]
    rows = correlate(rule, *once)
    read = sum(pc.sum(side["home"]).as_py() or 0 for side in (a, b))
    distinct = sum(pc.sum(side["home"]).as_py() or 0 for side in once)
    unmatched = rows["probability"].null_count
    counts = {
        "readings": read,
        "repeats": read - distinct,
        "pairs": rows.num_rows - unmatched,
        "unmatched": unmatched,
    }
    return pa.concat_tables([result_rows(rows), counts_row(counts)])
