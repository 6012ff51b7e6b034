"""Transfers results from the tasks to the sink: the tasks write Parquet files, which the sink publishes.

A task returns through Spark only a short record of the files it wrote, so results pass neither through Java nor through the
driver's memory, and all cores encode them. A task that Spark repeats writes files with other names; the sink takes only the
files in the record of the attempt that Spark counts.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.delivery.result_files import table_of
from whenabouts_cloud.durable import sync
from whenabouts_cloud.landing.sealing import CRC_KEY, NO_CRC, seal_footer
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.shard import StepOutput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW_GROUP = 1 << 16  # rows encoded at once; many small row groups take twice as long to write
WRITE_BATCH = 1 << 13  # values encoded at once: Arrow's 1024 take a tenth longer
FEW = 1 << 10  # files with fewer rows are merged: each file costs a reader
WRITTEN = "written binary"  # schema of a frame: records about files, as JSON
RESULTS, LATE, EFFECTS = "", "_late", "_late_effects"  # folders of a published output

Write = Callable[[StepOutput], bytes]
"""Writes the output of a shard to files, in a task; returns the record about them."""
Make = Callable[[Write], "DataFrame"]
"""Makes a frame (WRITTEN) whose tasks write with this function."""


class LostRowsError(RuntimeError):
    """Files of the workers are missing: the output folder is not shared by all machines."""


class TaskRecords(NamedTuple):
    """Records of all tasks: their counts, and by folder the files with their number of rows."""

    counts: list[dict[str, Any]]
    files: dict[str, dict[str, int]]


@dataclass(frozen=True)
class TaskFiles:
    """Files of tasks in a folder that all machines share, or in an object store."""

    store: Store

    def write(self, output: StepOutput) -> bytes:
        """Write an output to files and return the record about them. Runs in tasks."""
        tables = {RESULTS: output.results, LATE: output.late, EFFECTS: output.effects}
        files = [
            (name, self._write(rows), rows.num_rows)
            for name, rows in tables.items()
            if rows is not None and rows.num_rows
        ]
        return json.dumps({"counts": output.counts, "files": files}).encode()

    def collect(self, frame: "DataFrame") -> TaskRecords:
        """Compute a frame (WRITTEN) and return the records of its tasks."""
        self.clear()
        records = TaskRecords([], {})
        for (row,) in frame.collect():
            record = json.loads(row)
            records.counts.append(record["counts"])
            for name, file, rows in record["files"]:
                records.files.setdefault(name, {})[file] = rows
        return records

    def move(self, files: Mapping[str, int], into: Store, schema: pa.Schema) -> None:
        """Move these files into a new folder, merging small ones; without any, write an empty one of this schema.

        Raises:
            LostRowsError: files are missing or have other numbers of rows.
        """
        present = {name: self._rows_in(name) for name in files}
        if present != dict(files):
            raise LostRowsError(
                f"output {self.store.uri}: found {sum(present.values())} rows, expected the {sum(files.values())} "
                "that were computed; on a cluster --out must be a folder that all machines share, or in an object store"
            )
        if into.local is not None:
            into.local.mkdir(parents=True, exist_ok=True)
        large = [name for name, rows in files.items() if rows >= FEW]
        for number, name in enumerate(large):
            self.store.move(name, into, f"part-{number + 1:05d}.parquet")
        few = [table_of(self.store, name) for name in files if name not in large]
        if few or not large:
            _write(into, "part-00000.parquet", pa.concat_tables(few) if few else schema.empty_table())

    def clear(self) -> None:
        """Remove all files, also those of failed tasks."""
        self.store.remove_folder("")

    def _write(self, rows: pa.Table) -> str:
        name = f"{uuid.uuid4().hex}.parquet"
        _write(self.store, name, rows, durably=rows.num_rows >= FEW)
        return name

    def _rows_in(self, name: str) -> int:
        """Number of rows in a file, 0 if it does not exist."""
        try:
            with self.store.open(name) as file:
                rows: int = pq.read_metadata(file).num_rows
        except FileNotFoundError:
            return 0
        return rows


def _write(into: Store, name: str, rows: pa.Table, durably: bool = True) -> None:
    """Write one file. Only the driver's names are read by others, so tasks of a folder need not rename theirs."""
    if into.local is None:
        with into.writing(name) as file:
            _write_rows(file, rows, sealed=False)  # what is streamed is not changed; a bucket has checksums
        return
    into.local.mkdir(parents=True, exist_ok=True)
    with (into.local / name).open("wb") as file:
        _write_rows(file, rows, sealed=True)
        seal_footer(file)
    if durably:
        sync(into.local / name)


def _write_rows(into: Any, rows: pa.Table, sealed: bool) -> None:
    """Use dictionaries only for texts that repeat; for numbers and ids they grow as large as the columns.

    Columns of lists have no statistics: no reader skips rows by them, and they cost a tenth of the time. Pages have
    checksums. sealed: the footer has room for its own.
    """
    texts = [path for field in rows.schema if field.name != "result_id" for path in _texts(field, field.name)]
    flat = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    numbers = [name for name in flat if pa.types.is_integer(rows.schema.field(name).type)]
    with pq.ParquetWriter(
        into, rows.schema, compression="zstd", use_dictionary=texts, write_statistics=flat, store_schema=False,
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"), write_batch_size=WRITE_BATCH,
        write_page_checksum=True,
    ) as writer:  # fmt: skip
        writer.write_table(rows, row_group_size=ROW_GROUP)
        if sealed:
            writer.add_key_value_metadata({CRC_KEY: NO_CRC})


def _texts(field: pa.Field, path: str) -> Iterator[str]:
    """Yield the Parquet paths of the texts in a column."""
    if pa.types.is_list(field.type):
        yield from _texts(field.type.value_field, f"{path}.list.element")
    elif pa.types.is_struct(field.type):
        for child in field.type:
            yield from _texts(child, f"{path}.{child.name}")
    elif pa.types.is_string(field.type) or pa.types.is_dictionary(field.type):
        yield path
