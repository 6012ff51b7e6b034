"""Writes the landing: Parquet files of readings, each published whole and durable or not at all.

    DIR/hour=2026-01-31T17/part-00000042.parquet     by hour of arrival, so that one flush is one file
    DIR/_ahead/hour=2026-01-31T17/part-00000043.parquet   side output: readings that begin in the future
    DIR/_frontier/hour=2026-01-31T17/part-00000044.json   how far each gateway's readings are complete
    DIR/_health/                                     what gateways report about themselves (`health`)
    DIR/_dead/                                       dead letters, with their reasons (dead_letters.py)
    DIR/_ingest/                                     lock or lease, mark of a run, ledger, session at the broker

All these files share one sequence of numbers, and hours never go back: `landing.layout` says what readers make of it. DIR is
a folder or a place in an object store (`holding`). The metadata of a file lists the numbers it holds, so that after a crash
the ledger is rebuilt from a snapshot and the files after it. Spark and pyarrow ignore names that begin with "_" or ".".
"""

import io
import json
import uuid
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.ingest.dead_letter_files import DEAD, LetterFiles, LettersInFolder, LettersInStore
from whenabouts_cloud.ingest.holding import LandingError, hold
from whenabouts_cloud.ingest.lease import LEASE_S
from whenabouts_cloud.ingest.ledger import Ledger
from whenabouts_cloud.landing.damage import numbers_gone
from whenabouts_cloud.landing.files import FILE_KEY, RANGES_KEY
from whenabouts_cloud.landing.layout import AHEAD, DATA, FRONTIER, HOUR, SNAPSHOT, SUFFIX, Numbers, numbers_of, path_of
from whenabouts_cloud.landing.ranges import Range, range_of
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_cloud.landing.sealing import CRC_KEY, NO_CRC, check_footer, seal, seal_footer, sealed, unsealed
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol import Reading

FRONTIER_KEPT_US = 86400 * 1_000_000
SNAPSHOT_EVERY = 64  # files whose metadata a restart must read, at most
SESSION, SENT_RULES = "_ingest/session", "_ingest/rules.json"


