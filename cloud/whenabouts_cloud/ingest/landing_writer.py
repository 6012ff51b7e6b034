"""Writes the landing: Parquet files of readings, each published whole and durable or not at all.

    DIR/hour=2026-01-31T17/part-00000042.parquet     by hour of arrival, so that one flush is one file
    DIR/_ahead/hour=2026-01-31T17/part-00000043.parquet   side output: readings that begin in the future
    DIR/_frontier/hour=2026-01-31T17/part-00000044.json   how far each gateway's readings are complete
    DIR/_dead/                                       dead letters, with their reasons (dead_letters.py)
    DIR/_ingest/                                     lock, snapshot of the ledger, name of the session at the broker

All these files share one sequence of numbers, and hours never go back: `landing.layout` says what readers make of it.
Files are published as in `durable`. The metadata of a file lists the numbers it holds, so that after a crash the ledger is
rebuilt from a snapshot and the files after it. Spark and pyarrow ignore names that begin with "_" or ".".
"""

import fcntl
import json
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.durable import appearing, make_folder, sync, write_durably
from whenabouts_cloud.ingest.ledger import Ledger
from whenabouts_cloud.landing.files import RANGES_KEY
from whenabouts_cloud.landing.layout import AHEAD, DATA, FRONTIER, HOUR, SUFFIX, Numbers, numbers_of, path_of
from whenabouts_cloud.landing.ranges import Range, range_of
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_protocol import Reading

FRONTIER_KEPT_US = 86400 * 1_000_000
SNAPSHOT_EVERY = 64  # files whose metadata a restart must read, at most


class LandingError(Exception):
    """The landing cannot be used. The text names the cause and what to do."""


