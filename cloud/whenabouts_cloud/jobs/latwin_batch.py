"""A rule about the states of groups over a whole landing, as one Spark job: the verdicts that a stream of it ends with.

The core is that of the stream, given everything in one step (`latwin.shard`). The promises in the landing count too: that a
state which was never followed by another one lasted is known by them alone.

Cost: one scan, packed into one shuffle of few large rows. A shard's readings are held in memory whole, at about 1 kB each;
take more shards for a long landing of many groups.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from whenabouts_cloud.frontier.gateways import Promise
from whenabouts_cloud.jobs.event_ipc import PACKED_RESULT
from whenabouts_cloud.jobs.landing import FRONTIER, LOOK_UP
from whenabouts_cloud.jobs.latwin_reports import LANDING, output_of, packed, reports_in
from whenabouts_cloud.jobs.output.task_files import Tell
from whenabouts_cloud.latwin.shard.shard import LatwinShard
from whenabouts_cloud.rules.model import LatwinRule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_landing(spark: "SparkSession", landing: str) -> "DataFrame":
    """The readings of a landing folder, only the columns that rules about states need."""
    return spark.read.schema(LANDING).options(**LOOK_UP).parquet(landing)


def read_promises(spark: "SparkSession", landing: str) -> list[Promise]:
    """The latest promise of each gateway in a landing folder."""
    try:
        lines = spark.read.schema(FRONTIER).json(f"{landing}/_frontier")
    except AnalysisException:  # the ingest has not yet made the folder
        return []
    known = lines.where("site is not null and gateway is not null and frontier_us is not null")
    latest = known.groupBy("site", "gateway").agg(F.max("frontier_us")).collect()
    return [(f"{site}/{gateway}", us) for site, gateway, us in latest]


def detect(rule: LatwinRule, landing: "DataFrame", promises: list[Promise], shards: int, tell: Tell) -> "DataFrame":
    """The verdicts of a rule in a landing, with rows that tell what was counted, told in the way of a sink."""

    # A function of its own: Spark wants to see its annotations.
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(batches)
        shard = LatwinShard(rule)
        shard.counts["wrong"] += sum(rows["wrong"].to_pylist())
        told = shard.step(reports_in(blob.as_buffer() for blob in rows["reports"]), promises, everything=True)
        for row in tell(output_of(told, {"shard": rows["shard"][0].as_py(), **shard.state()})):
            yield pa.RecordBatch.from_arrays([pa.array([row], pa.binary())], ["told"])

    return packed(rule, landing, shards).groupBy("shard").applyInArrow(work, PACKED_RESULT)