class Landing:
    """One part of a landing, written by one bridge at a time. place: a folder or URI; lease_s: duration of its lease.

    Raises:
        LandingError: another bridge writes here, or the place cannot be used.
    """

    def __init__(self, place: Path | Store, lease_s: float = LEASE_S) -> None:
        self.store = place if isinstance(place, Store) else Store.at(place)
        self._holding = hold(self.store, lease_s)
        try:
            self._open()
        except OSError as error:
            self._holding.close()
            raise LandingError(f"landing {self.store.uri}: cannot be used ({error})") from None
        except LandingError:
            self._holding.close()
            raise

    @property
    def folder(self) -> Path:
        """The folder of a landing on this machine."""
        assert self.store.local is not None
        return self.store.local

    def _open(self) -> None:
        snapshot = self._read_snapshot()
        self._upto, self._since = snapshot["upto"], snapshot["since"]
        files = list(self._files())
        # A job that has read, or left out, a file which a repair then moved away would never read another one of its number,
        # or one in an earlier hour.
        gone = numbers_gone(self.store.local) if self.store.local is not None else {}
        self._hour: str = max([self._since, self._holding.hour, *gone.values(), *(hour for _, hour, _ in files)])
        self._next: int = 1 + max([self._upto, *gone, *(number for number, _, _ in files)])
        if self._holding.taken_over:
            self._fence()
        try:
            self.session = self.store.read(SESSION).decode()
        except FileNotFoundError:
            self.session = uuid.uuid4().hex[:12]
            self.store.write(SESSION, self.session.encode())

    def _fence(self) -> None:
        """Occupy all names that the next file of the holder before can get (`holding`), with files that say nothing."""
        nothing = _nothing({b"whenabouts.holder": self._holding.holder})
        hour = self._holding.hour
        files = ((DATA, nothing), (AHEAD, nothing), (FRONTIER, b""))
        while hour and not all(
            self._holding.occupy(path_of(kind, hour, Numbers(self._next, self._next)), data) for kind, data in files
        ):
            self._next += 1
        self._next += bool(hour)
        self._holding.taken_over = False

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
        """Yield the numbers that have landed, some of them twice, from the snapshot and the files written after it.

        Raises:
            LandingError: a file is damaged.
        """
        yield from map(range_of, self._read_snapshot()["ranges"])
        yield from self._in_files(frozenset())

    def _in_files(self, gone: frozenset[str]) -> Iterator[Range]:
        """The numbers in the files after the snapshot. gone: what was listed before and was not there any more."""
        for number, _, path in self._files():
            if number <= self._upto or not path.endswith(SUFFIX[DATA]):
                continue
            try:
                with self.store.open(path) as file:
                    if self.store.local is not None:
                        check_footer(file)
                    yield from map(range_of, json.loads(pq.read_metadata(file).metadata[RANGES_KEY]))
            except (OSError, ValueError, KeyError, TypeError) as error:
                if isinstance(error, FileNotFoundError) and path not in gone:
                    # It was merged and deleted: the merged file has its numbers.
                    yield from self._in_files(gone | {path})
                    return
                raise LandingError(
                    f"landing {self.store.uri}: {path} is damaged ({error}), expected a file of this ingest; run: "
                    f"whenabouts-cloud landing check --landing {self.store.uri} --repair"
                ) from None

    def write(self, readings: list[Reading], ranges: list[Range], landed_us: int, output: str = "") -> str:
        """Write readings as one file; durable and visible when this returns. Returns its path below the part.

        output: name of the side output, "" for the landing itself.

        Raises:
            OSError: it is not durable. In a folder that could not be synced, and in an object store, the file may be visible
                even so: its number is not used again, and if these readings are written again, the later ones are
                repeats, which readers drop.
            LandingLost: another ingest holds the landing.
        """
        self._begin(landed_us)
        metadata = {RANGES_KEY: json.dumps(ranges), FILE_KEY: str(self._next)}
        table = to_table(readings, landed_us).replace_schema_metadata(metadata)
        return self._publish(output, _parquet(table))

    def write_frontiers(self, rows: list[dict[str, Any]]) -> None:
        """Write the gateways' frontiers; all readings below them must have been written before. Errors as for `write`."""
        self._begin(rows[0]["landed_us"])
        self._publish(FRONTIER, b"".join(sealed(row) + b"\n" for row in rows))

    def _begin(self, now_us: int) -> None:
        """Settle the number and the hour of the next file. After the clock was set back the hour stays. After an ingest that
        was killed the next number is used for an empty file (`running_mark`).
        """
        self._next += self._holding.settle()
        hour = max(self._hour, datetime.fromtimestamp(now_us / 1e6, UTC).strftime("%Y-%m-%dT%H"))
        self._holding.enter(hour)
        self._hour = hour
        if self._holding.interrupted:
            self._publish(DATA, _nothing({FILE_KEY: str(self._next)}))
            self._holding.interrupted = False

    def _publish(self, kind: str, data: bytes) -> str:
        """Write the next file."""
        path = path_of(kind, self._hour, Numbers(self._next, self._next))
        self._holding.create(path, data)
        self._next += 1
        return path

    def letters(self) -> LetterFiles:
        """The files of its dead letters."""
        local = self.store.local
        return LettersInStore(self.store, self._holding) if local is None else LettersInFolder(local / DEAD)

    def keep(self) -> None:
        """Keep the landing; to be called at least once a second.

        Raises:
            LandingLost: another ingest holds it.
            OSError: the store cannot be reached.
        """
        self._holding.keep()

    def drop_old_frontiers(self, now_us: int) -> None:
        """Delete frontier files of older versions, which are in no hour, after FRONTIER_KEPT_US."""
        if self.store.local is None:  # they wrote to folders only
            return
        for path in (self.store.local / FRONTIER).glob("part-*.json"):
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
        self._holding.confirm()
        self.store.write(SENT_RULES, json.dumps(sent).encode())

    def read_sent_rules(self) -> dict[str, list[str]]:
        """What `write_sent_rules` stored; empty if it is absent or damaged, as the broker sends the rules again."""
        try:
            sent = json.loads(self.store.read(SENT_RULES))
        except (OSError, ValueError):
            return {}
        return sent if isinstance(sent, dict) and all(isinstance(names, list) for names in sent.values()) else {}

    def close(self) -> None:
        """Release the landing for another bridge."""
        self._holding.close()

    def _write_snapshot(self, snapshot: dict[str, Any]) -> None:
        """Write it range by range: as one text it would take several times the memory of the ledger."""
        rest = json.dumps({name: value for name, value in snapshot.items() if name != "ranges"})
        self._holding.confirm()
        with self.store.writing(SNAPSHOT) as file:
            crc = 0
            for text in self._snapshot_texts(rest[:-1], snapshot["ranges"]):
                crc = zlib.crc32(text, crc)
                file.write(text)
            file.write(seal(crc))
        self._upto, self._since = snapshot["upto"], snapshot["since"]

    @staticmethod
    def _snapshot_texts(rest: str, ranges: Iterable[Range]) -> Iterator[bytes]:
        yield rest.encode() + b', "ranges": ['
        for number, one in enumerate(ranges):
            yield (b",\n" if number else b"\n") + json.dumps(one).encode()
        yield b"]"

    def _read_snapshot(self) -> dict[str, Any]:
        """upto: highest number of a file it covers; since: no later file is in an earlier hour; ranges."""
        try:
            snapshot = unsealed(self.store.read(SNAPSHOT))
            for field, kind in (("upto", int), ("since", str), ("ranges", list)):
                if type(snapshot[field]) is not kind:
                    raise ValueError(f"found {snapshot[field]!r} for {field}")
        except FileNotFoundError:
            return {"upto": 0, "since": "", "ranges": []}
        except (ValueError, TypeError, KeyError) as error:
            raise LandingError(
                f"landing {self.store.uri}: {SNAPSHOT} is damaged ({error}); delete it, and the files are read instead"
            ) from None
        return snapshot

    def _files(self) -> Iterator[tuple[int, str, str]]:
        """Yield (number, hour, path) of numbered files in the hours since the snapshot, all that it does not cover."""
        for kind in (DATA, AHEAD, FRONTIER):
            for folder in (one.name for one in self.store.entries(kind)):
                hour = folder.removeprefix(HOUR)
                if not folder.startswith(HOUR) or hour < self._since:
                    continue
                inner = f"{kind}/{folder}" if kind else folder
                for name in (one.name for one in self.store.entries(inner)):
                    numbers = numbers_of(name)
                    if numbers is not None and name.endswith(SUFFIX[kind]):
                        yield numbers.last, hour, f"{inner}/{name}"


def _nothing(metadata: dict[bytes, str]) -> bytes:
    """A file without readings."""
    return _parquet(to_table([], 0).replace_schema_metadata({RANGES_KEY: "[]", **metadata}))


def _parquet(table: pa.Table) -> bytes:
    """A table as a file, with checksums of pages and footer."""
    file = io.BytesIO()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), CRC_KEY: NO_CRC})
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    seal_footer(file)
    return file.getvalue()


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
