"""A rule about the states of groups over a landing as it grows: readings and promises -> state per shard -> verdicts.

A shard is some of the groups (`latwin_reports`), one row of Spark's state, the snapshot of a `LatwinShard`: of each group
the ring of its windows or its runs, and what waits. Promises of gateways go to every shard, as which groups a gateway is in
is known by its readings alone.

A promise read in one invocation of a shard counts from the next one on (`latwin.shard` says why). For that, a shard's next
invocation must hold every reading of it that was visible by then: a listing takes all there is as long as nothing limits
the files per trigger, and a shard is invoked in every micro-batch that has a row for it.

Micro-batches must not be limited by maxFilesPerTrigger, so starting on a long history reads all of it in the first one.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from whenabouts_cloud.frontier.gateways import Promise
from whenabouts_cloud.jobs.correlate_streaming import ALL_AGES
from whenabouts_cloud.jobs.event_ipc import PACKED_RESULT
from whenabouts_cloud.jobs.landing import FRONTIER, LOOK_UP
from whenabouts_cloud.jobs.latwin_reports import LANDING, output_of, packed, reports_in
from whenabouts_cloud.jobs.output.formats import VERDICTS
from whenabouts_cloud.jobs.output.sink import Report, ResultSink
from whenabouts_cloud.jobs.output.task_files import Tell
from whenabouts_cloud.latwin.shard.shard import LatwinShard
from whenabouts_cloud.rules.model import LatwinRule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STATE = "groups binary"


def start_query(
    rule: LatwinRule,
    spark: "SparkSession",
    landing: Path,
    out: Path,
    shards: int,
    trigger_s: float,
    report: Report | None = None,
) -> "StreamingQuery":
    """Start publishing a rule's verdicts below `out`, going on from its checkpoint if there is one.

    The landing folder must exist; its folder of promises is made if the ingest has not yet done so, for Spark to watch.
    """
    (landing / "_frontier").mkdir(exist_ok=True)
    make = functools.partial(detect_stream, rule, spark, str(landing.resolve()), shards)
    return ResultSink(VERDICTS, out, report).follow(make, trigger_s)


def detect_stream(rule: LatwinRule, spark: "SparkSession", landing: str, shards: int, tell: Tell) -> "DataFrame":
    """The streaming frame of a rule's verdicts and counts, told in the way of a sink, over a landing folder that exists."""
    landed = spark.readStream.option("maxFileAge", ALL_AGES).schema(LANDING).options(**LOOK_UP).parquet(landing)
    promises = spark.readStream.option("maxFileAge", ALL_AGES).schema(FRONTIER).json(f"{landing}/_frontier")
    reports = packed(rule, landed, shards).withColumns({"source": F.lit(""), "frontier_us": F.lit(0).cast("long")})
    rows = reports.unionByName(_promises_of(promises, shards))
    work = functools.partial(_advance_shard, rule, tell)
    grouped = rows.groupBy("shard")
    return grouped.applyInPandasWithState(work, PACKED_RESULT, STATE, "append", GroupStateTimeout.NoTimeout)


def _promises_of(promises: "DataFrame", shards: int) -> "DataFrame":
    """For every shard the promises of all gateways: rows without reports."""
    known = promises.where("site is not null and gateway is not null and frontier_us is not null")
    every = known.withColumn("shard", F.explode(F.sequence(F.lit(0), F.lit(shards - 1))))
    return every.select(
        "shard",
        F.lit(None).cast("binary").alias("reports"),
        F.lit(0).cast("long").alias("wrong"),
        F.concat_ws("/", "site", "gateway").alias("source"),
        "frontier_us",
    )


def _advance_shard(
    rule: LatwinRule, tell: Tell, key: tuple[int], rows: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Adapter between Spark's state and `LatwinShard`."""
    shard = LatwinShard(rule)
    if state.exists:
        shard.restore(bytes(state.get[0]))
    blobs: list[bytes] = []
    promises: list[Promise] = []
    for part in rows:
        full = part["reports"].notna()
        blobs += part["reports"][full].tolist()
        shard.counts["wrong"] += int(part["wrong"].sum())
        promised = part[~full]
        promises += zip(promised["source"].tolist(), promised["frontier_us"].tolist(), strict=True)
    told = shard.step(reports_in(blobs), promises)
    state.update((shard.snapshot(),))
    for row in tell(output_of(told, {"shard": int(key[0]), **shard.state()})):
        yield pd.DataFrame({"told": [row]})
