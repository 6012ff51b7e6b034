"""A rule about events in an order over a landing as it grows: readings and promises -> state per key shard -> matches.

Events go to the shard of their key, promises of gateways (and, for CAUSAL, views of groups) to every shard: a match whose
last negation is sealed by time alone is told although no event of its key comes. A shard is one row of Spark's state, the
snapshot of a `CepShard`: few coarse shards, because the operator costs per key and per state access. Events come to it
packed (`packed`), so nothing is done per event outside of kernels and Arrow.

A promise read in one invocation of a shard counts from the next one on (`shard` says why). For that, a shard's next
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

from whenabouts_cloud.cep.counted import CountShard
from whenabouts_cloud.cep.results import aside_rows
from whenabouts_cloud.cep.rule_frontier import Promise
from whenabouts_cloud.cep.shard import CepShard
from whenabouts_cloud.rules.model import CepRule
from whenabouts_cloud.spark.packed import (
    LANDING,
    PACKED_RESULT,
    events_in,
    output_of,
    packed,
    packed_rows,
    readings_of,
    views_in,
    views_of,
)
from whenabouts_cloud.spark.schema import FRONTIER, LOOK_UP, belongs_to
from whenabouts_cloud.spark.sink import COUNTS, MATCHES, Report, ResultSink
from whenabouts_cloud.spark.streaming import ALL_AGES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STATE = "snapshot binary"
# What a row for a shard may be about beside its number: events, a promise, or views. Numbers have no null, which pandas
# would make them floats for.
_ROW = {
    "events": (None, "binary"), "source": ("", "string"), "stream": (-1, "int"), "frontier_us": (0, "long"),
    "views": (None, "binary"),
}  # fmt: skip


def start_query(
    rule: CepRule,
    spark: "SparkSession",
    landing: Path,
    out: Path,
    shards: int,
    trigger_s: float,
    report: Report | None = None,
) -> "StreamingQuery":
    """Start publishing a rule's matches below `out`, going on from its checkpoint if there is one.

    The landing folder must exist; its folder of promises is made if the ingest has not yet done so, for Spark to watch.
    """
    (landing / "_frontier").mkdir(exist_ok=True)
    frame = detect_stream(rule, spark, str(landing.resolve()), shards)
    return ResultSink(COUNTS if rule.count else MATCHES, out, report).follow(frame, trigger_s)


def detect_stream(rule: CepRule, spark: "SparkSession", landing: str, shards: int) -> "DataFrame":
    """The streaming frame of a rule's matches and counts (PACKED_RESULT) over a landing folder that exists."""
    landed = spark.readStream.option("maxFileAge", ALL_AGES).schema(LANDING).options(**LOOK_UP).parquet(landing)
    promises = spark.readStream.option("maxFileAge", ALL_AGES).schema(FRONTIER).json(f"{landing}/_frontier")
    shards = shards if rule.pattern.per_key else 1
    events = packed(rule, readings_of(rule, landed, shards))
    rows = _filled(events).unionByName(_filled(_promises_of(rule, promises, shards)))
    if rule.pattern.mode == "causal":
        rows = rows.unionByName(_filled(_in_every(views_of(landed), shards)))
    work = functools.partial(_advance_shard, rule)
    grouped = rows.groupBy("group")
    return grouped.applyInPandasWithState(work, PACKED_RESULT, STATE, "append", GroupStateTimeout.NoTimeout)


def _promises_of(rule: CepRule, promises: "DataFrame", shards: int) -> "DataFrame":
    """For every shard the promises about a stream of the rule: rows without events."""
    known = promises.where("site is not null and gateway is not null and frontier_us is not null")
    named = known.select("site", "gateway", "frontier_us", F.explode("streams").alias("stream"))
    covering = F.array_compact(F.array(*(F.when(belongs_to(s), F.lit(n)) for n, s in enumerate(rule.streams))))
    each = named.select(
        F.concat_ws("/", "site", "gateway").alias("source"), F.explode(covering).alias("stream"), "frontier_us"
    )
    return _in_every(each, shards)


def _in_every(frame: "DataFrame", shards: int) -> "DataFrame":
    """Each row once for every shard."""
    return frame.withColumn("group", F.explode(F.sequence(F.lit(0), F.lit(shards - 1))))


def _filled(frame: "DataFrame") -> "DataFrame":
    """Rows for shards, with nothing in the columns of what they are not about."""
    of = {name: F.lit(nothing).cast(kind).alias(name) for name, (nothing, kind) in _ROW.items()}
    return frame.select("group", *(name if name in frame.columns else nothing for name, nothing in of.items()))


def _advance_shard(
    rule: CepRule, key: tuple[int], rows: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Adapter between Spark's state and `CepShard`."""
    shard = CountShard(rule) if rule.count else CepShard(rule)
    if state.exists:
        shard.restore(bytes(state.get[0]))
    blobs, views, promises = [], [], _no_promises(rule)
    for part in rows:
        blobs += part["events"].dropna().tolist()
        views += part["views"].dropna().tolist()
        for stream, own in enumerate(promises):
            some = part[part["stream"] == stream]
            own += zip(some["source"].tolist(), some["frontier_us"].tolist(), strict=True)
    told, late, effects = shard.step(events_in(rule, blobs), promises, views_in(views))
    state.update((shard.snapshot(),))
    aside = (aside_rows(rule, late), late["reason"]), (effects, effects["status"])
    for row in packed_rows(output_of(told, {"shard": int(key[0]), **shard.state()}, *aside)):
        yield pd.DataFrame({"told": [row]})


def _no_promises(rule: CepRule) -> list[list[Promise]]:
    return [[] for _ in rule.streams]
