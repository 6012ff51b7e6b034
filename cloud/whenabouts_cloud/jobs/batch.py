"""A rule over a whole landing, as one Spark job: the results that a stream of it ends with.

Cost: one scan, packed into one shuffle of few large rows (`packing`); for landings of more than `Engine.group_rows` rows a
count before it, and the quantiles of shards that are cut (`slabs`). A group is held in memory whole.
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
    """Publish the results of rules below `out` in the place of earlier ones: the folder, and what each group counted."""

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
    """The frame of words about the results that its tasks write (`task_files`); lazy like any frame.

    Runs small jobs at once, to place slabs and to read watermarks.
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

    # A function of its own: Spark wants to see its annotations.
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(batches)
        group = table["group"][0].as_py()
        found = zip(table["table"].to_pylist(), (blob.as_buffer() for blob in table["rows"]), strict=True)
        tables, _ = tables_of(engine, rule, found)
        output = engine.whole(rule, tables, watermarks, slabs[group] if slabs else None)
        counts = {"shard": group, "rule": rule.name, "side_output": output.late.num_rows, **output.counts}
        yield pa.RecordBatch.from_arrays([pa.array([write(output._replace(counts=counts))], pa.binary())], ["written"])

    # By number: a hash of so few groups would put several into one task and leave others without any.
    return rows.repartitionById(groups, "group").groupBy("group").applyInArrow(work, WRITTEN)


def _into_slabs(
    engine: Engine[AnyRule], rule: AnyRule, slabs: list[Slab], _: int, routed: Routed
) -> Iterable[tuple[Ints, Ints]]:
    """Rows for every slab that needs them."""
    inside = engine.inside(rule, routed.table, routed.rows)
    for number, slab in enumerate(slabs):
        at = np.flatnonzero((routed.shard == slab.shard) & inside(slab))
        yield at, np.full(len(at), number)
