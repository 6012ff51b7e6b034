"""Merges the small files of closed hours into few large ones, sorted by stream and time. Readers see the same readings.

An hour of a part is closed when its ingest has begun a later one. Files with consecutive numbers become one file, which
hides them from readers from the moment it appears (`layout`); they are deleted by a later run, after a grace in which
readers that have listed them can finish. A kill at any point leaves the originals, or a merged file that hides them, or
both: the next run goes on. Of two runs at a time one leaves out the parts that the other holds: in a local folder both would
write a merged file under the same hidden name. In an object store, where files appear whole, they do the same work twice.
A file that cannot be read stays as it is, and one that could not be read once: jobs do not read its name again, so its
readings must not disappear in another file before a repair has given it a new name.

A run notes the hour before which nothing is left to do, in `_compacted` of each part, so that the next run does not list
the hours of years. Without this note it lists them all.

Cost: reads and writes each reading once; a merged file is sorted in memory, at some 150 bytes a reading.
"""

import contextlib
import fcntl
import functools
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.files import (
    DAMAGED_DIR,
    LEFT_OUT_DIR,
    RANGES_KEY,
    DamagedFileError,
    check_file,
    numbers_in,
    read_footer,
)
from whenabouts_cloud.landing.history import Piece
from whenabouts_cloud.landing.layout import (
    FRONTIER,
    HOUR,
    KINDS,
    NUMBER,
    SUFFIX,
    Numbers,
    numbers_of,
    parts_of,
    path_of,
)
from whenabouts_cloud.landing.scan import encoded, frontiers_in, read_piece
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_cloud.landing.sealing import CRC_KEY, NO_CRC, seal_footer, sealed
from whenabouts_cloud.landing.store import Store

MOST_ROWS = 2_000_000  # of a merged file
ROW_GROUP = 1 << 17
TOGETHER = 128  # files joined at once: many small tables take several times the memory of one
_NUMBER = pa.field(NUMBER, pa.int64())
MARK = "_compacted"  # object of a part: the hour before which nothing is left to do
LOCK = "_compacting"  # file of a part in a local folder, under a lock while a run works there


class Merge(NamedTuple):
    """Files of one folder that become one; `into` is their path."""

    kind: str
    hour: str
    files: tuple[Numbers, ...]

    @property
    def into(self) -> str:
        """The path of the merged file in its part."""
        return path_of(self.kind, self.hour, Numbers(self.files[0].first, self.files[-1].last))


class Done(NamedTuple):
    """What a run has done: files merged, into how many, readings in them, originals deleted, files that stay as they are
    and why, and parts, "" for the landing itself, in which another run is at work.
    """

    merged: int = 0
    into: int = 0
    readings: int = 0
    deleted: int = 0
    unreadable: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()


def compact(landing: Store, now_ns: int, grace_ns: int, advance: Callable[[int], None] = lambda _: None) -> Done:
    """Merge what closed hours hold, and delete originals that were merged longer ago than the grace.

    now_ns: the present, in ns since 1970, as the store dates files. `advance` is told of each file that was dealt with.
    """
    done = Done()
    for part in parts_of(landing):
        store = landing.at_folder(part)
        with held(store) as is_held:
            if is_held:
                done = _compact_part(store, done, now_ns, grace_ns, advance)
            else:
                done = done._replace(busy=(*done.busy, part))
    return done