class Landing:
    """One folder of readings, written by one bridge at a time.

    Raises:
        LandingError: another bridge writes here, or the folder cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            for name in (FRONTIER, "_ingest", "_dead"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            self._lock: IO[str] = (folder / "_ingest" / "lock").open("w")
        except OSError as error:
            raise LandingError(f"landing {folder}: cannot be written ({error}); name a folder that can") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._open()
        except BlockingIOError:
            self._lock.close()
            raise LandingError(
                f"landing {folder}: another ingest writes here; stop it or name another folder"
            ) from None
        except OSError as error:
            self._lock.close()
            raise LandingError(f"landing {folder}: cannot be used ({error}); name another folder") from None
        except LandingError:
            self._lock.close()
            raise

    def _open(self) -> None:
        sync(self.folder)
        for pattern in ("*/.part-*", *(f"{kind}/*/.part-*" for kind in (AHEAD, FRONTIER))):
            for leftover in self.folder.glob(pattern):
                leftover.unlink()
        snapshot = self._read_snapshot()
        self._upto, self._since = snapshot["upto"], snapshot["since"]
        files = list(self._files())
        self._hour: str = max([self._since, *(path.parent.name.removeprefix(HOUR) for _, path in files)])
        self._next: int = 1 + max([self._upto, *(number for number, _ in files)])
        session = self.folder / "_ingest" / "session"
        if not session.exists():
            write_durably(session, uuid.uuid4().hex[:12].encode())
        self.session = session.read_text()

    def recover_into(self, ledger: Ledger) -> None:
        """Make a ledger know what has landed.

        Raises:
            LandingError: a file is damaged.
        """
        for gateway, boots in self._read_snapshot().get("closed", {}).items():
            ledger.close_boots(gateway, boots)
        ledger.land(self.recover())
        ledger.trim()

    def recover(self) -> Iterator[Range]:
        """Yield the numbers that have landed, from the snapshot and the files written after it.

        Raises:
            LandingError: a file is damaged.
        """
        yield from map(range_of, self._read_snapshot()["ranges"])
        for number, path in self._files():
            if number <= self._upto or path.suffix != ".parquet":
                continue
            try:
                yield from map(range_of, json.loads(pq.read_metadata(path).metadata[RANGES_KEY]))
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise LandingError(
                    f"landing {self.folder}: {path.relative_to(self.folder)} is damaged ({error}), expected a file of "
                    f"this ingest; run: whenabouts-cloud landing check --landing {self.folder} --repair"
                ) from None

    def write(self, readings: list[Reading], ranges: list[Range], landed_us: int, output: str = "") -> Path:
        """Write readings as one file; durable and visible when this returns, else OSError and nothing is visible.

        output: name of the side output, "" for the landing itself.
        """
        table = to_table(readings, landed_us).replace_schema_metadata({RANGES_KEY: json.dumps(ranges)})
        path = self._place(output, landed_us)
        with appearing(path) as file:
            pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        self._next += 1
        return path

    def _place(self, kind: str, now_us: int) -> Path:
        """The path of the next file; its folder exists, durably. After the clock was set back the hour stays."""
        self._hour = max(self._hour, datetime.fromtimestamp(now_us / 1e6, UTC).strftime("%Y-%m-%dT%H"))
        path = self.folder / path_of(kind, self._hour, Numbers(self._next, self._next))
        make_folder(path.parent)
        return path

    def write_frontiers(self, rows: list[dict[str, Any]]) -> None:
        """Write the gateways' frontiers; all readings below them must have been written before."""
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        write_durably(self._place(FRONTIER, rows[0]["landed_us"]), text.encode())
        self._next += 1

    def drop_old_frontiers(self, now_us: int) -> None:
        """Delete frontier files of older versions, which are in no hour, after FRONTIER_KEPT_US."""
        for path in (self.folder / FRONTIER).glob("part-*.json"):
            number = path.stem.removeprefix("part-")
            if number.isdecimal() and int(number) < now_us - FRONTIER_KEPT_US:
                path.unlink(missing_ok=True)

    def snapshot_due(self) -> bool:
        """True if SNAPSHOT_EVERY files were written since the last snapshot."""
        written_since: int = self._next - 1 - self._upto
        return written_since >= SNAPSHOT_EVERY

    def snapshot(self, ranges: Iterable[Range], closed: dict[str, list[int]] | None = None) -> None:
        """Store the numbers that have landed, so that a restart need not read every file. closed: boots by gateway."""
        self._write_snapshot({"upto": self._next - 1, "since": self._hour, "ranges": ranges, "closed": closed or {}})

    def write_sent_rules(self, sent: dict[str, list[str]]) -> None:
        """Store the derived streams of the rules that each gateway was sent."""
        write_durably(self.folder / "_ingest" / "rules.json", json.dumps(sent).encode())

    def read_sent_rules(self) -> dict[str, list[str]]:
        """What `write_sent_rules` stored; empty if it is absent or damaged, as the broker sends the rules again."""
        try:
            sent = json.loads((self.folder / "_ingest" / "rules.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return sent if isinstance(sent, dict) and all(isinstance(names, list) for names in sent.values()) else {}

    def close(self) -> None:
        """Release the landing for another bridge."""
        self._lock.close()

    def _write_snapshot(self, snapshot: dict[str, Any]) -> None:
        """Write it range by range: as one text it would take several times the memory of the ledger."""
        rest = json.dumps({name: value for name, value in snapshot.items() if name != "ranges"})
        with appearing(self.folder / "_ingest" / "ledger.json") as file:
            file.write(rest[:-1].encode() + b', "ranges": [')
            for number, one in enumerate(snapshot["ranges"]):
                file.write((b",\n" if number else b"\n") + json.dumps(one).encode())
            file.write(b"]}")
        self._upto, self._since = snapshot["upto"], snapshot["since"]

    def _read_snapshot(self) -> dict[str, Any]:
        """upto: highest number of a file it covers; since: no later file is in an earlier hour; ranges."""
        path = self.folder / "_ingest" / "ledger.json"
        try:
            snapshot: dict[str, Any] = json.loads(path.read_bytes())
            for field, kind in (("upto", int), ("since", str), ("ranges", list)):
                if type(snapshot[field]) is not kind:
                    raise ValueError(f"found {snapshot[field]!r} for {field}")
        except FileNotFoundError:
            return {"upto": 0, "since": "", "ranges": []}
        except (ValueError, TypeError, KeyError) as error:
            raise LandingError(
                f"landing {self.folder}: _ingest/ledger.json is damaged ({error}); delete it, and the files are read instead"
            ) from None
        return snapshot

    def _files(self) -> Iterator[tuple[int, Path]]:
        """Yield (number, path) of numbered files in the hours since the snapshot; includes all that it does not cover."""
        for kind in (DATA, AHEAD, FRONTIER):
            for folder in (self.folder / kind).glob(f"{HOUR}*"):
                if folder.name.removeprefix(HOUR) < self._since:
                    continue
                for path in folder.glob(f"part-*{SUFFIX[kind]}"):
                    numbers = numbers_of(path.name)
                    if numbers is not None:
                        yield numbers.last, path


def to_table(readings: list[Reading], landed_us: int) -> pa.Table:
    """Table of readings in the landing's schema; value and attrs are JSON, which keeps numbers, texts and bools distinct."""
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
