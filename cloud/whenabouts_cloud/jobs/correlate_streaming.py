"""The correlation of a landing as it grows: file streams of readings and promises -> state per key shard -> pairs.

Readings go to the shard of their key, promises of gateways to every shard. A shard is one row of Spark's state: the snapshot
of a `CorrelationShard`. Few coarse shards, because the operator costs per key and per
state access, hardly per row. applyInPandasWithState is the operator: measured with 2000 readings a batch and 4 shards on
two cores it takes 1.1 s a batch, transformWithStateInPandas 1.7 s, and that one loops over rows in Python.

A promise read in one invocation of a shard counts from the next one on (`shard` says why). For that, a shard's next
invocation must hold every reading of it that was visible by then: a listing takes all there is as long as nothing limits
the files per trigger, and a shard is invoked in every micro-batch that has a row for it.

Told are rows of the result, readings to set aside, and for each invocation one row that says in JSON what it did (OUTPUT).

Micro-batches must not be limited by maxFilesPerTrigger, so starting on a long history reads all of it in the first one.
"""

import functools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from whenabouts_cloud.correlation.pairs import READING
from whenabouts_cloud.correlation.stream.online import MAX_ROWS
from whenabouts_cloud.correlation.stream.shard import CorrelationShard
from whenabouts_cloud.frontier.gateways import Promise
from whenabouts_cloud.jobs.event_ipc import PACKED_RESULT
from whenabouts_cloud.jobs.landing import (
    FRONTIER,
    LANDING,
    LOOK_UP,
    counts_row,
    late_rows,
    readings_of,
    result_rows,
    shard_of,
    sides_of,
)
from whenabouts_cloud.jobs.output.formats import PAIRS
from whenabouts_cloud.jobs.output.sink import Report, ResultSink
from whenabouts_cloud.jobs.output.task_files import Tell
from whenabouts_cloud.rules.model import CorrelateRule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PROMISE = 2  # `side` of a promise for stream a; 3 is one for stream b. Its time is in t_max.
STATE = "online binary, best binary, frontiers string"
ALL_AGES = "36500d"  # the file source forgets files older than the newest by a week otherwise


def start_query(
    rule: CorrelateRule,
    spark: "SparkSession",
    landing: Path,
    out: Path,
    shards: int,
    trigger_s: float,
    report: Report | None = None,
    max_rows: int = MAX_ROWS,
) -> "StreamingQuery":
    """Start publishing a rule's result below `out`, going on from its checkpoint if there is one.

    The landing folder must exist; its folder of promises is made if the ingest has not yet done so, for Spark to watch.
    """
    (landing / "_frontier").mkdir(exist_ok=True)
    make = functools.partial(correlate_stream, rule, spark, str(landing.resolve()), shards, max_rows)
    return ResultSink(PAIRS, out, report).follow(make, trigger_s)


def correlate_stream(
    rule: CorrelateRule, spark: "SparkSession", landing: str, shards: int, max_rows: int, tell: Tell
) -> "DataFrame":
    """The streaming frame of a rule's pairs and counts, told in the way of a sink, over a landing folder that exists."""
    readings = spark.readStream.option("maxFileAge", ALL_AGES).schema(LANDING).options(**LOOK_UP).parquet(landing)
    promises = spark.readStream.option("maxFileAge", ALL_AGES).schema(FRONTIER).json(f"{landing}/_frontier")
    shards = shards if rule.key_equal else 1
    rows = readings_of(rule, readings).withColumn("shard", shard_of(rule, shards))
    rows = rows.select("shard", "side", *READING.names).unionByName(_promises_of(rule, promises, shards))
    work = functools.partial(_advance_shard, rule, max_rows, tell)
    grouped = rows.groupBy("shard")
    return grouped.applyInPandasWithState(work, PACKED_RESULT, STATE, "append", GroupStateTimeout.NoTimeout)


def _promises_of(rule: CorrelateRule, promises: "DataFrame", shards: int) -> "DataFrame":
    """For every shard the promises about a stream of the rule, in the shape of readings."""
    known = promises.where("site is not null and gateway is not null and frontier_us is not null")
    streams = known.select("site", "gateway", "frontier_us", F.explode("streams").alias("stream"))
    sided = streams.withColumn("side", F.explode(sides_of(rule, first=PROMISE)))
    every = sided.withColumn("shard", F.explode(F.sequence(F.lit(0), F.lit(shards - 1))))
    # Zeros, not nulls: pandas would turn the integers of the whole column into floats on the way to Python.
    zero = F.lit(0).cast("long")
    return every.select(
        "shard", "side", "site", "gateway", zero.alias("boot"), zero.alias("seq"), "stream",
        F.lit(None).cast("string").alias("key"), zero.alias("t_min"), F.col("frontier_us").alias("t_max"),
    )  # fmt: skip


def _advance_shard(
    rule: CorrelateRule,
    max_rows: int,
    tell: Tell,
    key: tuple[int],
    rows: Iterator[pd.DataFrame],
    state: GroupState,
) -> Iterator[pd.DataFrame]:
    """Adapter between Spark's state and `CorrelationShard`."""
    # Of Spark's own padding with empty frames; without effect, as there is a row of output for every shard.
    warnings.filterwarnings("ignore", message="The behavior of DataFrame concatenation", category=FutureWarning)
    shard = CorrelationShard(rule, max_rows)
    if state.exists:
        online, best, frontiers = state.get
        shard.restore((bytes(online), bytes(best), frontiers))
    arrived = pd.concat(list(rows), ignore_index=True)
    readings = [_table(arrived[arrived["side"] == side]) for side in (0, 1)]
    promises = [_promises(arrived[arrived["side"] == PROMISE + side]) for side in (0, 1)]
    told, late = shard.step(readings, promises)
    state.update(shard.snapshot())
    counts = counts_row({"shard": int(key[0]), **shard.counts()})
    for row in tell(pa.concat_tables([result_rows(told), late_rows(rule, late), counts])):
        yield pd.DataFrame({"told": [row]})


def _table(rows: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(rows[READING.names], schema=READING, preserve_index=False)


def _promises(rows: pd.DataFrame) -> list[Promise]:
    return [
        (f"{site}/{name}", int(us)) for site, name, us in rows[["site", "gateway", "t_max"]].itertuples(index=False)
    ]