@contextlib.contextmanager
def held(part: Store) -> Iterator[bool]:
    """Keep other runs out of a part; False if one is at work there."""
    if part.local is None:
        yield True
        return
    with (part.local / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _compact_part(store: Store, done: Done, now_ns: int, grace_ns: int, advance: Callable[[int], None]) -> Done:
    """Do the work of a run in one part."""
    since = _mark(store)
    hours, last = closed_hours(store, since)
    unfinished = last
    has_noted = bool(store.entries(DAMAGED_DIR))
    for kind, hour, files in hours:
        noted = _noted(store, kind, hour) if has_noted else set[Numbers]()
        covered = hidden(files)
        gone = {one: into for one, into in covered.items() if one not in noted}
        old = {
            into
            for into in set(gone.values())
            if now_ns - _written_ns(store, kind, hour, into) > grace_ns and _is_whole(store, kind, hour, into)
        }
        for original in (one for one, into in gone.items() if into in old):
            store.remove(path_of(kind, hour, original))
            done = done._replace(deleted=done.deleted + 1)
        waiting = old != set(gone.values())
        visible = [one for one in files if one not in covered]
        unreadable = list[str]()
        for merge in merges(kind, hour, visible, functools.partial(_rows, store, kind, hour, noted, unreadable)):
            done = _merged(store, merge, done)
            waiting = True
            advance(len(merge.files))
        done = done._replace(unreadable=(*done.unreadable, *unreadable))
        if waiting:
            unfinished = min(unfinished, hour)
    if unfinished > since:
        store.write(MARK, unfinished.encode())
    return done


def closed_hours(part: Store, since: str) -> tuple[Iterator[tuple[str, str, list[Numbers]]], str]:
    """(kind, hour, its numbered files, sorted) of every folder from an hour on but those of the last hour; the last hour.

    To be called while the part is `held`.
    """
    hours = {
        kind: sorted(one.name.removeprefix(HOUR) for one in part.entries(kind) if one.name.startswith(HOUR))
        for kind in KINDS
    }
    last = max((some[-1] for some in hours.values() if some), default="")
    closed = ((kind, hour) for kind, some in hours.items() for hour in some if since <= hour < last)
    return ((kind, hour, _files_of(part, kind, hour)) for kind, hour in closed), last


def _files_of(part: Store, kind: str, hour: str) -> list[Numbers]:
    """The numbered files of an hour, sorted. What a killed run has left of a merged file is removed."""
    folder = _folder(kind, hour)
    files = list[Numbers]()
    for name in (one.name for one in part.entries(folder) if one.name.endswith(SUFFIX[kind])):
        if (one := numbers_of(name)) is not None:
            files.append(one)
        elif (half := numbers_of(name.removeprefix("."))) is not None and half.first < half.last:
            part.remove(f"{folder}/{name}")
    return sorted(files)


def _noted(part: Store, kind: str, hour: str) -> set[Numbers]:
    """The files of an hour that a job has left out or a repair has recorded."""
    folders = (f"{place}/{_folder(kind, hour)}" for place in (LEFT_OUT_DIR, DAMAGED_DIR))
    names = [one.name for folder in folders for one in part.entries(folder)]
    found = (numbers_of(name.removesuffix(".json")) or numbers_of(name) for name in names)
    return {one for one in found if one is not None}


def _folder(kind: str, hour: str) -> str:
    return f"{kind}/{HOUR}{hour}" if kind else f"{HOUR}{hour}"


def _mark(part: Store) -> str:
    """The hour in the note, "" without one or if it has been damaged."""
    try:
        note = part.read(MARK).decode(errors="replace")
    except FileNotFoundError:
        return ""
    return note if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d", note) else ""


def hidden(files: Sequence[Numbers]) -> dict[Numbers, Numbers]:
    """Files that a merged one hides, each with that file.

    >>> hidden([Numbers(1, 1), Numbers(1, 3), Numbers(3, 3), Numbers(4, 4)])
    {Numbers(first=1, last=1): Numbers(first=1, last=3), Numbers(first=3, last=3): Numbers(first=1, last=3)}
    """
    wide = [one for one in files if one.first < one.last]
    found = ((one, by) for one in files for by in wide if by != one and by.first <= one.first and one.last <= by.last)
    return dict(found)


def merges(kind: str, hour: str, files: Sequence[Numbers], rows: Callable[[Numbers], int | None]) -> Iterator[Merge]:
    """Divide visible files into merges of at most MOST_ROWS readings; files of unknown size, None, stay apart.

    Merged files are not merged again, so that an hour which is done is not opened at each run.
    """
    if all(one.first < one.last for one in files):
        return

    def group() -> Iterator[tuple[int, Numbers]]:
        number, count = 0, 0
        for one in files:
            size = rows(one)
            if size is None or (count and count + size > MOST_ROWS):
                number, count = number + 1, 0
            if size is not None:
                yield number, one
                count += size

    for _, some in groupby(group(), key=lambda pair: pair[0]):
        chosen = tuple(one for _, one in some)
        if len(chosen) > 1:
            yield Merge(kind, hour, chosen)


def _merged(store: Store, merge: Merge, done: Done) -> Done:
    """Write a merged file; if one of the files cannot be read, nothing but a note of it."""
    pieces = [_piece(merge.kind, merge.hour, one) for one in merge.files]
    try:
        count = (
            _write_frontiers(store, pieces, merge) if merge.kind == FRONTIER else _write_readings(store, pieces, merge)
        )
    except DamagedFileError as error:
        return done._replace(unreadable=(*done.unreadable, str(error)))
    return done._replace(merged=done.merged + len(pieces), into=done.into + 1, readings=done.readings + count)


def _write_readings(store: Store, pieces: Sequence[Piece], merge: Merge) -> int:
    rows = _joined(_joined(_numbered(store, one) for one in some) for some in _divided(pieces, TOGETHER))
    rows = rows.take(_by_stream_and_time(rows))
    schema = pa.schema([*SCHEMA, _NUMBER])
    with store.writing(merge.into) as file:
        with pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer:
            writer.add_key_value_metadata({RANGES_KEY: json.dumps(numbers_in([rows])), CRC_KEY: NO_CRC})
            for begin in range(0, rows.num_rows, ROW_GROUP):
                writer.write_table(rows.slice(begin, ROW_GROUP).cast(schema))
        seal_footer(file)
    return int(rows.num_rows)


def _numbered(store: Store, piece: Piece) -> pa.Table:
    """The readings of a file with their numbers, texts encoded: a fifth of the memory."""
    plain = encoded(SCHEMA.names)
    if piece.merged:
        return read_piece(store, piece, plain.append(_NUMBER))
    table = read_piece(store, piece, plain)
    return table.append_column(_NUMBER, pa.repeat(pa.scalar(piece.upto, pa.int64()), table.num_rows))


def _divided(pieces: Sequence[Piece], size: int) -> Iterator[Sequence[Piece]]:
    return (pieces[n : n + size] for n in range(0, len(pieces), size))


def _joined(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _by_stream_and_time(rows: pa.Table) -> pa.Array:
    """The order of rows by stream, then by t_min."""
    stream = rows["stream"].combine_chunks()
    rank = np.argsort(np.argsort(np.array(stream.dictionary.to_pylist(), object)))
    return pa.array(np.lexsort([rows["t_min"].to_numpy(), rank[stream.indices.to_numpy()]]))


def _write_frontiers(store: Store, pieces: Iterable[Piece], merge: Merge) -> int:
    """Of each gateway and file only what says more than the files before; a reader may have read any of them."""
    lines, known = list[bytes](), dict[tuple[str, str], tuple[object, ...]]()
    for piece in pieces:
        for row in frontiers_in(store, [piece]):
            said = row["frontier_us"], row["boot"], tuple(row["streams"])
            if known.get((row["site"], row["gateway"])) != said:
                known[row["site"], row["gateway"]] = said
                lines.append(sealed({NUMBER: piece.upto if not piece.merged else row[NUMBER], **row}))
    store.write(merge.into, b"".join(line + b"\n" for line in lines))
    return 0


def _piece(kind: str, hour: str, one: Numbers) -> Piece:
    return Piece(path_of(kind, hour, one), kind, hour, one.first - 1, one.last, one.first < one.last)


def _rows(
    store: Store, kind: str, hour: str, noted: Collection[Numbers], unreadable: list[str], one: Numbers
) -> int | None:
    """Readings in a file, 1 for frontiers; None, and why, if it cannot be read, differs from its checksum, or is noted."""
    if kind == FRONTIER:
        return None if one in noted else 1
    path = path_of(kind, hour, one)
    try:
        rows = read_footer(store, path).rows
    except DamagedFileError as error:
        unreadable.append(f"{path}: {error}")
        return None
    if rows and one in noted:
        unreadable.append(f"{path}: it was left out or moved while it was damaged, and jobs do not read a name twice")
        return None
    return rows


def _written_ns(store: Store, kind: str, hour: str, one: Numbers) -> int:
    path = path_of(kind, hour, one)
    changed_ns = store.changed_ns(path)
    if changed_ns is None:
        folder, _, name = path.rpartition("/")
        changed_ns = next((entry.mtime_ns for entry in store.entries(folder) if entry.name == name), 0)
    return changed_ns


def _is_whole(store: Store, kind: str, hour: str, one: Numbers) -> bool:
    """True if all of a merged file can be read, with the checksums of its pages and its footer."""
    piece = _piece(kind, hour, one)
    try:
        if kind == FRONTIER:
            list(frontiers_in(store, [piece]))
        else:
            check_file(store, piece.path)
    except DamagedFileError:
        return False
    return True
