"""States of groups on their way between Spark's stages, and the rows that a rule about them tells.

As with events in an order (`event_ipc`), the task that reads readings makes reports of them and packs those of one shard
as one Arrow IPC stream. A shard is some groups, by a hash of their names: the states of a group must meet, those of
different groups never do; and few large rows of state cost Spark less than one for each group.

    packed(...)     shard int, reports binary, wrong long    a row for each shard and Arrow batch; readings that say that
                                                             they are states and are none are in `wrong`
"""

import functools
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from whenabouts_cloud.cep.shard.blobs import to_bytes
from whenabouts_cloud.jobs.landing import belongs_to, columns, counts_row
from whenabouts_cloud.latwin.shard.report import COLUMNS, REPORT, reports_of
from whenabouts_cloud.latwin.shard.results import RESULT
from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_protocol.group_state import KIND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LANDING = columns(*COLUMNS)
OUTPUT = RESULT.append(pa.field("note", pa.string()))
PACKED = "shard int, reports binary, wrong long"


def packed(rule: LatwinRule, landing: "DataFrame", shards: int) -> "DataFrame":
    """PACKED rows of the state readings of a rule's streams."""
    chosen = functools.reduce(lambda x, y: x | y, (belongs_to(stream) for stream in rule.streams))
    states = landing.where(F.col("kind") == KIND).where(chosen).select(*COLUMNS)
    return states.mapInArrow(functools.partial(_pack, rule, shards), PACKED)


def reports_in(blobs: Iterable[bytes | memoryview]) -> pa.Table:
    """The reports of packed rows."""
    return pa.concat_tables([REPORT.empty_table(), *(pa.ipc.open_stream(blob).read_all() for blob in blobs)])


def output_of(told: pa.Table, counts: dict[str, Any]) -> pa.Table:
    """Rows of a result and counts as one table of OUTPUT."""
    rows = told.append_column("note", pa.nulls(told.num_rows, pa.string()))
    return pa.concat_tables([rows, counts_row(counts, OUTPUT)])


def _pack(rule: LatwinRule, shards: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        reports, wrong = reports_of(rule, pa.Table.from_batches([batch]))
        groups = reports["group"].combine_chunks().dictionary_encode()
        if isinstance(groups, pa.ChunkedArray):
            groups = (
                pa.concat_arrays(groups.chunks) if groups.num_chunks else pa.array([], pa.string()).dictionary_encode()
            )
        of_group = np.array([zlib.crc32(name.encode()) % shards for name in groups.dictionary.to_pylist()], np.int64)
        shard = pa.array(of_group[groups.indices.to_numpy()], pa.int32())
        for n in range(shards):
            mine = reports.filter(pc.equal(shard, n))
            faults = wrong if n == 0 else 0
            if mine.num_rows or faults:
                columns = [pa.array([n], pa.int32()), pa.array([to_bytes(mine)], pa.binary()), pa.array([faults])]
                yield pa.RecordBatch.from_arrays(columns, ["shard", "reports", "wrong"])
