"""Readings on their way between Spark's stages: packed by the task that reads them, many to a row.

A row of a shuffle costs Spark more than a reading costs an engine. So the task that reads readings makes the rows of an
engine's tables and packs those of one group as one Arrow IPC stream; what is shuffled, grouped and handed to Python again
are a few such rows. A group is a shard of a rule, or in a batch a slab of one. Watermarks travel in the same way.
"""

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from whenabouts_cloud.blobs import to_bytes
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.jobs.engine import AnyRule, Engine, Ints, Routed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PACKED = "group int, table string, rows binary"
MAX_SHARDS = 1024  # of a rule
WATERMARKS = "watermarks"
WATERMARK = pa.schema([("gateway", pa.string()), ("stream", pa.int32()), ("frontier_us", pa.int64())])
_ROW = pa.schema([("group", pa.int32()), ("table", pa.string()), ("rows", pa.binary())])

Place = Callable[[int, Routed], Iterable[tuple[Ints, Ints]]]
"""From the number of a rule and its rows to (places of rows, group of each)."""


def group_of(number: int, shard: int) -> int:
    """The group of a shard of the rule with this number."""
    return number * MAX_SHARDS + shard


def rule_of(group: int) -> int:
    """The number of the rule whose shard this group is."""
    return group // MAX_SHARDS


def by_shard(number: int, routed: Routed) -> Iterable[tuple[Ints, Ints]]:
    """A shard is a group."""
    return [(np.arange(len(routed.shard)), number * MAX_SHARDS + routed.shard)]


def packed(
    engine: Engine[AnyRule], rules: Mapping[int, AnyRule], readings: "DataFrame", shards: int, place: Place = by_shard
) -> "DataFrame":
    """PACKED rows of a frame of `Engine.readings`, for rules by number."""
    return readings.mapInArrow(functools.partial(_pack, engine, dict(rules), shards, place), PACKED)


def packed_watermarks(
    engine: Engine[AnyRule], rules: Mapping[int, AnyRule], gone: Sequence[int], watermarks: "DataFrame", shards: int
) -> "DataFrame":
    """PACKED rows of a frame of `landing.follow_watermarks`: for all groups of a rule those that count for it.

    Each group of a rule that is gone gets an empty row, so that its state can be removed.
    """
    return watermarks.mapInArrow(functools.partial(_spread, engine, dict(rules), gone, shards), PACKED)


def packed_row(group: int, table: str, rows: bytes) -> pa.RecordBatch:
    """One row of PACKED; they are handed out one by one, as Spark reserves memory for all of a batch at once."""
    return pa.RecordBatch.from_arrays(
        [pa.array([x], field.type) for x, field in zip((group, table, rows), _ROW, strict=True)], schema=_ROW
    )


def tables_of(
    engine: Engine[AnyRule], rule: AnyRule, rows: Iterable[tuple[str, bytes]]
) -> tuple[dict[str, pa.Table], list[list[Watermark]]]:
    """The tables of a shard from the packed rows of a group, and its watermarks by stream."""
    parts: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for name, blob in rows:
        parts[name].append(pa.ipc.open_stream(blob).read_all())
    watermarks: list[list[Watermark]] = [[] for _ in engine.streams(rule)]
    for table in parts.pop(WATERMARKS, []):
        for gateway, stream, us in zip(*(column.to_pylist() for column in table.columns), strict=True):
            watermarks[stream].append((gateway, us))
    # Each part has dictionaries of its own; one for all, so that later steps need not look at parts.
    return {
        name: pa.concat_tables([schema.empty_table(), *parts[name]]).unify_dictionaries().combine_chunks()
        for name, schema in engine.tables(rule).items()
    }, watermarks


def _pack(
    engine: Engine[AnyRule], rules: dict[int, AnyRule], shards: int, place: Place, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        readings = pa.Table.from_batches([batch])
        for number, rule in rules.items():
            for routed in engine.routed(rule, readings, shards):
                for at, group in place(number, routed):
                    for one, rows in _by_group(routed.rows, at, group):
                        yield packed_row(one, routed.table, to_bytes(rows))


def _by_group(rows: pa.Table, at: Ints, group: Ints) -> Iterator[tuple[int, pa.Table]]:
    """(group, its rows) of the rows at these places."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    rows = rows.take(pa.array(at[order]))
    changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for begin, end in itertools.pairwise([0, *changes.tolist(), len(ordered)] if len(ordered) else []):
        yield int(ordered[begin]), rows.slice(begin, end - begin)


def _spread(
    engine: Engine[AnyRule],
    rules: dict[int, AnyRule],
    gone: Sequence[int],
    shards: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        said = batch.to_pylist()
        for number, rule in rules.items():
            found = [
                (f"{one['site']}/{one['gateway']}", stream, one["frontier_us"])
                for one in said
                for stream in engine.heard(rule, one["site"], one["streams"])
            ]
            if found:
                columns = [
                    pa.array(x, field.type) for x, field in zip(zip(*found, strict=True), WATERMARK, strict=True)
                ]
                blob = to_bytes(pa.table(columns, schema=WATERMARK))
                for shard in range(engine.shards(rule, shards)):
                    yield packed_row(group_of(number, shard), WATERMARKS, blob)
        for number in gone if batch.num_rows else ():
            for shard in range(shards):
                yield packed_row(group_of(number, shard), "", b"")
