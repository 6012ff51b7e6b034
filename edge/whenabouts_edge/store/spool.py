"""Readings on disk until the cloud has landed them.

SQLite in WAL mode with synchronous=FULL: a commit is on the disk when it returns. One row is one message: the readings of
one group commit, encoded once and sent again byte for byte as often as needed. Numbers (boot, seq) are given inside the
transaction that stores the readings, so that no number is lost or given twice. The boot counter is committed before it is
used; its low 32 bits are random, so that a gateway whose spool was lost with its disk does not reuse old identities.

At the size limit, or on a full disk, new readings are refused and old ones are never dropped: a numbered reading must be
delivered. The agent counts refused readings and reports them in a `gap` reading as soon as there is room. Those counts,
and readings that wait for the clock, are rows of other tables (`gaps`, `waiting`); the transaction that stores them in a
message deletes the rows. Every row has a checksum (`checksum`): a damaged message is never sent, see `Spool.after`, and a
file with one is put aside at the start.

Cost: a commit of 1 to 50 readings takes one sync of the disk, 4 ms on a virtual disk here, more on an SD card. A start reads
all that waits.
"""

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.store.checksum import checksum
from whenabouts_edge.store.gaps import Gap, GapRows
from whenabouts_edge.store.waiting import WaitingRows, this_run
from whenabouts_protocol.messages.batch import encode_checked

BOOT_RANDOM_BITS = 32
BOOT_COUNT_BITS = 31  # a boot is sent as a signed 64-bit number
APPLICATION_ID = 0x5748454E  # distinguishes a spool from any other SQLite file
SCHEMA_VERSION = 2

_SCHEMA = """
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE message (
    boot INTEGER NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
    readings INTEGER NOT NULL, payload BLOB NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (boot, first_seq)
) WITHOUT ROWID;
"""

_ROW = "boot, first_seq, last_seq, readings, payload, crc"

_SURROUNDINGS = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM,
)  # fmt: skip


class SpoolError(Exception):
    """The spool cannot be used. The text names the file, the fault and the remedy."""


class SpoolFull(SpoolError):
    """The size limit is reached or the disk is full; none of the offered readings is stored."""


@dataclass(frozen=True, slots=True)
class Message:
    """One stored batch, as it is published."""

    boot: int
    first_seq: int
    last_seq: int
    payload: bytes

    @property
    def position(self) -> tuple[int, int]:
        """Its place in the order of publishing."""
        return self.boot, self.first_seq


@dataclass(frozen=True, slots=True)
class SpoolState:
    """Depth of the spool, and the next number of this boot."""

    readings: int
    payload_bytes: int
    boot: int
    next_seq: int


