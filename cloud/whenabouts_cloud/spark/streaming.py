"""The correlation of a landing as it grows: file streams of readings and promises -> state per key shard -> pairs.

Readings go to the shard of their key, promises of gateways to every shard. A shard is one row of Spark's state: the snapshot
of an `OnlineCorrelation` and of the two `StreamFrontier`s. Few coarse shards, because the operator costs per key and per
state access, hardly per row.

When a promise counts. The two sources are listed one after the other, so a promise read in micro-batch n may cover a file
that became visible between the listings and is only read in batch n + 1. It cannot come later than that: the file was
visible before the promise, and without a limit on files per trigger a listing takes all there is. Therefore a promise read
in one invocation of a shard counts from the next one on, after that one's readings have been joined. A shard is invoked in
every batch that has a row for it, so "the next invocation" is batch n + 1 or follows batches without readings for the shard.

Output: pairs (RESULT columns) and, for each invocation, one row whose `counts` says in JSON what it did.

Micro-batches must not be limited by maxFilesPerTrigger, so starting on a long history reads all of it in the first one.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StringType, StructField, StructType

from whenabouts_cloud.correlation.frontier import StreamFrontier
from whenabouts_cloud.correlation.online import MAX_ROWS, OnlineCorrelation
from whenabouts_cloud.correlation.pairs import READING
from whenabouts_cloud.rules.model import CorrelateRule
from whenabouts_cloud.spark.schema import FRONTIER, LANDING, RESULT, readings_of, shard_of, sides_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PROMISE = 2  # `side` of a promise for stream a; 3 is one for stream b. Its time is in t_max.
OUTPUT = StructType([*RESULT.fields, StructField("counts", StringType())])
ALL_AGES = "36500d"  # the file source forgets files older than the newest by a week otherwise


def correlate_stream(
    rule: CorrelateRule, spark: "SparkSession", landing: str, shards: int, max_rows: int = MAX_ROWS
) -> "DataFrame":
    """The streaming frame of a rule's pairs and counts (OUTPUT) over a landing folder that exists."""
    readings = spark.readStream.schema(LANDING).option("maxFileAge", ALL_AGES).parquet(landing)
    promises = spark.readStream.schema(FRONTIER).option("maxFileAge", ALL_AGES).json(f"{landing}/_frontier")
    shards = shards if rule.key_equal else 1
    rows = readings_of(rule, readings).withColumn("shard", shard_of(rule, shards))
    rows = rows.select("shard", "side", *READING.names).unionByName(_promises_of(rule, promises, shards))
    processor = Shard(rule, max_rows)
    return rows.groupBy("shard").transformWithStateInPandas(processor, OUTPUT, outputMode="Append", timeMode="None")


def _promises_of(rule: CorrelateRule, promises: "DataFrame", shards: int) -> "DataFrame":
    """For every shard the promises about a stream of the rule, in the shape of readings."""
    known = promises.where("site is not null and gateway is not null and frontier_us is not null")
    streams = known.select("site", "gateway", "frontier_us", F.explode("streams").alias("stream"))
    sided = streams.withColumn("side", F.explode(sides_of(rule, first=PROMISE)))
    every = sided.withColumn("shard", F.explode(F.sequence(F.lit(0), F.lit(shards - 1))))
    # Zeros, not nulls: pandas would turn the integers of the whole column into floats.
    zero = F.lit(0).cast("long")
    return every.select(
        "shard", "side", "site", "gateway", zero.alias("boot"), zero.alias("seq"), "stream",
        F.lit(None).cast("string").alias("key"), zero.alias("t_min"), F.col("frontier_us").alias("t_max"),
    )  # fmt: skip


class Shard(StatefulProcessor):
    """Adapter between Spark's state and the cores: restore, feed, let promises take effect, advance, snapshot."""

    def __init__(self, rule: CorrelateRule, max_rows: int) -> None:
        self._rule = rule
        self._max_rows = max_rows

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("shard", "online binary, frontiers string")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # type: ignore[override]
        online = OnlineCorrelation(self._rule, self._max_rows)
        frontiers = (StreamFrontier(self._rule.a.delay_us), StreamFrontier(self._rule.b.delay_us))
        if self._state.exists():
            snapshot, promised = self._state.get()
            online.restore(bytes(snapshot))
            for frontier, part in zip(frontiers, json.loads(promised), strict=True):
                frontier.restore(part)
        arrived = pd.concat(list(rows), ignore_index=True)
        sides = [_table(arrived[arrived["side"] == side]) for side in (0, 1)]
        pairs = online.feed(*sides)
        for side, frontier in enumerate(frontiers):
            frontier.take_effect()
            frontier.seen(_gateways(arrived[arrived["side"] == side]))
            promises = arrived[arrived["side"] == PROMISE + side]
            for gateway, promise in zip(_gateways(promises), promises["t_max"], strict=True):
                frontier.promise(gateway, int(promise))
        online.advance(*(frontier.value for frontier in frontiers))
        self._state.update((online.snapshot(), json.dumps([x.snapshot() for x in frontiers])))
        yield pairs.to_pandas().assign(counts=None)
        yield _counts_row(int(key[0]), online, frontiers)

    def close(self) -> None:
        pass


def _table(rows: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(rows[READING.names], schema=READING, preserve_index=False)


def _gateways(rows: pd.DataFrame) -> "pd.Series[str]":
    names: pd.Series[str] = rows["site"] + "/" + rows["gateway"]
    return names


def _counts_row(shard: int, online: OnlineCorrelation, frontiers: tuple[StreamFrontier, StreamFrontier]) -> pd.DataFrame:
    counts = {
        "shard": shard,
        **online.counts,
        "rows_kept": online.rows_kept,
        "frontier_us": [frontier.value for frontier in frontiers],
        "silent": sorted({name for frontier in frontiers for name in frontier.silent}),
    }
    empty = {field.name: "" if isinstance(field.dataType, StringType) else 0 for field in RESULT.fields}
    return pd.DataFrame([{**empty, "probability": 0.0, "counts": json.dumps(counts)}])
