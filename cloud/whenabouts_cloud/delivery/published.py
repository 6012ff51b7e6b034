"""Published batches of results as values: which wait for a target, and their rows as JSON values.

Pure but for the reading of files. Folders of results never change once they are published.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PART_ROWS = 1000  # results that a target is given at a time; its memory is bounded by them
FOLDER = "batch="


@dataclass(frozen=True)
class Batch:
    """Results of one folder, of these rules only unless that is None. Series and number identify the batch everywhere."""

    folder: Path
    series: str
    number: int
    rules: frozenset[str] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of its results.

        Raises:
            OSError: it has no readable file.
        """
        return pq.read_schema(self._files()[0]).remove_metadata()

    def tables(self) -> Iterator[pa.Table]:
        """Yield the results in their order, at most PART_ROWS at a time.

        The n-th table is made of the same rows of the folder for any `rules`; without a result of them it is empty.
        """
        for file in self._files():
            with pq.ParquetFile(file) as opened:
                for rows in opened.iter_batches(PART_ROWS):
                    table = pa.Table.from_batches([rows]).replace_schema_metadata()
                    yield table if self.rules is None else table.filter(_of(table["rule"], self.rules))

    def parts(self) -> Iterator[list[dict[str, Any]]]:
        """Yield `tables` as lists of results, each a dictionary of JSON values."""
        for table in self.tables():
            yield [{name: json_value(x) for name, x in row.items()} for row in table.to_pylist()]

    def _files(self) -> list[Path]:
        files = sorted(self.folder.glob("*.parquet"))
        if not files:
            raise FileNotFoundError(f"{self.folder}: found no Parquet file, expected the published results")
        return files


def json_value(value: Any) -> Any:
    """The value with null for floats that JSON cannot hold."""
    if isinstance(value, dict):
        return {name: json_value(x) for name, x in value.items()}
    if isinstance(value, list):
        return [json_value(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def numbers_after(out: Path, delivered: int) -> list[int]:
    """Return the numbers of the batches published in a folder that are greater than this, ascending."""
    found = (one.name.removeprefix(FOLDER) for one in out.glob(f"{FOLDER}*"))
    return sorted(number for number in map(int, filter(str.isdecimal, found)) if number > delivered)


def folder_of(out: Path, number: int) -> Path:
    """Return the folder of a published batch."""
    return out / f"{FOLDER}{number:08d}"


def content_of(folder: Path) -> str:
    """Return a digest of the files of a complete result, which has always the number 0."""
    digest = hashlib.blake2b(digest_size=8)
    for file in sorted(folder.glob("*.parquet")):
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, hashlib.blake2b).digest())
    return digest.hexdigest()


def _of(column: pa.ChunkedArray, rules: frozenset[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(sorted(rules), pa.string()))