class Spool:
    """The durable queue of one gateway. One process writes it; it holds the file's lock for its lifetime.

    run: name of this run of the machine, see `waiting`.

    Raises:
        SpoolError: the file is another program's, or in use.
    """

    def __init__(self, path: Path, limit_bytes: int, run: str | None = None) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.quarantined: Path | None = None
        try:
            _make_folder(path.parent)
        except OSError as error:
            raise SpoolError(
                f"spool {path}: cannot make its folder ({error}); set state_dir to a folder that this user may write to"
            ) from error
        self._run = this_run() if run is None else run
        self._db, self.waiting, self.gaps, (self._readings, self._payload_bytes), self.boot = self._open_or_quarantine()
        self._next_seq = 0

    def append(self, readings: Sequence[PendingReading], gaps: Sequence[Gap] = ()) -> Message:
        """Number, encode and store these as one message, the gaps first; durable when this returns.

        Raises:
            SpoolFull: no room; no number was used up.
            WireError: together they make more than a message may hold.
            ValueError: a reading that was not checked is invalid.
        """
        first_seq = self._next_seq
        pending: list[Gap | PendingReading] = [*gaps, *readings]
        numbered = [one.numbered(self.boot, first_seq + i) for i, one in enumerate(pending)]
        payload = encode_checked(numbered)
        if self._payload_bytes + len(payload) > self.limit_bytes:
            raise SpoolFull(
                f"spool {self.path}: found {self._payload_bytes} bytes of readings waiting, limit {self.limit_bytes}; "
                "see why the cloud does not acknowledge, or raise [spool] limit_mib"
            )
        last_seq = first_seq + len(numbered) - 1
        waited = [one.kept.row for one in readings if one.kept is not None] + [row for gap in gaps for row in gap.rows]
        try:
            with self._db:
                numbers = self.boot, first_seq, last_seq, len(numbered)
                row = *numbers, payload, checksum(numbers, payload)
                self._db.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?)", row)
                self.waiting.delete(waited)
                self.gaps.delete(gaps)
        except sqlite3.OperationalError as error:
            raise SpoolFull(f"spool {self.path}: cannot write ({error}); free space on its disk") from error
        self.waiting.left(waited)
        self._next_seq = last_seq + 1
        self._readings += len(numbered)
        self._payload_bytes += len(payload)
        return Message(self.boot, first_seq, last_seq, payload)

    def keep_gaps(self, gaps: Sequence[Gap]) -> None:
        """Write the counts of refused readings to disk; durable when this returns.

        Raises:
            sqlite3.OperationalError: the disk is full.
        """
        waited = [row for gap in gaps for row in gap.rows]
        with self._db:
            self.gaps.write(gaps)
            self.waiting.delete(waited)
        self.waiting.left(waited)

    def after(self, position: tuple[int, int] | None, limit: int) -> list[Message]:
        """Up to limit stored messages behind a position, oldest first; from the beginning for None.

        Raises:
            SpoolError: one was damaged since the start.
        """
        boot, first_seq = position or (-1, -1)
        rows = self._db.execute(
            f"SELECT {_ROW} FROM message WHERE (boot, first_seq) > (?, ?) ORDER BY boot, first_seq LIMIT ?",
            (boot, first_seq, limit),
        )
        messages = []
        for boot, first_seq, last_seq, readings, payload, crc in rows:
            if checksum((boot, first_seq, last_seq, readings), payload) != crc:
                raise SpoolError(
                    f"spool {self.path}: message {boot}:{first_seq} is damaged: its checksum differs; the "
                    "next start puts this file aside and begins a new one; replace the card"
                )
            messages.append(Message(boot, first_seq, last_seq, payload))
        return messages

    def landed(self, boot: int, seq: int) -> int:
        """Forget the readings of boot up to seq, which the cloud holds now; returns their count.

        A message that is covered in part stays until all of it is covered.

        Raises:
            SpoolError: the deletion cannot be written; nothing is forgotten.
        """
        covered = "FROM message WHERE boot = ? AND last_seq <= ?"
        readings, payload_bytes = self._db.execute(
            f"SELECT coalesce(sum(readings), 0), coalesce(sum(length(payload)), 0) {covered}", (boot, seq)
        ).fetchone()
        if readings:
            try:
                self._delete(covered, boot, seq)
            except sqlite3.OperationalError as error:
                raise SpoolError(
                    f"spool {self.path}: cannot delete landed readings ({error}); free space on its disk"
                ) from error
            self._readings -= readings
            self._payload_bytes -= payload_bytes
        return int(readings)

    def _delete(self, covered: str, boot: int, seq: int) -> None:
        try:
            with self._db:
                self._db.execute(f"DELETE {covered}", (boot, seq))
        except sqlite3.OperationalError:
            # On a full disk the journal has no room for the deletion either; moving it into the database makes room.
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with self._db:
                self._db.execute(f"DELETE {covered}", (boot, seq))

    def numbers(self) -> dict[int, tuple[int, int]]:
        """First and last number of the stored readings of each boot; also (next, next - 1) for the current boot when it
        gave numbers and all of them have landed.
        """
        rows = self._db.execute("SELECT boot, min(first_seq), max(last_seq) FROM message GROUP BY boot")
        numbers = {boot: (first, last) for boot, first, last in rows}
        if self._next_seq:
            numbers.setdefault(self.boot, (self._next_seq, self._next_seq - 1))
        return numbers

    def last_position(self) -> tuple[int, int] | None:
        """Position of the newest stored message; None when all have landed."""
        row = self._db.execute(
            "SELECT boot, first_seq FROM message ORDER BY boot DESC, first_seq DESC LIMIT 1"
        ).fetchone()
        return tuple(row) if row else None

    @property
    def state(self) -> SpoolState:
        """Depth and numbering, from memory."""
        return SpoolState(self._readings, self._payload_bytes, self.boot, self._next_seq)

    def can_commit(self) -> bool:
        """Return True if a transaction can begin and end; writes nothing, to spare the card."""
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True

    def close(self) -> None:
        """Close the file; every commit is on the disk already."""
        self._db.close()

    def _open_or_quarantine(self) -> "_Opened":
        try:
            try:
                return _open(self.path, self._run)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error, self.path):
                    raise
                self.quarantined = _quarantine(self.path)
                return _open(self.path, self._run)
        except sqlite3.DatabaseError as error:
            if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                advice = "another agent is running with this state_dir; end it or give this one another folder"
            else:
                advice = "see that the folder is writable and that its disk has space"
            raise SpoolError(f"spool {self.path}: cannot open ({error}); {advice}") from error


