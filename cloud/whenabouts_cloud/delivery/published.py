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

from whenabouts_cloud.delivery.result_files import opened
from whenabouts_cloud.landing.store import COPIED, Store

PART_ROWS = 1000  # results that a target is given at a time; its memory is bounded by them
FOLDER = "batch="
INPUT = (
    "_input.json"  # digest of the input of a batch; in an object store written last, so a batch with it is published
)


@dataclass(frozen=True)
class Batch:
    """Results of one folder, of these rules only unless that is None. Series and number identify the batch everywhere."""

    folder: Path | Store
    series: str
    number: int
    rules: frozenset[str] | None = None

    @property
    def out(self) -> Store:
        """The output that it is published in."""
        place = Store.at(self.folder)
        return Store(place.uri.rpartition("/")[0], place.variables)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its results.

        Raises:
            FileNotFoundError: it has no file.
            DamagedResultsError: its first file is damaged.
        """
        place, names = self._files()
        with opened(place, names[0]) as file:
            return file.schema_arrow.remove_metadata()

    def tables(self) -> Iterator[pa.Table]:
        """Yield the results in their order, at most PART_ROWS at a time.

        The n-th table is made of the same rows of the folder for any `rules`; without a result of them it is empty.

        Raises:
            DamagedResultsError: a file is damaged.
        """
        place, names = self._files()
        for name in names:
            with opened(place, name) as file:
                for rows in file.iter_batches(PART_ROWS):
                    table = pa.Table.from_batches([rows]).replace_schema_metadata()
                    yield table if self.rules is None else table.filter(_of(table["rule"], self.rules))

    def parts(self) -> Iterator[list[dict[str, Any]]]:
        """Yield `tables` as lists of results, each a dictionary of JSON values."""
        for table in self.tables():
            yield [{name: json_value(x) for name, x in row.items()} for row in table.to_pylist()]

    def _files(self) -> tuple[Store, list[str]]:
        place = Store.at(self.folder)
        names = parquet_in(place)
        if not names:
            raise FileNotFoundError(f"{place.uri}: found no Parquet file, expected the published results")
        return place, names


def json_value(value: Any) -> Any:
    """The value with null for floats that JSON cannot hold."""
    if isinstance(value, dict):
        return {name: json_value(x) for name, x in value.items()}
    if isinstance(value, list):
        return [json_value(x) for x in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parquet_in(folder: Store) -> list[str]:
    """The names of the files of results in a folder, sorted."""
    return sorted(one.name for one in folder.entries() if one.name.endswith(".parquet"))


def numbers_after(out: Store, delivered: int) -> list[int]:
    """Return the numbers of the batches published in an output that are greater than this, ascending.

    In an object store the newest one may not be published yet (`jobs.output.publication`).
    """
    found = (one.name.removeprefix(FOLDER) for one in out.entries() if one.name.startswith(FOLDER))
    numbers = sorted(number for number in map(int, filter(str.isdecimal, found)) if number > delivered)
    if numbers and out.local is None and out.sizes([f"{folder_of(numbers[-1])}/{INPUT}"]) == [None]:
        numbers.pop()
    return numbers


def folder_of(number: int) -> str:
    """Return the folder of a published batch in its output."""
    return f"{FOLDER}{number:08d}"


def content_of(folder: Path | Store) -> str:
    """Return a digest of the files of a complete result, which has always the number 0."""
    digest, place = hashlib.blake2b(digest_size=8), Store.at(folder)
    for name in parquet_in(place):
        with place.open(name) as opened:
            one = hashlib.blake2b()
            while data := opened.read(COPIED):
                one.update(data)
        digest.update(one.digest())
    return digest.hexdigest()


def _of(column: pa.ChunkedArray, rules: frozenset[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(sorted(rules), pa.string()))
