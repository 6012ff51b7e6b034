"""Runs a rule over a whole landing as one Spark job; the results equal the final results of the streaming job.

Cost: one scan, packed into one shuffle of few large rows (`packing`). Landings of more than `EngineJob.group_rows` rows are
counted first, and shards that are cut need quantiles of their readings' times. A group is held in memory whole.

A shard that is too large is cut in time, for any distribution: a burst, one reading from 1970, one very frequent key.
Borders are quantiles of the readings' times. A result belongs to the slab in which it begins, and a slab gets every reading
that one of its results may need. Slabs are never narrower than twice the reach, as narrower ones would only copy readings
into more slabs. So a group exceeds its target size where more readings than that lie within twice the reach.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from whenabouts_cloud.frontier.times import FURTHEST_US, INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.engine import AnyRule, EngineJob, Ints, Routed, TimeSlab
from whenabouts_cloud.jobs.landing import latest_watermarks, read_readings
from whenabouts_cloud.jobs.output.sink import ResultSink
from whenabouts_cloud.jobs.output.task_files import WRITTEN, Write
from whenabouts_cloud.jobs.packing import by_shard, packed, tables_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MAX_SLABS = 512  # of time in a shard


def publish_whole(
    engine: EngineJob[AnyRule],
    rules: Sequence[AnyRule],
    spark: "SparkSession",
    landing: Path,
    out: Path,
    shards: int,
    group_rows: int | None = None,
    left_out: Sequence[str] = (),
) -> tuple[Path, list[dict[str, Any]]]:
    """Publish the results of rules below `out`, replacing earlier ones; return the folder and the counts of each group.

    left_out: paths of files below the landing that are not read.
    """

    def make(write: Write) -> "DataFrame":
        frames = (
            run_whole(engine, rule, spark, str(landing.resolve()), shards, write, group_rows, left_out)
            for rule in rules
        )
        return functools.reduce(lambda x, y: x.unionByName(y), frames)

    return ResultSink(engine.results(rules[0]), out).replace(make)


def run_whole(
    engine: EngineJob[AnyRule],
    rule: AnyRule,
    spark: "SparkSession",
    landing: str,
    shards: int,
    write: Write,
    group_rows: int | None = None,
    left_out: Sequence[str] = (),
) -> "DataFrame":
    """Return a lazy frame of records about the files that its tasks write (`task_files`).

    Runs small jobs immediately, to place slabs and to read watermarks.
    """
    landed = read_readings(spark, landing, engine.columns, left_out)
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
    engine: EngineJob[AnyRule], rule: AnyRule, slabs: list[TimeSlab], _: int, routed: Routed
) -> Iterable[tuple[Ints, Ints]]:
    """Yield the places of the rows that each slab needs, with the slab's number."""
    inside = engine.inside(rule, routed.table, routed.rows)
    for number, slab in enumerate(slabs):
        at = np.flatnonzero((routed.shard == slab.shard) & inside(slab))
        yield at, np.full(len(at), number)


def slabs_of(readings: "DataFrame", time: "Column", reach: Callable[[int], int], group_rows: int) -> list[TimeSlab]:
    """Slabs that cover all of time for every shard of `readings`, one for a small shard; no slabs if all are small.

    Cost: a pass over the readings to count them, another for the quantiles of shards that are too large.
    """
    sizes = dict(map(tuple, readings.groupBy("shard").count().collect()))
    large = [shard for shard, count in sizes.items() if count > group_rows]
    if not large:
        return []
    shares = [k / MAX_SLABS for k in range(1, MAX_SLABS)]
    longest = F.max(F.least(F.try_subtract("t_max", "t_min"), F.lit(FURTHEST_US)))
    by_shard = readings.where(F.col("shard").isin(large)).groupBy("shard")
    borders: dict[int, tuple[list[int], int]] = {}
    for shard, cuts, length in by_shard.agg(F.percentile_approx(time, shares, 10_000), longest).collect():
        wanted = min(MAX_SLABS, sizes[shard] // group_rows + 1)
        far = reach(length or 0)
        borders[shard] = borders_of([cuts[k * MAX_SLABS // wanted - 1] for k in range(1, wanted)], 2 * far), far
    slabs = []
    for shard in sorted(sizes):
        inner, far = borders.get(shard, ([], 0))
        slabs += [TimeSlab(shard, *ends, far) for ends in itertools.pairwise([INT64_MIN, *inner, INT64_MAX])]
    return slabs


def borders_of(cuts: list[int], apart: int) -> list[int]:
    """Drop ascending cuts that are not more than `apart` after the last one kept."""
    kept: list[int] = []
    for cut in cuts:
        if not kept or cut - kept[-1] > apart:
            kept.append(cut)
    return kept
