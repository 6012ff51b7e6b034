"""Events on their way between Spark's stages: packed by the task that reads them, many to a row.

A row of a shuffle costs Spark more than an event costs an engine. So the task that reads readings makes events of them and
packs those of one group as one Arrow IPC stream; what is shuffled, grouped and handed to Python again are a few such rows.
In the same way an operator hands out a result that is to be a frame; one that is to be published it writes to files and
tells where they are (`parts`). Readings are chosen, and the shard of a key computed, by Spark's own code before that.

    packed(...)     group int, events binary      one row for each group and Arrow batch
    packed_each     group string, events binary   the same for several rules at once; groups are "number of the rule/shard"
    packed_rows     told binary                   a result, OUTPUT, in rows of at most PACKED_ROWS of its rows
    unpacked(...)   OUTPUT                        the same as rows of Spark's own
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from whenabouts_cloud.cep.shard.blobs import to_bytes
from whenabouts_cloud.cep.shard.events import PLAIN, Ints, events_of, schema_of, sources_of
from whenabouts_cloud.cep.shard.results import COUNT, RESULT
from whenabouts_cloud.cep.shard.views import MARK, RUN, STATE, Views, runs_of
from whenabouts_cloud.jobs.landing import belongs_to, columns, counts_row
from whenabouts_cloud.rules.model import CepRule
from whenabouts_protocol.reading import NO_EVENT_KINDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Of the landing's columns those that a rule about events in an order may read.
LANDING = columns(*PLAIN, "kind", "value", "unit", "attrs", "vclock")
# Rows of matches, of counts, and notes.
OUTPUT = pa.unify_schemas([RESULT, COUNT, pa.schema([("note", pa.string())])])
PACKED = "group int, events binary"
PACKED_RESULT = "told binary"
PACKED_ROWS = 1000  # of a result in one row: some 100 kB

Groups = Callable[[CepRule, pa.Table, Ints], Iterable[tuple[Ints, Ints]]]
"""From events and the shard of each to (row, group) pairs: which groups they are worked on in."""


def readings_of(rule: CepRule, landing: "DataFrame", shards: int) -> "DataFrame":
    """The readings of a rule's streams with `shard` and the columns of `events.events_of`."""
    rows = readings_of_all([rule], landing, shards)
    return rows if rule.pattern.per_key else rows.withColumn("shard", F.lit(0))


def readings_of_all(rules: Sequence[CepRule], landing: "DataFrame", shards: int) -> "DataFrame":
    """The readings of any rule's streams, with the columns that some rule needs; `shard` is that of the key."""
    streams = dict.fromkeys(stream for rule in rules for stream in rule.streams)
    chosen = functools.reduce(lambda x, y: x | y, (belongs_to(stream) for stream in streams), F.lit(False))
    rows = landing.where(~F.col("kind").isin(*NO_EVENT_KINDS)).where(chosen)
    if all(rule.pattern.per_key for rule in rules):
        rows = rows.where(F.col("key").isNotNull())
    sources = sorted({name for rule in rules for name in sources_of(rule.plan(), rule.count)})
    if any(name.startswith("attrs:") for name in sources):
        rows = rows.withColumn("parsed", F.try_parse_json("attrs"))
    shard = F.pmod(F.xxhash64("key"), F.lit(shards)).cast("int").alias("shard")
    return rows.select(shard, *PLAIN, *(_source(name).alias(name) for name in sources))


def group_name(number: int, shard: int) -> str:
    """The group of a shard of the rule with this number."""
    return f"{number}/{shard}"


def groups_of(number: int, rule: CepRule, shards: int) -> list[str]:
    """All groups of a rule. Events of any keys are in one match of a rule ACROSS KEYS, so they are all in one shard."""
    return [group_name(number, shard) for shard in range(shards if rule.pattern.per_key else 1)]


def _source(name: str) -> "Column":
    """A column that conditions are made of; of an attribute its JSON."""
    if not name.startswith("attrs:"):
        return F.col(name)
    path = "$['" + name.removeprefix("attrs:").replace("'", "\\'") + "']"
    return F.to_json(F.try_variant_get("parsed", path, "variant"))


def views_of(landing: "DataFrame") -> "DataFrame":
    """Rows of one column `views`, an Arrow IPC stream each, in which state readings tell views (`views.RUN`)."""
    told = landing.where((F.col("kind") == "state") & F.contains("attrs", F.lit(MARK)))
    return told.select(*STATE).mapInArrow(_pack_views, "views binary")


