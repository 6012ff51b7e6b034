"""The landing: Parquet files of readings, each appearing whole and durable or not at all.

    DIR/hour=2026-01-31T17/part-00000042.parquet     by hour of arrival, so that one flush is one file
    DIR/_frontier/part-00000042.json                 how far each gateway's readings are complete
    DIR/_dead/                                       what could not be taken, with its reason (dead.py)
    DIR/_ingest/                                     lock and snapshot of the ledger

A file is written under a hidden name, synced, renamed, and its folder synced. Its metadata says which numbers it holds, so
that after a crash the ledger is rebuilt from a snapshot and the files behind it. Spark and pyarrow pass over names that
begin with "_" or ".".
"""

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.ingest.ledger import Range
from whenabouts_protocol import Reading

SCHEMA = pa.schema(
    [
        ("site", pa.string()),
        ("gateway", pa.string()),
        ("boot", pa.int64()),
        ("seq", pa.int64()),
        ("stream", pa.string()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("unit", pa.string()),
        ("attrs", pa.string()),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
        ("clock_state", pa.string()),
        ("vclock", pa.list_(pa.int64())),
        ("landed_us", pa.int64()),
    ]
)
RANGES_KEY = b"whenabouts.ranges"
FRONTIER_KEPT_US = 86400 * 1_000_000
SNAPSHOT_EVERY = 64  # files: what a restart must read the metadata of


class LandingError(Exception):
    """The landing cannot be used. The text says what was found and what to do."""


class Landing:
    """One folder of readings, written by one bridge at a time.

    Raises:
        LandingError: another bridge writes here, or the folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            for name in ("_frontier", "_ingest"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            self._lock: IO[str] = (folder / "_ingest" / "lock").open("w")
        except OSError as error:
            raise LandingError(
                f"landing {folder}: cannot be made ({error}); name a folder that can be written"
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise LandingError(
                f"landing {folder}: another ingest writes here; stop it or name another folder"
            ) from None
        self._upto = 0
        _sync_folder(folder)
        for leftover in folder.glob("*/.part-*"):
            leftover.unlink()
        snapshot = self._read_snapshot()
        self._next: int = 1 + max([snapshot["upto"], *(n for n, _ in self._files(snapshot["upto"]))])

    def recover(self) -> Iterator[Range]:
        """The numbers that have landed: from the snapshot and the files written after it."""
        snapshot = self._read_snapshot()
        for gateway, boot, first, last in snapshot["ranges"]:
            yield gateway, boot, first, last
        for _, path in self._files(snapshot["upto"]):
            for gateway, boot, first, last in json.loads(pq.read_metadata(path).metadata[RANGES_KEY]):
                yield gateway, boot, first, last

    def write(self, readings: list[Reading], ranges: list[Range], landed_us: int) -> Path:
        """Write readings as one file; durable and visible when this returns, else OSError and nothing is visible."""
        table = to_table(readings, landed_us).replace_schema_metadata({RANGES_KEY: json.dumps(ranges)})
        hour = datetime.fromtimestamp(landed_us / 1e6, UTC).strftime("%Y-%m-%dT%H")
        folder = self.folder / f"hour={hour}"
        if not folder.is_dir():
            folder.mkdir()
            _sync_folder(self.folder)
        path = folder / f"part-{self._next:08d}.parquet"
        temporary = folder / f".{path.name}"
        with open(temporary, "wb") as file:
            pq.write_table(table, file, compression="zstd")
            _sync(file)
        temporary.rename(path)
        _sync_folder(folder)
        self._next += 1
        return path

    def write_frontiers(self, rows: list[dict[str, Any]]) -> None:
        """Say how far gateways are complete; everything that the rows promise must have been written before."""
        folder = self.folder / "_frontier"
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        write_durably(folder / f"part-{rows[0]['landed_us']:017d}.json", text.encode())

    def drop_old_frontiers(self, now_us: int) -> None:
        """Delete frontier files that newer ones have replaced long ago; a job that was away longer reads the newer ones."""
        for path in (self.folder / "_frontier").glob("part-*.json"):
            if int(path.stem.split("-")[1]) < now_us - FRONTIER_KEPT_US:
                path.unlink()

    def snapshot_due(self) -> bool:
        """Whether enough files were written since the last snapshot."""
        written_since = self._next - 1 - self._upto
        return written_since >= SNAPSHOT_EVERY

    def snapshot(self, ranges: Iterable[Range]) -> None:
        """Keep what has landed, so that a restart need not read every file."""
        text = json.dumps({"upto": self._next - 1, "ranges": list(ranges)})
        write_durably(self.folder / "_ingest" / "ledger.json", text.encode())
        self._upto = self._next - 1

    def close(self) -> None:
        """Let another bridge write here."""
        self._lock.close()

    def _read_snapshot(self) -> dict[str, Any]:
        try:
            snapshot: dict[str, Any] = json.loads((self.folder / "_ingest" / "ledger.json").read_bytes())
        except FileNotFoundError:
            snapshot = {"upto": 0, "ranges": []}
        except ValueError as error:
            raise LandingError(
                f"landing {self.folder}: _ingest/ledger.json is damaged ({error}); delete it, and the files are read instead"
            ) from None
        self._upto = int(snapshot["upto"])
        return snapshot

    def _files(self, upto: int) -> Iterator[tuple[int, Path]]:
        """(number, path) of the files behind number upto, newest hours first."""
        for folder in sorted(self.folder.glob("hour=*"), reverse=True):
            numbered = [(int(path.stem.split("-")[1]), path) for path in folder.glob("part-*.parquet")]
            newer = [(number, path) for number, path in numbered if number > upto]
            yield from newer
            if numbered and not newer:
                return


def to_table(readings: list[Reading], landed_us: int) -> pa.Table:
    """The columns of readings as they land; value and attrs as JSON, so that numbers, texts and bools stay what they are."""
    columns = [
        [r.site for r in readings],
        [r.gateway for r in readings],
        [r.boot for r in readings],
        [r.seq for r in readings],
        [r.stream for r in readings],
        [r.kind for r in readings],
        [r.key for r in readings],
        [None if r.value is None else json.dumps(r.value) for r in readings],
        [r.unit for r in readings],
        [json.dumps(r.attrs, sort_keys=True) if r.attrs else None for r in readings],
        [r.t_min for r in readings],
        [r.t_max for r in readings],
        [r.clock_state for r in readings],
        [r.vclock for r in readings],
        [landed_us] * len(readings),
    ]
    return pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def write_durably(path: Path, data: bytes) -> None:
    """A file that appears whole and durable, or not at all."""
    temporary = path.with_name(f".{path.name}")
    with open(temporary, "wb") as file:
        file.write(data)
        _sync(file)
    temporary.rename(path)
    _sync_folder(path.parent)


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
