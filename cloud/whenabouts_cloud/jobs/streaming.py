"""Runs rules over a growing landing: readings and watermarks -> state per rule and shard -> results.

Readings are read and packed once for all rules of an engine. Readings go to their shard, watermarks of gateways to every
shard, so a result that becomes final by time is emitted even if no further reading of its key arrives. A shard is one row of
Spark's state, the snapshot of a `shard.Shard`. Shards are few and coarse, because the operator costs per key and per state
access, hardly per reading. The operator is applyInPandasWithState: with 2000 readings a batch and 4 shards on two cores it
takes 1.1 s a batch (measured); transformWithStateInPandas takes 1.7 s and loops over rows in Python.

Each rule has its own shards, so its frontier and its state do not depend on other rules, and rules can be added and removed
between two queries over the same checkpoint.

A watermark that one invocation of a shard reads counts from the next invocation on (`frontier` explains why). That requires
that the next invocation holds every reading of the shard visible by then. This holds because a listing takes all files as
long as nothing limits the files per trigger, and a shard is invoked in every micro-batch that has a row for it. So
maxFilesPerTrigger must not be set, and starting on a long history reads all of it in the first micro-batch.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from whenabouts_cloud.jobs.engine import AnyRule, EngineJob
from whenabouts_cloud.jobs.landing import follow_readings, follow_watermarks
from whenabouts_cloud.jobs.output.left_out import LeftOut
from whenabouts_cloud.jobs.output.sink import OnBatch, OnFailure, ResultSink
from whenabouts_cloud.jobs.output.task_files import WRITTEN, Write
from whenabouts_cloud.jobs.packing import group_of, packed, packed_watermarks, rule_of, tables_of
from whenabouts_cloud.jobs.work import QueryOptions
from whenabouts_cloud.landing.schema import FRONTIER_DIR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STATE = "snapshot binary"


def start_query(
    engine: EngineJob[AnyRule],
    rules: Mapping[int, AnyRule],
    spark: "SparkSession",
    options: QueryOptions,
    report: OnBatch | None = None,
    gone: Sequence[int] = (),
    failed: OnFailure | None = None,
) -> "StreamingQuery":
    """Start publishing the results of rules below `options.out`, from its checkpoint if there is one.

    A damaged file ends the query with a DamagedInputError, given to `failed`; the next query leaves the file out.
    The landing folder must exist; its folder of watermarks is made if the ingest has not yet done so, for Spark to watch.
    Rules may differ from those of the previous query, if that has no unfinished micro-batch: rules with new numbers see
    readings that land from now on, the state of rules in `gone` is removed with the next watermark.
    """
    landing, out, shards, trigger_s = options
    (landing / FRONTIER_DIR).mkdir(exist_ok=True)
    left_out = LeftOut(landing, out)
    make = functools.partial(_results, engine, rules, gone, spark, str(landing.resolve()), left_out.names(), shards)
    sink = ResultSink(engine.results(next(iter(rules.values()))), out, report, failed, left_out)
    return sink.follow(make, trigger_s)


def _results(
    engine: EngineJob[AnyRule],
    rules: Mapping[int, AnyRule],
    gone: Sequence[int],
    spark: "SparkSession",
    landing: str,
    left_out: Sequence[str],
    shards: int,
    write: Write,
) -> "DataFrame":
    """Return the streaming frame of records about written files (`task_files`)."""
    landed = follow_readings(spark, landing, engine.columns, left_out)
    rows = packed(engine, rules, engine.readings(list(rules.values()), landed, shards), shards)
    watermarks = follow_watermarks(spark, landing)
    rows = rows.unionByName(packed_watermarks(engine, rules, gone, watermarks, shards))
    shared = [n for n, rule in rules.items() if engine.shared(rule)]
    if shared:
        groups = [group_of(n, shard) for n in shared for shard in range(engine.shards(rules[n], shards))]
        every = F.explode(F.array(*map(F.lit, groups)))
        rows = rows.unionByName(engine.shared_rows(landed).withColumn("group", every))
    work = functools.partial(_step, engine, dict(rules), write)
    return rows.groupBy("group").applyInPandasWithState(work, WRITTEN, STATE, "append", GroupStateTimeout.NoTimeout)


def _step(
    engine: EngineJob[AnyRule],
    rules: dict[int, AnyRule],
    write: Write,
    key: tuple[int],
    rows: Iterator[pd.DataFrame],
    state: GroupState,
) -> Iterator[pd.DataFrame]:
    """Adapt Spark's state to `shard.Shard`."""
    rule = rules.get(rule_of(int(key[0])))
    if rule is None:  # gone
        state.remove()
        return
    shard = engine.shard(rule)
    if state.exists:
        shard.restore(bytes(state.get[0]))
    blobs = (row for part in rows for row in zip(part["table"], part["rows"], strict=True))
    output = shard.step(*tables_of(engine, rule, blobs))
    state.update((shard.snapshot(),))
    counts = {"shard": int(key[0]), "rule": rule.name, "side_output": output.late.num_rows, **output.counts}
    yield pd.DataFrame({"written": [write(output._replace(counts=counts))]})
