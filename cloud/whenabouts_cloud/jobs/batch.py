"""Runs a rule over a whole landing as one Spark job; the results equal the final results of the streaming job.

Cost: one scan, packed into one shuffle of few large rows (`packing`). Shards that can be cut are measured first (`sizes`). A
group is held in memory whole.

A shard that is too large is cut in time, for any distribution: a burst, one reading from 1970, one very frequent key.
Borders are quantiles of the readings' times. A result belongs to the slab in which it begins, and a slab gets every reading
that one of its results may need. Slabs are never narrower than twice the reach, as narrower ones would only copy readings
into more slabs. So a group exceeds its target size where more readings than that lie within twice the reach.
"""

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.engines.engine import AnyRule, EngineJob, Ints, Routed, TimeSlab
from whenabouts_cloud.jobs.output.output_place import Place
from whenabouts_cloud.jobs.output.sink import ResultSink
from whenabouts_cloud.jobs.output.task_files import WRITTEN, Write
from whenabouts_cloud.jobs.reading.packing import Packing, by_shard, tables_of
from whenabouts_cloud.jobs.reading.sizes import Measuring, sizes_in
from whenabouts_cloud.jobs.reading.source import Reading, latest_watermarks, packed_frame
from whenabouts_cloud.landing.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MAX_SLABS = 512  # of time in a shard


def publish_whole(
    engine: EngineJob[AnyRule],
    rules: Sequence[AnyRule],
    spark: "SparkSession",
    landing: Path | Store,
    out: Place,
    shards: int,
    group_rows: int | None = None,
    left_out: Sequence[str] = (),
) -> tuple[Store, list[dict[str, Any]]]:
    """Publish the results of rules below `out`, replacing earlier ones; return the folder and the counts of each group.

    left_out: paths of files below the landing that are not read.
    """

    place = Store.at(landing)

    def make(write: Write) -> "DataFrame":
        frames = (run_whole(engine, rule, spark, place, shards, write, group_rows, left_out) for rule in rules)
        return functools.reduce(lambda x, y: x.unionByName(y), frames)

    return ResultSink(engine.results(rules[0]), out).replace(make)


def run_whole(
    engine: EngineJob[AnyRule],
    rule: AnyRule,
    spark: "SparkSession",
    landing: Store,
    shards: int,
    write: Write,
    group_rows: int | None = None,
    left_out: Sequence[str] = (),
) -> "DataFrame":
    """Return a lazy frame of records about the files that its tasks write (`task_files`).

    Runs small jobs immediately, to place slabs and to read watermarks.
    """
    reading = Reading(landing, engine.columns, frozenset(left_out), Packing(engine, {0: rule}, shards))
    slabs = slabs_of(engine, rule, spark, reading, shards, group_rows or engine.group_rows)
    groups = len(slabs) or engine.shards(rule, shards)
    packing = Packing(
        engine, {0: rule}, shards, functools.partial(_into_slabs, engine, rule, slabs) if slabs else by_shard,
        range(groups) if engine.shared(rule) else (),
    )  # fmt: skip
    rows = packed_frame(spark, replace(reading, work=packing), stream=False)
    watermarks = latest_watermarks(landing) if engine.waits else []

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


def slabs_of(
    engine: EngineJob[AnyRule], rule: AnyRule, spark: "SparkSession", reading: Reading, shards: int, group_rows: int
) -> list[TimeSlab]:
    """Slabs that cover all of time for every shard, one for a small shard; no slabs if all are small.

    Cost: a pass over the readings.
    """
    reach = engine.reach(rule)
    if reach is None:
        return []
    measured = packed_frame(spark, replace(reading, work=Measuring(engine, rule, shards)), stream=False)
    sizes = sizes_in(row.rows for row in measured.select("rows").collect())
    if all(size.count <= group_rows for size in sizes.values()):
        return []
    slabs = []
    for shard, size in sorted(sizes.items()):
        wanted = min(MAX_SLABS, size.count // group_rows + 1) if size.count > group_rows else 1
        far = reach(size.longest_us)
        inner = borders_of(size.cuts(wanted), 2 * far)
        slabs += [TimeSlab(shard, *ends, far) for ends in itertools.pairwise([INT64_MIN, *inner, INT64_MAX])]
    return slabs


def borders_of(cuts: list[int], apart: int) -> list[int]:
    """Drop ascending cuts that are not more than `apart` after the last one kept."""
    kept: list[int] = []
    for cut in cuts:
        if not kept or cut - kept[-1] > apart:
            kept.append(cut)
    return kept
