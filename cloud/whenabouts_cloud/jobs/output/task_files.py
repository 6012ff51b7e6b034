"""Results on their way from the tasks to the sink: as Parquet files that the tasks write, which the sink publishes.

What is handed from task to driver through Spark are a few words about each file, so results pass neither through Java nor
through the driver's memory, and are encoded by all cores. A task that Spark repeats writes files of other names; only those
are taken whose words came from the attempt that Spark counts.
"""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.durable import sync
from whenabouts_cloud.shard import StepOutput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW_GROUP = 1 << 16  # rows of a result that are encoded at once: many small groups take twice as long to write
FEW = 1 << 10  # a file with fewer rows is put together with others: a reader pays for each file
WRITTEN = "written binary"  # of a frame: words about files, as JSON
RESULTS, LATE, EFFECTS = "", "_late", "_late_effects"  # folders of a published output

Write = Callable[[StepOutput], bytes]
"""Writes the output of a shard to files, in a task; gives the words about them."""
Make = Callable[[Write], "DataFrame"]
"""Makes a frame (WRITTEN) whose tasks write in this way."""


class LostRowsError(RuntimeError):
    """What the workers wrote is not there to be published: the output folder is not shared by all machines."""


class Words(NamedTuple):
    """Of all tasks: what was counted, and by folder the files and their rows."""

    counts: list[dict[str, Any]]
    files: dict[str, dict[str, int]]


@dataclass(frozen=True)
class TaskFiles:
    """Files of tasks in a folder that all machines share."""

    folder: Path

    def write(self, output: StepOutput) -> bytes:
        """Write an output to files; the words about them. Runs in tasks."""
        tables = {RESULTS: output.results, LATE: output.late, EFFECTS: output.effects}
        files = [
            (name, self._write(rows), rows.num_rows)
            for name, rows in tables.items()
            if rows is not None and rows.num_rows
        ]
        return json.dumps({"counts": output.counts, "files": files}).encode()

    def collect(self, frame: "DataFrame") -> Words:
        """Compute a frame (WRITTEN)."""
        self.clear()
        words = Words([], {})
        for (row,) in frame.collect():
            said = json.loads(row)
            words.counts.append(said["counts"])
            for name, file, rows in said["files"]:
                words.files.setdefault(name, {})[file] = rows
        return words

    def move(self, files: Mapping[str, int], into: Path, schema: pa.Schema | None = None) -> None:
        """Make a durable folder of these files, small ones as one; without any, of one of this schema without rows.

        Raises:
            LostRowsError: not all of them are there, or not as they were written.
        """
        found = {name: _rows_in(self.folder / name) for name in files}
        if found != dict(files):
            raise LostRowsError(
                f"output {self.folder.parent}: found {sum(found.values())} rows, expected the {sum(files.values())} "
                "that were computed; on a cluster --out must be a folder that all machines share"
            )
        into.mkdir()
        large = [name for name, rows in files.items() if rows >= FEW]
        for number, name in enumerate(large):
            (self.folder / name).rename(into / f"part-{number + 1:05d}.parquet")
        few = [pq.read_table(self.folder / name) for name in files if name not in large]
        if few or not large:
            _write(into / "part-00000.parquet", pa.concat_tables(few) if few else schema.empty_table())  # type: ignore[union-attr]
        sync(into)

    def clear(self) -> None:
        """Remove all files, of tasks that failed too."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, rows: pa.Table) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{uuid.uuid4().hex}.parquet"
        _write(self.folder / name, rows, durably=rows.num_rows >= FEW)
        return name


def _write(into: Path, rows: pa.Table, durably: bool = True) -> None:
    """With dictionaries for texts that repeat; those of numbers and of ids grow as large as the columns themselves."""
    texts = [path for field in rows.schema if field.name != "result_id" for path in _texts(field, field.name)]
    with pq.ParquetWriter(into, rows.schema, compression="zstd", use_dictionary=texts) as writer:
        writer.write_table(rows, row_group_size=ROW_GROUP)
    if durably:
        sync(into)


def _texts(field: pa.Field, path: str) -> Iterator[str]:
    """The paths of texts in a column, as Parquet calls them."""
    if pa.types.is_list(field.type):
        yield from _texts(field.type.value_field, f"{path}.list.element")
    elif pa.types.is_struct(field.type):
        for child in field.type:
            yield from _texts(child, f"{path}.{child.name}")
    elif pa.types.is_string(field.type):
        yield path


def _rows_in(file: Path) -> int:
    """0 for a file that is not there."""
    try:
        rows: int = pq.read_metadata(file).num_rows
    except FileNotFoundError:
        return 0
    return rows
