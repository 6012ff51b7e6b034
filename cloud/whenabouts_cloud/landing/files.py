"""Data files of a landing: which there are, and whether one is whole.

A file is damaged if its footer or a page cannot be read (both have checksums), if columns are missing, or if the identities
of its readings are not the numbers that its metadata lists.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.layout import NUMBER, PART, parts_of
from whenabouts_cloud.landing.ranges import Range, range_of
from whenabouts_cloud.landing.schema import AHEAD_DIR, IDENTITY, SCHEMA
from whenabouts_cloud.landing.sealing import check_footer, restored_end
from whenabouts_cloud.landing.store import Store

RANGES_KEY = b"whenabouts.ranges"
FILE_KEY = b"whenabouts.file"  # the number under which the ingest wrote it
DAMAGED_DIR = "_damaged"  # in the landing
LEFT_OUT_DIR = f"{DAMAGED_DIR}/left_out"  # an empty file for each that a job has left out, under the same path
SIDE_OUTPUTS = (AHEAD_DIR,)  # folders of data files that are numbered with the others
NEEDED = (*IDENTITY, "stream", "kind", "t_min", "t_max")


# What PyArrow raises when a file is not whole; a changed name of a column may be no text.
DAMAGE = (OSError, pa.ArrowException, UnicodeDecodeError)


class DamagedFileError(Exception):
    """A file that is not whole; the text says what was found and what was expected."""


class Footer(NamedTuple):
    """What the end of a file says of it: the number of its readings, and if it is a file of the ingest, their numbers and
    the number of the file; earlier versions did not write the last.
    """

    rows: int
    ranges: list[Range] | None
    number: int | None


def data_files(part: Path) -> Iterator[Path]:
    """The files that readers of a part of a landing see, in the order of their names; and those of its side outputs."""
    for root in (part, *(part / name for name in SIDE_OUTPUTS)):
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name[0] not in "._" and not name.startswith(PART))
            yield from (Path(folder, name) for name in sorted(names) if name[0] not in "._")


def part_folders(landing: Path) -> list[Path]:
    """The folders of the parts of a landing."""
    return [landing / name for name in parts_of(Store.at(landing))]


def read_footer(landing: Store, path: str) -> Footer:
    """Read the end of a file, some 0.3 ms.

    Raises:
        DamagedFileError: it is missing, cut, or has other columns.
    """
    with _opened(landing, path) as file:
        return _footer_of(file, landing.local is not None)  # object stores have checksums of their own


def _footer_of(file: pa.NativeFile, is_checked: bool) -> Footer:
    try:
        if not file.size():
            raise DamagedFileError("found an empty file, expected Parquet")
        if is_checked:
            check_footer(file)
        data = pq.read_metadata(file)
        columns = data.schema.to_arrow_schema()
        names = {*columns.names}
        said = data.metadata or {}
        ranges = [range_of(one) for one in json.loads(said[RANGES_KEY])] if RANGES_KEY in said else None
        number = int(said[FILE_KEY]) if FILE_KEY in said else None
    except (OSError, pa.ArrowException, ValueError, TypeError) as error:
        raise DamagedFileError(f"found no whole Parquet file ({_line(error)})") from None
    for name in SCHEMA.names:
        at = columns.get_field_index(name)
        if at < 0 and name in NEEDED:
            raise DamagedFileError(f"found no column {name}, expected the columns of readings")
        if at >= 0 and not _same_type(columns.field(at).type, SCHEMA.field(name).type):
            raise DamagedFileError(f"found {name} as {columns.field(at).type}, expected {SCHEMA.field(name).type}")
    if ranges is not None and (strange := names - {*SCHEMA.names, NUMBER}):
        raise DamagedFileError(f"found a column {min(strange)!a}, expected the columns of readings only")
    return Footer(data.num_rows, ranges, number)


def _opened(landing: Store, path: str) -> pa.NativeFile:
    try:
        return landing.open(path)
    except FileNotFoundError:
        raise DamagedFileError("found no file of this name any more") from None
    except (OSError, ValueError) as error:  # ValueError: its name is no text
        raise DamagedFileError(f"found no readable file ({_line(error)})") from None


def check_file(landing: Store, path: str) -> Footer:
    """Read all of a file, and compare its readings with its metadata; 50 000 readings take some 50 ms.

    Raises:
        DamagedFileError: it is not whole.
    """
    footer = read_footer(landing, path)
    rows, found = 0, []
    with _opened(landing, path) as file:
        for group in row_groups(file):
            if isinstance(group, DamagedFileError):
                raise group
            if any(group[name].null_count for name in IDENTITY):
                raise DamagedFileError("found readings without an identity")
            rows += group.num_rows
            found.append(group.select(IDENTITY))
    if rows != footer.rows:
        raise DamagedFileError(f"found {rows} readings, expected the {footer.rows} that its footer names")
    if footer.ranges is not None and numbers_in(found) != sorted(footer.ranges):
        raise DamagedFileError("found other readings than the numbers in its metadata")
    return footer


def readable_groups(file: Path) -> Iterator[pa.Table | DamagedFileError]:
    """What is left of a damaged file, as `row_groups`; nothing if its footer cannot be restored."""
    data = _restored(file)
    return iter(()) if data is None else row_groups(data)


def damaged_ranges(file: Path) -> list[Range] | None:
    """The numbers of readings that a damaged file had; None if its footer does not tell."""
    data = _restored(file)
    try:
        return None if data is None else _footer_of(data, is_checked=False).ranges
    except DamagedFileError:
        return None


def _restored(path: Path) -> pa.NativeFile | None:
    """A damaged file with a changed bit of its footer put back, for which it is held in memory.

    With more than one the footer may take pages of one column for those of another: None, as if its end cannot be read.
    """
    try:
        file = pa.OSFile(str(path))
        end = restored_end(file)
        if end is None:
            return None
        at, tail = end
        file.seek(at)
        if file.read() == tail:
            return file
        file.seek(0)
        return pa.BufferReader(file.read(at) + tail)
    except (OSError, ValueError):
        return None


def row_groups(file: pa.NativeFile) -> Iterator[pa.Table | DamagedFileError]:
    """The readings of a file, one row group at a time, or an error in its place; nothing if the footer is unreadable."""
    try:
        parquet = pq.ParquetFile(file, page_checksum_verification=True)
    except DAMAGE:
        return
    with parquet:
        for number in range(parquet.num_row_groups):
            try:
                yield sound(parquet.read_row_group(number))
            except DAMAGE as error:
                yield DamagedFileError(f"found unreadable readings in row group {number} ({_line(error)})")


def sound(table: pa.Table) -> pa.Table:
    """The table, if all its values are valid. No checksum covers the header of a page, and damage there can leave numbers in
    a dictionary that are of no text. Cost: 8 ms for 10^6 readings.

    Raises:
        pa.ArrowException: some are not.
    """
    table.validate(full=True)
    return table


def numbers_in(tables: Iterable[pa.Table]) -> list[Range]:
    """The numbers of readings as the fewest ranges, sorted."""
    some = [table for table in tables if table.num_rows]
    if not some:
        return []
    by = pa.concat_tables(some).group_by(["site", "gateway", "boot"], use_threads=False)
    groups = by.aggregate([("seq", "list")])
    seqs, ranges = groups["seq_list"].combine_chunks(), list[Range]()
    for row, seq in zip(groups.drop_columns("seq_list").to_pylist(), seqs, strict=True):
        numbers = np.unique(seq.values.to_numpy())
        ends = np.flatnonzero(np.diff(numbers) != 1)
        firsts, lasts = numbers[np.r_[0, ends + 1]].tolist(), numbers[np.r_[ends, len(numbers) - 1]].tolist()
        ranges += [(f"{row['site']}/{row['gateway']}", row["boot"], *both) for both in zip(firsts, lasts, strict=True)]
    return sorted(ranges)


def _same_type(found: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_list(expected):
        return pa.types.is_list(found) and bool(found.value_type == expected.value_type)
    return bool(found == expected) or (pa.types.is_large_string(found) and pa.types.is_string(expected))


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
