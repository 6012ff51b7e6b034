"""Runs rules over a whole landing; the results equal the final results of the streaming job.

Every file is read once, for all rules: its readings are packed into few large rows, one shuffle of which brings each shard's
together (`packing`). A group (a shard, or a slab of one) is held in memory whole.

A shard that is too large is cut in time, for any distribution: a burst, one reading from 1970, one very frequent key.
Shards that can be cut are therefore measured while they are packed (`sizes`), and Spark keeps the packed rows on the disks
of the workers until then. Borders are quantiles of the readings' times. A result belongs to the slab in which it begins,
and a slab gets every reading that one of its results may need. Slabs are never narrower than twice the reach, as narrower
ones would only copy readings into more slabs. So a group exceeds its target size where more readings than that lie within
twice the reach.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from whenabouts_cloud.blobs import of_bytes, to_bytes
from whenabouts_cloud.frontier.gateways import latest_watermarks
from whenabouts_cloud.jobs.engines.engine import AnyRule, EngineJob, TimeSlab
from whenabouts_cloud.jobs.output.output_place import Place
from whenabouts_cloud.jobs.output.sink import ResultSink
from whenabouts_cloud.jobs.output.task_files import WRITTEN, Write
from whenabouts_cloud.jobs.reading.packing import (
    MAX_SHARDS,
    PACKED,
    SIZES,
    Packing,
    group_of,
    packed_row,
    rule_of,
    shard_of,
    tables_of,
)
from whenabouts_cloud.jobs.reading.sizes import Size, sizes_in, slabs_of
from whenabouts_cloud.jobs.reading.source import Reading, whole_frame
from whenabouts_cloud.landing.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Groups = list[tuple[int, TimeSlab | None]]
"""The groups of a job by number: the number of the rule, and the slab of time if its shard is cut.

A shard has group rule * shards + shard. If it is cut, this is its first slab; its other slabs follow behind all shards.
"""


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
    numbered, place = dict(enumerate(rules)), Store.at(landing)
    cut = [n for n, rule in numbered.items() if engine.reach(rule) is not None]
    shared = [n for n, rule in numbered.items() if engine.shared(rule)]
    sharing = [group_of(n, shard) for n in shared for shard in range(engine.shards(numbered[n], shards))]
    packing = Packing(engine, numbered, shards, sharing, measured=cut)
    watermarks = latest_watermarks(place) if engine.waits else []  # before the files, which then hold all they cover
    packed = whole_frame(spark, Reading(place, engine.columns, frozenset(left_out), packing))
    with _kept(packed) if cut else contextlib.nullcontext():
        sizes = packed.where(packed["table"] == SIZES).select("rows").collect() if cut else []
        large = _slabs(engine, numbered, sizes_in(row.rows for row in sizes), group_rows or engine.group_rows)
        groups, parts = _groups(len(rules), shards, large)

        def make(write: Write) -> "DataFrame":
            rows = packed.where(packed["table"] != SIZES)
            rows = rows.selectExpr(
                f"int(group div {MAX_SHARDS} * {shards} + group % {MAX_SHARDS}) AS group", "table", "rows"
            )
            if parts:
                rows = rows.mapInArrow(_divide(engine, numbered, groups, parts), PACKED)
            work = _work(engine, numbered, groups, watermarks, write)
            # By number: hashing so few groups would put several into one task and leave other tasks empty.
            return rows.repartitionById(len(groups), "group").groupBy("group").applyInArrow(work, WRITTEN)

        return ResultSink(engine.results(rules[0]), out).replace(make)


@contextlib.contextmanager
def _kept(packed: "DataFrame") -> Iterator[None]:
    """Spark computes the frame once, and keeps it on the disks of its workers."""
    from pyspark import StorageLevel

    packed.persist(StorageLevel.DISK_ONLY)
    try:
        yield
    finally:
        packed.unpersist()


def _groups(rules: int, shards: int, large: Mapping[int, list[TimeSlab]]) -> tuple[Groups, dict[int, list[int]]]:
    """The groups of a job, and those of each shard that is cut."""
    groups: Groups = [(number, None) for number in range(rules) for _ in range(shards)]
    parts = {}
    for group, (first, *others) in large.items():
        number, at = rule_of(group), rule_of(group) * shards + shard_of(group)
        groups[at] = number, first
        parts[at] = [at, *range(len(groups), len(groups) + len(others))]
        groups += [(number, slab) for slab in others]
    return groups, parts


def _divide(
    engine: EngineJob[AnyRule], rules: Mapping[int, AnyRule], groups: Groups, parts: Mapping[int, list[int]]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that divides the packed rows of shards that are cut: each slab gets the readings that it needs."""

    def divide(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for group, table, rows in _rows_of(batches):
            if group not in parts:
                yield packed_row(group, table, rows.to_pybytes())
                continue
            readings = of_bytes(rows)
            inside = engine.inside(rules[groups[group][0]], table, readings)
            for part in parts[group]:
                slab = groups[part][1]
                mine = readings if slab is None else readings.filter(pa.array(inside(slab)))
                if mine.num_rows:
                    yield packed_row(part, table, to_bytes(mine))

    return divide


def _work(
    engine: EngineJob[AnyRule], rules: Mapping[int, AnyRule], groups: Groups, watermarks: Any, write: Write
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function from the packed rows of a group to the record about the files of its results."""

    # A named function, not a partial: Spark reads its annotations.
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = list(_rows_of(batches))
        group = rows[0][0]
        number, slab = groups[group]
        rule = rules[number]
        tables, _ = tables_of(engine, rule, [(table, blob) for _, table, blob in rows])
        del rows
        output = engine.whole(rule, tables, watermarks, slab)
        counts = {"shard": group, "rule": rule.name, "side_output": output.late.num_rows, **output.counts}
        yield pa.RecordBatch.from_arrays([pa.array([write(output._replace(counts=counts))], pa.binary())], ["written"])

    return work


def _rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, str, Any]]:
    for batch in batches:
        yield from zip(
            batch["group"].to_pylist(), batch["table"].to_pylist(), (x.as_buffer() for x in batch["rows"]), strict=True
        )


def _slabs(
    engine: EngineJob[AnyRule], rules: Mapping[int, AnyRule], sizes: Mapping[int, Size], group_rows: int
) -> dict[int, list[TimeSlab]]:
    """For each group of packed rows that is too large, slabs that cover all of time."""
    reaches = {group: engine.reach(rules[rule_of(group)]) for group in sizes}
    return {
        group: slabs_of(size, reach(size.longest_us), group_rows)
        for group, size in sizes.items()
        if size.count > group_rows and (reach := reaches[group]) is not None
    }
