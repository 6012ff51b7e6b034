"""Rules over a landing as it grows: readings and watermarks -> state per rule and shard -> results.

Readings are read and packed once for all rules of an engine. Readings go to their shard, watermarks of gateways to every
shard: what is final by time alone is told although no reading of its key comes. A shard is one row of Spark's state, the
snapshot of a `shard.Shard`: few coarse shards, because the operator costs per key and per state access, hardly per reading.
applyInPandasWithState is the operator: measured with 2000 readings a batch and 4 shards on two cores it takes 1.1 s a batch,
transformWithStateInPandas 1.7 s, and that one loops over rows in Python.

Each rule has shards of its own, so its frontier and what it keeps do not depend on the others, and rules can be added and
removed between two queries over the same checkpoint.

A watermark that one invocation of a shard reads counts from the next one on (`frontier` says why). For that, a shard's next
invocation must hold every reading of it that was visible by then: a listing takes all there is as long as nothing limits the
files per trigger, and a shard is invoked in every micro-batch that has a row for it. So micro-batches must not be limited by
maxFilesPerTrigger, and starting on a long history reads all of it in the first one.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from whenabouts_cloud.jobs.engine import AnyRule, Engine
from whenabouts_cloud.jobs.landing import follow_readings, follow_watermarks
from whenabouts_cloud.jobs.output.sink import Report, ResultSink
from whenabouts_cloud.jobs.output.task_files import WRITTEN, Write
from whenabouts_cloud.jobs.packing import group_of, packed, packed_watermarks, rule_of, tables_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STATE = "snapshot binary"


def start_query(
    engine: Engine[AnyRule],
    rules: Mapping[int, AnyRule],
    spark: "SparkSession",
    landing: Path,
    out: Path,
    shards: int,
    trigger_s: float,
    report: Report | None = None,
    gone: Sequence[int] = (),
) -> "StreamingQuery":
    """Start publishing the results of rules below `out`, going on from its checkpoint if there is one.

    The landing folder must exist; its folder of watermarks is made if the ingest has not yet done so, for Spark to watch.
    Rules may be others than those of the query before, if that one has no unfinished micro-batch: those with new numbers see
    what lands from now on, the state of those that are `gone` is removed with the next watermark.
    """
    (landing / "_frontier").mkdir(exist_ok=True)
    make = functools.partial(_results, engine, rules, gone, spark, str(landing.resolve()), shards)
    sink = ResultSink(engine.results(next(iter(rules.values()))), out, report)
    return sink.follow(make, trigger_s)


def _results(
    engine: Engine[AnyRule],
    rules: Mapping[int, AnyRule],
    gone: Sequence[int],
    spark: "SparkSession",
    landing: str,
    shards: int,
    write: Write,
) -> "DataFrame":
    """The streaming frame of words about what was written (`task_files`)."""
    landed = follow_readings(spark, landing, engine.columns)
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
    engine: Engine[AnyRule],
    rules: dict[int, AnyRule],
    write: Write,
    key: tuple[int],
    rows: Iterator[pd.DataFrame],
    state: GroupState,
) -> Iterator[pd.DataFrame]:
    """Adapter between Spark's state and `shard.Shard`."""
    rule = rules.get(rule_of(int(key[0])))
    if rule is None:  # gone
        state.remove()
        return
    shard = engine.shard(rule)
    if state.exists:
        shard.restore(bytes(state.get[0]))
    found = (row for part in rows for row in zip(part["table"], part["rows"], strict=True))
    output = shard.step(*tables_of(engine, rule, found))
    state.update((shard.snapshot(),))
    counts = {"shard": int(key[0]), "rule": rule.name, "side_output": output.late.num_rows, **output.counts}
    yield pd.DataFrame({"written": [write(output._replace(counts=counts))]})