def _make_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, so that a power cut does not take them away again.

    They are made from the top, each durable before the next. The lowest one that is there is synced, too: an earlier run may
    have been killed, or its sync may have failed, after it had made the folder.
    """
    missing = list(takewhile(lambda one: not one.is_dir(), (folder, *folder.parents)))
    lowest = missing[-1].parent if missing else folder
    for one in (lowest, *reversed(missing)):
        if one != lowest:
            one.mkdir(mode=0o700 if one == folder else 0o777, exist_ok=True)
        with contextlib.suppress(PermissionError):  # a service manager has made it, for this program alone
            descriptor = os.open(one.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


class _Opened(NamedTuple):
    """A checked database, its other rows, its readings and payload bytes, and the number of the boot that begins."""

    db: sqlite3.Connection
    waiting: WaitingRows
    gaps: GapRows
    size: tuple[int, int]
    boot: int


def _open(path: Path, run: str) -> _Opened:
    db = sqlite3.connect(path, timeout=1.0, check_same_thread=False)
    db.text_factory = lambda text: text.decode(errors="replace")  # damaged text differs from its checksum
    try:
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("damaged")
        _check_kind(db, path)
        size = _checked(db)
        return _Opened(db, WaitingRows(db, run), GapRows(db), size, _begin_boot(db))
    except UnicodeDecodeError as error:  # of SQLite's own message, which quotes the damage
        db.close()
        raise sqlite3.DatabaseError("damaged") from error
    except BaseException:
        db.close()
        raise


def _checked(db: sqlite3.Connection) -> tuple[int, int]:
    """Count the readings and the bytes of all messages, none of which is damaged."""
    readings = payload_bytes = 0
    for *numbers, payload, crc in db.execute(f"SELECT {_ROW} FROM message"):
        if checksum(numbers, payload) != crc:
            raise sqlite3.DatabaseError(f"damaged: message {numbers}")
        readings += numbers[3]
        payload_bytes += len(payload)
    return readings, payload_bytes


def _check_kind(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables in an empty database; SpoolError if it is another program's."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    application = db.execute("PRAGMA application_id").fetchone()[0]
    if (version, application) == (SCHEMA_VERSION, APPLICATION_ID):
        return
    if (version, application) != (0, 0) or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise SpoolError(
            f"spool {path}: found a database of another program or version (application {application:#x}, version "
            f"{version}), expected application {APPLICATION_ID:#x}, version {SCHEMA_VERSION}; move it away"
        )
    with db:
        db.executescript(
            f"BEGIN; {_SCHEMA} PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION}; COMMIT;"
        )


def _begin_boot(db: sqlite3.Connection) -> int:
    """The next boot: above those of all messages too, as a damaged counter may be too low, and messages go out in order."""
    with db:
        latest: int = db.execute("SELECT coalesce(max(boot), 0) FROM message").fetchone()[0]
        count = db.execute(
            "INSERT INTO counter VALUES ('boot', ?1 + 1) ON CONFLICT (name) "
            "DO UPDATE SET value = max(value, ?1) + 1 RETURNING value",
            (latest >> BOOT_RANDOM_BITS,),
        ).fetchone()[0]
    if type(count) is not int or not 0 < count < 1 << BOOT_COUNT_BITS:
        raise sqlite3.DatabaseError(f"damaged: boot counter {count!r}")
    return count << BOOT_RANDOM_BITS | secrets.randbits(BOOT_RANDOM_BITS)


def _code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code, None for an error that is not from SQLite."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_damage(error: sqlite3.DatabaseError, path: Path) -> bool:
    """Return True if the fault is in the file's content, not in its surroundings: lock, rights, disk."""
    code = _code(error)
    if code == sqlite3.SQLITE_READONLY:  # a damaged version number in the file's head gives this too
        return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return code not in _SURROUNDINGS


def _quarantine(path: Path) -> Path:
    """Rename a damaged database and its journal, never over an earlier one; returns where it is now."""
    number = 1
    while (renamed := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(renamed)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(renamed.with_name(renamed.name + suffix))
    return renamed
