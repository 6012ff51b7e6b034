"""Packs readings for Spark's shuffle, many to a row.

A row of a shuffle costs Spark more than a reading costs an engine. So the task that reads files makes the rows of an
engine's tables for all rules and packs those of one group as one Arrow IPC stream; Spark shuffles, groups and returns to
Python only a few such rows. A group is a shard of a rule, or in a batch a slab of a shard. Watermarks are packed likewise.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
import pyarrow as pa

from whenabouts_cloud.blobs import to_bytes
from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.jobs.engines.engine import AnyRule, EngineJob, Ints
from whenabouts_cloud.jobs.reading.sizes import measure, size_table
from whenabouts_cloud.landing.scan import newest_watermarks

PACKED = "group int, table string, rows binary"
MAX_SHARDS = 1024  # of a rule
WATERMARKS = "watermarks"
COMPLETE = "watermarks of what is here"  # they take effect at once
SIZES = "sizes"
WATERMARK = pa.schema(
    [("gateway", pa.string()), ("stream", pa.int32()), ("frontier_us", pa.int64()), ("boot", pa.int64())]
)
_ROW = pa.schema([("group", pa.int32()), ("table", pa.string()), ("rows", pa.binary())])


def group_of(number: int, shard: int) -> int:
    """Return the group of a shard of the rule with this number."""
    return number * MAX_SHARDS + shard


def rule_of(group: int) -> int:
    """Return the number of the rule that a group belongs to."""
    return group // MAX_SHARDS


def shard_of(group: int) -> int:
    """Return the shard that a group is."""
    return group % MAX_SHARDS


@dataclass(frozen=True)
class Packing(Generic[AnyRule]):
    """What tasks do with what they read: rules by number, shards of each, groups with `shared_rows`.

    gone: numbers of rules that no longer exist. measured: numbers of rules whose groups are measured (`sizes`).
    """

    engine: EngineJob[AnyRule]
    rules: Mapping[int, AnyRule]
    shards: int
    sharing: Sequence[int] = ()
    gone: Sequence[int] = ()
    measured: Sequence[int] = ()

    def readings(self, landed: pa.Table) -> Iterator[pa.RecordBatch]:
        """Pack landed readings for the groups of all rules; yields batches of PACKED rows, one of them with the sizes."""
        readings = self.engine.readings(list(self.rules.values()), landed)
        sizes = []
        for number, rule in self.rules.items():
            for routed in self.engine.routed(rule, readings, self.shards):
                for shard, rows in divided(routed.rows, routed.shard):
                    group = group_of(number, shard)
                    yield packed_row(group, routed.table, to_bytes(rows))
                    if number in self.measured:
                        sizes.append(measure(group, rows, self.engine.times(rule, routed.table, rows)))
        for name, rows in self.engine.shared_rows(landed) if self.sharing else ():
            for one in self.sharing:
                yield packed_row(one, name, to_bytes(rows))
        if sizes:
            yield packed_row(0, SIZES, to_bytes(size_table(sizes)))

    def watermarks(self, said: Iterable[Mapping[str, Any]], complete: bool) -> Iterator[pa.RecordBatch]:
        """Pack watermarks of gateways (`scan.frontiers_in`): every group of a rule gets those that count for the rule.

        complete: all that they cover is packed too, so they take effect at once. Each group of a rule in `gone` gets an
        empty row, so that its state can be removed.
        """
        latest = newest_watermarks(said)
        for number, rule in self.rules.items():
            watermarks = [
                (f"{site}/{gateway}", stream, us, boot)
                for (site, gateway, boot, streams), us in latest.items()
                for stream in self.engine.heard(rule, site, gateway, streams)
            ]
            if watermarks:
                columns = [
                    pa.array(x, field.type) for x, field in zip(zip(*watermarks, strict=True), WATERMARK, strict=True)
                ]
                blob = to_bytes(pa.table(columns, schema=WATERMARK))
                for shard in range(self.engine.shards(rule, self.shards)):
                    yield packed_row(group_of(number, shard), COMPLETE if complete else WATERMARKS, blob)
        for number in self.gone if latest else ():
            for shard in range(self.shards):
                yield packed_row(group_of(number, shard), "", b"")


def packed_row(group: int, table: str, rows: bytes) -> pa.RecordBatch:
    """Return one PACKED row as a batch: Spark reserves memory for a whole batch at once."""
    return pa.RecordBatch.from_arrays(
        [pa.array([x], field.type) for x, field in zip((group, table, rows), _ROW, strict=True)], schema=_ROW
    )


def tables_of(
    engine: EngineJob[AnyRule], rule: AnyRule, rows: Iterable[tuple[str, bytes]]
) -> tuple[dict[str, pa.Table], list[list[Watermark]]]:
    """Unpack the rows of a group into the tables of its shard and its watermarks by stream."""
    parts: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for name, blob in rows:
        parts[name].append(pa.ipc.open_stream(blob).read_all())
    watermarks: list[list[Watermark]] = [[] for _ in engine.streams(rule)]
    for table in [*parts.pop(WATERMARKS, []), *parts.pop(COMPLETE, [])]:
        for gateway, stream, us, boot in zip(*(column.to_pylist() for column in table.columns), strict=True):
            watermarks[stream].append(Watermark(gateway, us, boot))
    # Unify the dictionaries of the parts, so that later steps see one chunk.
    return {
        name: pa.concat_tables(parts[name] or [schema.empty_table()]).unify_dictionaries().combine_chunks()
        for name, schema in engine.tables(rule).items()
    }, watermarks


def divided(rows: pa.Table, parts: Ints) -> Iterator[tuple[int, pa.Table]]:
    """Yield (part, its rows in their order) for the number of each row's part."""
    small = parts.astype(np.int16) if parts.max(initial=0) < 1 << 15 else parts  # is sorted in linear time
    order = np.argsort(small, kind="stable")
    ordered = parts[order]
    changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for begin, end in itertools.pairwise([0, *changes.tolist(), len(ordered)] if len(ordered) else []):
        yield int(ordered[begin]), rows.take(pa.array(order[begin:end]))