def packed(rule: CepRule, readings: "DataFrame", groups: Groups | None = None) -> "DataFrame":
    """PACKED rows of a frame of `readings_of`; without `groups` a shard is a group."""
    return readings.mapInArrow(functools.partial(_pack, rule, groups), PACKED)


def packed_each(rules: Mapping[int, CepRule], readings: "DataFrame") -> "DataFrame":
    """Packed rows of a frame of `readings_of_all`, for rules by number."""
    return readings.mapInArrow(functools.partial(_pack_each, dict(rules)), "group string, events binary")


def packed_rows(table: pa.Table) -> Iterator[bytes]:
    """A table as rows of PACKED_RESULT; hand them out one by one, as Spark reserves memory for all of a batch at once."""
    return (to_bytes(table.slice(at, PACKED_ROWS)) for at in range(0, table.num_rows, PACKED_ROWS))


def unpacked(frame: "DataFrame") -> "DataFrame":
    """The rows of OUTPUT in a frame of PACKED_RESULT."""
    return frame.mapInArrow(_unpack, from_arrow_schema(OUTPUT))


def events_in(rule: CepRule, blobs: Iterable[bytes | memoryview]) -> pa.Table:
    """The events of packed rows."""
    parts = [pa.ipc.open_stream(blob).read_all() for blob in blobs]
    # Each part has dictionaries of its own; one for all, so that later steps need not look at parts.
    return (
        pa.concat_tables([schema_of(rule.plan(), rule.count).empty_table(), *parts])
        .unify_dictionaries()
        .combine_chunks()
    )


def output_of(told: pa.Table, counts: dict[str, Any], *aside: tuple[pa.Table, Any]) -> pa.Table:
    """Rows of a result, counts, and rows to set aside with the reason of each, as one table of OUTPUT."""
    parts = [_filled(told), counts_row(counts, OUTPUT)]
    return pa.concat_tables([*parts, *(_filled(rows.append_column("note", reason)) for rows, reason in aside)])


def _filled(rows: pa.Table) -> pa.Table:
    """With null in the columns of OUTPUT that are not there."""
    of = {name: rows[name] for name in rows.column_names}
    return pa.table([of.get(field.name, pa.nulls(rows.num_rows, field.type)) for field in OUTPUT], schema=OUTPUT)


def _pack(rule: CepRule, groups: Groups | None, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    plan = rule.plan()
    for batch in batches:
        readings = pa.Table.from_batches([batch])
        events, row = events_of(rule, plan, readings)
        shard = readings["shard"].to_numpy()[row]
        pairs = [(None, shard)] if groups is None else groups(rule, events, shard)
        for at, group in pairs:
            for number, blob in _grouped(events, at, group):
                columns = [pa.array([number], pa.int32()), pa.array([blob], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["group", "events"])


def _pack_each(rules: dict[int, CepRule], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        readings = pa.Table.from_batches([batch])
        for number, rule in rules.items():
            events, row = events_of(rule, rule.plan(), readings)
            shard = readings["shard"].to_numpy()[row] if rule.pattern.per_key else np.zeros(len(row), np.int64)
            for of_shard, blob in _grouped(events, None, shard):
                columns = [pa.array([group_name(number, of_shard)]), pa.array([blob], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["group", "events"])


def _pack_views(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    views = Views()
    for batch in batches:
        views.add(runs_of(pa.Table.from_batches([batch])))
    known = views.table()
    if known.num_rows:
        yield pa.RecordBatch.from_arrays([pa.array([to_bytes(known)], pa.binary())], ["views"])


def views_in(blobs: Iterable[bytes | memoryview]) -> pa.Table:
    """The views of rows of `views_of`."""
    return pa.concat_tables([RUN.empty_table(), *(pa.ipc.open_stream(blob).read_all() for blob in blobs)])


def _grouped(events: pa.Table, at: Ints | None, group: Ints) -> Iterator[tuple[int, bytes]]:
    """(group, its events packed) of the events at these rows, all without them."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    events = events.take(pa.array(order if at is None else at[order]))
    changes = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for begin, end in itertools.pairwise([0, *changes.tolist(), len(ordered)] if len(ordered) else []):
        yield int(ordered[begin]), to_bytes(events.slice(begin, end - begin))


def _unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for blob in batch.column(0):
            yield from pa.ipc.open_stream(blob.as_buffer())
