"""Runs a rule over a whole landing as one Spark job; the results equal the final results of the streaming job.

Cost: one scan, packed into one shuffle of few large rows (`packing`). Landings of more than `Engine.group_rows` rows are
counted first, and shards that are cut need quantiles (`time_slabs`). A group is held in memory whole.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from whenabouts_cloud.jobs.engine import AnyRule, Engine, Ints, Routed, Slab
from whenabouts_cloud.jobs.landing import latest_watermarks, read_readings
from whenabouts_cloud.jobs.output.sink import ResultSink
from whenabouts_cloud.jobs.output.task_files import WRITTEN, Write
from whenabouts_cloud.jobs.packing import by_shard, packed, tables_of
from whenabouts_cloud.jobs.time_slabs import slabs_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def publish_whole(
    engine: Engine[AnyRule],
    rules: Sequence[AnyRule],
    spark: "SparkSession",
    landing: Path,
    out: Path,
    shards: int,
    group_rows: int | None = None,
) -> tuple[Path, list[dict[str, Any]]]:
    """Publish the results of rules below `out`, replacing earlier ones; return the folder and the counts of each group."""

    def make(write: Write) -> "DataFrame":
        frames = (run_whole(engine, rule, spark, str(landing), shards, write, group_rows) for rule in rules)
        return functools.reduce(lambda x, y: x.unionByName(y), frames)

    return ResultSink(engine.results(rules[0]), out).replace(make)


def run_whole(
    engine: Engine[AnyRule],
    rule: AnyRule,
    spark: "SparkSession",
    landing: str,
    shards: int,
    write: Write,
    group_rows: int | None = None,
) -> "DataFrame":
    """Return a lazy frame of records about the files that its tasks write (`task_files`).

    Runs small jobs immediately, to place slabs and to read watermarks.
    """
    landed = read_readings(spark, landing, engine.columns)
    readings = engine.readings([rule], landed, shards)
    cut, rows_wanted = engine.cut(rule), group_rows or engine.group_rows
    slabs = slabs_of(readings, *cut, rows_wanted) if cut and landed.count() > rows_wanted else []
    place = functools.partial(_into_slabs, engine, rule, slabs) if slabs else by_shard
    groups = len(slabs) or engine.shards(rule, shards)
    rows = packed(engine, {0: rule}, readings, shards, place)
    if engine.shared(rule):
        rows = rows.unionByName(
            engine.shared_rows(landed).withColumn("group", F.explode(F.sequence(F.lit(0), F.lit(groups - 1))))
        )
    watermarks = latest_watermarks(spark, landing) if engine.waits else []

    # A named function, not a partial: Spark reads its annotations.
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(batches)
        group = table["group"][0].as_py()
        blobs = zip(table["table"].to_pylist(), (blob.as_buffer() for blob in table["rows"]), strict=True)
        tables, _ = tables_of(engine, rule, blobs)
        output = engine.whole(rule, tables, watermarks, slabs[group] if slabs else None)
        counts = {"shard": group, "rule": rule.name, "side_output": output.late.num_rows, **output.counts}
        yield pa.RecordBatch.from_arrays([pa.array([write(output._replace(counts=counts))], pa.binary())], ["written"])

    # By number: hashing so few groups would put several into one task and leave other tasks empty.
    return rows.repartitionById(groups, "group").groupBy("group").applyInArrow(work, WRITTEN)


def _into_slabs(
    engine: Engine[AnyRule], rule: AnyRule, slabs: list[Slab], _: int, routed: Routed
) -> Iterable[tuple[Ints, Ints]]:
    """Yield the places of the rows that each slab needs, with the slab's number."""
    inside = engine.inside(rule, routed.table, routed.rows)
    for number, slab in enumerate(slabs):
        at = np.flatnonzero((routed.shard == slab.shard) & inside(slab))
        yield at, np.full(len(at), number)
