"""Results on their way from the tasks to the sink: as Parquet files that the tasks write, which the sink puts together.

What is handed from task to driver through Spark are a few words about each file (`Parts.tell`), so results pass neither
through Java nor through the driver's memory, and are encoded by all cores. A task that Spark repeats writes files of other
names; only those are taken whose words came from the attempt that Spark counts.
"""

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.jobs.output.footer import join
from whenabouts_cloud.jobs.output.formats import Format, divided

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW_GROUP = 1 << 16  # rows of a result that are encoded at once: many small groups take twice as long to write
FEW = 1 << 10  # a file with fewer rows is not worth a row group of its own

Tell = Callable[[pa.Table], Iterable[bytes]]
"""What an operator does with a table of what it has to tell; gives what its rows of the frame hold."""
Make = Callable[[Tell], "DataFrame"]
"""Makes a frame whose operator tells in this way."""


class LostRowsError(RuntimeError):
    """What the workers wrote is not there to be published: the output folder is not shared by all machines."""


class Told(NamedTuple):
    """Words of all tasks: what was counted, and for results ("") and each folder of ASIDE the files and their rows."""

    counts: list[dict[str, Any]]
    files: dict[str, dict[str, int]]


@dataclass(frozen=True)
class Parts:
    """Files of one kind of results in a folder that all machines share."""

    kind: Format
    folder: Path

    def tell(self, told: pa.Table) -> Iterator[bytes]:
        """Write what an operator told, rows with a note, to files; words about them. Runs in tasks."""
        results, aside, counts = divided(self.kind, told)
        files = [(name, self._write(rows), rows.num_rows) for name, rows in (("", results), *aside.items())]
        yield json.dumps({"counts": counts, "files": [one for one in files if one[-1]]}).encode()

    def told(self, frame: "DataFrame") -> Told:
        """Compute a frame whose operator tells with `tell`."""
        self.clear()
        told = Told([], {})
        for (row,) in frame.collect():
            words = json.loads(row)
            told.counts.extend(words["counts"])
            for name, file, rows in words["files"]:
                told.files.setdefault(name, {})[file] = rows
        return told

    def merge(self, files: Mapping[str, int], schema: pa.Schema, into: Path) -> None:
        """Put files together as one, which is durable then.

        Raises:
            LostRowsError: not all of them are there, or not as they were written.
        """
        found = {name: _rows_in(self.folder / name) for name in files}
        if found != dict(files):
            raise LostRowsError(
                f"output {self.folder.parent}: found {sum(found.values())} rows, expected the {sum(files.values())} "
                "that were computed; on a cluster --out must be a folder that all machines share"
            )
        few = [self.folder / name for name, rows in files.items() if rows < FEW]
        many = [self.folder / name for name, rows in files.items() if rows >= FEW]
        if few or not many:
            self.folder.mkdir(parents=True, exist_ok=True)
            many.append(_rewritten(few, schema, self.folder / "few.parquet"))
        with into.open("wb") as file:
            join(many, file)
            file.flush()
            os.fsync(file.fileno())

    def clear(self) -> None:
        """Remove all files, of tasks that failed too."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self, rows: pa.Table) -> str:
        if not rows.num_rows:
            return ""
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{uuid.uuid4().hex}.parquet"
        with _writer(self.folder / name, rows.schema) as writer:
            writer.write_table(rows, row_group_size=ROW_GROUP)
        return name


def _writer(into: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """With dictionaries for texts that repeat; those of numbers and of ids grow as large as the columns themselves."""
    texts = [path for field in schema if field.name != "result_id" for path in _texts(field, field.name)]
    return pq.ParquetWriter(into, schema, compression="zstd", use_dictionary=texts)


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


def _rewritten(files: Sequence[Path], schema: pa.Schema, into: Path) -> Path:
    """Small files as one with large row groups."""
    ready, waiting = list[pa.Table](), 0
    with _writer(into, schema) as writer:
        for file in files:
            ready.append(pq.read_table(file))
            waiting += ready[-1].num_rows
            if waiting >= ROW_GROUP:
                writer.write_table(pa.concat_tables(ready))
                ready, waiting = [], 0
        if waiting:
            writer.write_table(pa.concat_tables(ready))
    return into
