"""Repairs what a check has found (`damage`), and deletes nothing.

A damaged file is moved to `_damaged/`; the row groups of it that still read are written as a new file. A whole file that
jobs do not read again, as Spark remembers names, is renamed. New files get new numbers, in the present hour, so that jobs
and the ingest find them. `_damaged/NAME.json` records each repair. A repair that is interrupted can be repeated: a reading
that is in two files is a repeat, which jobs drop. Numbers are given as an ingest does (`running_mark`).
"""

import contextlib
import fcntl
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.durable import appearing, make_folder, sync, write_durably
from whenabouts_cloud.landing.damage import HOUR, Found, Report, record_of
from whenabouts_cloud.landing.files import (
    DAMAGED_DIR,
    NEEDED,
    RANGES_KEY,
    DamagedFileError,
    damaged_ranges,
    numbers_in,
    readable_groups,
)
from whenabouts_cloud.landing.layout import NUMBER
from whenabouts_cloud.landing.ranges import Range, without
from whenabouts_cloud.landing.running_mark import RunningMark
from whenabouts_cloud.landing.schema import IDENTITY, SCHEMA
from whenabouts_cloud.landing.sealing import CRC_KEY, NO_CRC, seal_footer


class BusyLandingError(Exception):
    """An ingest writes to the landing; the text says so."""


class Repaired(NamedTuple):
    """What became of a finding: the new file with its readings, or None, and the numbers that are lost."""

    found: Found
    new: str | None
    lost: list[Range]


class _Made(NamedTuple):
    """The new file for a finding, or None, and the numbers in it."""

    new: str | None = None
    rescued: Sequence[Range] = ()


@contextlib.contextmanager
def locked(landing: Path) -> Iterator[None]:
    """Keep every ingest out.

    Raises:
        BusyLandingError: one is running.
    """
    make_folder(landing / "_ingest")
    with (landing / "_ingest" / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyLandingError(f"landing {landing}: an ingest writes here; stop it, then repair") from None
        yield


def repair(landing: Path, report: Report, now_us: int) -> list[Repaired]:
    """Repair everything in a report; the landing must be `locked` since before its check."""
    if not report.found:
        return []
    mark = RunningMark(landing)
    hour = max(datetime.fromtimestamp(now_us / 1e6, UTC).strftime(HOUR), report.newest_hour, mark.hour)
    mark.enter(hour)
    if mark.interrupted:
        report.highest += 1
        _write(landing / f"hour={hour}/part-{report.highest:08d}.parquet", [SCHEMA.empty_table()], [])
    made = [_made(landing, found, hour, report) for found in report.found]
    known = [number for one in made for number in one.rescued]  # a reading is lost if no file has it, and is named once
    done = []
    for found, one in zip(report.found, made, strict=True):
        repaired = Repaired(found, one.new, without(found.lost, known))
        known += repaired.lost
        _put_aside(landing, repaired)
        done.append(repaired)
    mark.remove()
    return done


def _made(landing: Path, found: Found, hour: str, report: Report) -> _Made:
    """Write the new file for a finding, if it holds what is left of a damaged one.

    A number is only used if there is a file: one without a file is missing.
    """
    old, rescued, tables = landing / found.file, list[Range](), list[pa.Table]()
    if found.kind == "damaged":
        is_own = damaged_ranges(old) is not None
        for group in readable_groups(old):
            if not isinstance(group, DamagedFileError) and (rows := _readings(group, is_own)) is not None:
                tables.append(rows)
        rescued = numbers_in(tables)
    if not rescued and found.kind != "unseen":
        return _Made()
    report.highest += 1
    new = f"hour={hour}/part-{report.highest:08d}.parquet"
    if found.file.startswith("_ahead/"):
        new = f"_ahead/{new}"
    if rescued:
        _write(landing / new, tables, rescued)
    return _Made(new, rescued)


def _put_aside(landing: Path, repaired: Repaired) -> None:
    """Record a repair, and move the file."""
    found, old = repaired.found, landing / repaired.found.file
    record = {"problem": found.problem, "new": repaired.new, "lost": repaired.lost}
    make_folder(record_of(landing, found.file).parent)
    write_durably(record_of(landing, found.file), json.dumps(record).encode())
    if found.kind == "unseen" and repaired.new is not None:
        _move(old, landing / repaired.new)
    elif old.exists():
        _move(old, _free(landing / DAMAGED_DIR / found.file))


def _readings(group: pa.Table, is_own: bool) -> pa.Table | None:
    """A row group with the columns of the landing; None if it lacks some, or if a file of an ingest has others, as after
    damage to a name. Files of other programs may have more.
    """
    names = {*group.schema.names}
    if not {*NEEDED} <= names or (is_own and names - {*SCHEMA.names, NUMBER}):
        return None
    columns = {name: group[name] if name in group.schema.names else pa.nulls(group.num_rows) for name in SCHEMA.names}
    try:
        readings = pa.table(columns).cast(SCHEMA)
    except pa.ArrowException:
        return None
    return None if any(readings[name].null_count for name in IDENTITY) else readings


def _write(path: Path, tables: Sequence[pa.Table], ranges: list[Range]) -> None:
    """Write what was read of a damaged file."""
    metadata = {RANGES_KEY: json.dumps(ranges), CRC_KEY: NO_CRC}
    table = pa.concat_tables(tables).replace_schema_metadata(metadata)
    make_folder(path.parent)
    with appearing(path) as file:
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        seal_footer(file)


def _move(old: Path, new: Path) -> None:
    make_folder(new.parent)
    old.rename(new)
    sync(new.parent)
    sync(old.parent)


def _free(path: Path) -> Path:
    """This path, or one with a number after it that nothing has."""
    tries = (path.with_name(f"{path.name}.{n}") for n in range(1, 1_000_000))
    return path if not path.exists() else next(one for one in tries if not one.exists())
