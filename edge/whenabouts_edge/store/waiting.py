"""The rows of the spool in which readings wait for the clock to be known.

The spool's thread writes a row some milliseconds after its reading was kept in memory, and deletes it in the transaction
that stores the reading in a message. A reading that is stored before its row was written is reported to `left`, and gets
no row. So each reading is on the disk once, whenever the power goes. The row of a reading that the full spool refused
stays until the reading is counted (`gaps`). Each row names the run of the machine (its boot id) to which it belongs.
`clock_known` holds one moment of UTC that had certainly passed in the last run that knew UTC.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from whenabouts_edge.clock import UNBOUNDED_US
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.store.checksum import checksum
from whenabouts_protocol.group_state import EARLIER, KIND
from whenabouts_protocol.logs import Log

SCHEMA = """
CREATE TABLE IF NOT EXISTS waiting (
    row INTEGER PRIMARY KEY, run TEXT NOT NULL, earliest_us INTEGER NOT NULL, latest_us INTEGER NOT NULL,
    since_us INTEGER, reading TEXT NOT NULL, crc INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS clock_known (run TEXT PRIMARY KEY, utc_us INTEGER NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
"""
_RUN = Path("/proc/sys/kernel/random/boot_id")
log = Log(__name__)
_COLUMNS = "row, run, earliest_us, latest_us, since_us, reading, crc"
_FIELDS = ("stream", "key", "kind", "value", "unit", "attrs", "vclock", "view")


@dataclass(frozen=True, slots=True)
class Kept:
    """The row of a reading that waits for the clock; the commit that stores the reading deletes it.

    For a reading of an earlier run of the machine: last_us, the last moment known of that run, and since_us, a moment of
    UTC that had certainly passed before that run began, if one is known. Both are None for the current run.
    """

    row: int
    last_us: int | None = None
    since_us: int | None = None


def this_run() -> str:
    """The kernel's name of this run of the machine; empty if it has none, and then every start counts as a new run."""
    try:
        return _RUN.read_text().strip()
    except OSError:
        return ""


class WaitingRows:
    """The rows in one open spool; used by its thread, except `numbered`, which assigns rows only in memory."""

    def __init__(self, db: sqlite3.Connection, run: str) -> None:
        self._db, self._run = db, run
        with db:
            db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        db.execute(f"SELECT {_COLUMNS} FROM waiting LIMIT 0")  # an error now, if the table's description is damaged
        self._next: int = db.execute("SELECT coalesce(max(row), 0) + 1 FROM waiting").fetchone()[0]
        self._written = self._next - 1
        self._gone: set[int] = set()  # rows whose readings were stored before they were written
        self._since_us = self._known()
        self.unreadable = 0

    def numbered(self, readings: Sequence[PendingReading]) -> None:
        """Assign a row to each reading that has none; `write` writes it."""
        for one in readings:
            if one.kept is None:
                one.kept = Kept(self._next)
                self._next += 1

    def write(self, readings: Sequence[PendingReading]) -> None:
        """Write the rows of these; durable when this returns. Raises sqlite3.OperationalError when the disk is full."""
        rows = []
        for one in readings:
            if one.kept.row not in self._gone:
                text = json.dumps({name: getattr(one, name) for name in _FIELDS})
                row = one.kept.row, self._run, one.earliest_us, one.latest_us, self._since_us, text
                rows.append((*row, checksum(row)))
        with self._db:
            self._db.executemany("INSERT OR IGNORE INTO waiting VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        for one in readings:
            self._written = max(self._written, one.kept.row)
            self._gone.discard(one.kept.row)

    def delete(self, rows: Sequence[int]) -> None:
        """Delete these rows, in the transaction that stores their readings."""
        if rows:
            self._db.executemany("DELETE FROM waiting WHERE row = ?", [(row,) for row in rows])

    def left(self, rows: Sequence[int]) -> None:
        """Forget these rows: the transaction that deleted them is done."""
        self._gone.update(row for row in rows if row > self._written)

    def read(self, site: str, gateway: str) -> list[PendingReading]:
        """The readings that earlier agents left waiting, in the order in which they were read."""
        rows, last = [], dict[str, int]()
        for *row, crc in self._db.execute(f"SELECT {_COLUMNS} FROM waiting ORDER BY row"):
            number, run, earliest_us, latest_us, since_us, text = row
            same = bool(run) and run == self._run
            try:
                if checksum(tuple(row)) != crc:
                    raise ValueError("its checksum differs")
                one = _read(site, gateway, (earliest_us, latest_us), Kept(number), text)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                self.unreadable += 1
                log.error("spool.bad_row", "a reading that waits for the clock is unreadable", row=number, error=error)
                continue
            last[run] = max(latest_us, last.get(run, latest_us))  # a damaged row must not count: stamps depend on it
            rows.append((one, None if same else run, since_us))
        for one, earlier, since_us in rows:
            if earlier is not None:
                one.kept = Kept(one.kept.row, last[earlier], since_us)
        return [one for one, *_ in rows]

    def know(self, utc_us: int) -> None:
        """Store that UTC has certainly passed this moment. Raises sqlite3.OperationalError when the disk is full."""
        with self._db:
            self._db.execute("DELETE FROM clock_known")
            row = self._run, utc_us
            self._db.execute("INSERT INTO clock_known VALUES (?, ?, ?)", (*row, checksum(row)))

    def _known(self) -> int | None:
        """A moment of UTC that had passed in the last other run that knew UTC."""
        for run, utc_us, crc in self._db.execute(
            "SELECT run, utc_us, crc FROM clock_known WHERE run != ?", (self._run,)
        ):
            if checksum((run, utc_us)) == crc:
                return int(utc_us)
            log.error("spool.bad_row", "the last moment of UTC that was known is unreadable", run=run)
        return None


def _read(site: str, gateway: str, window_us: tuple[int, int], kept: Kept, text: str) -> PendingReading:
    """The reading of a row, with an unbounded stamp. Raises ValueError or a similar error for other text."""
    fields = json.loads(text)
    vclock, view = tuple(fields.pop("vclock")), int(fields.pop("view", 0))
    one = PendingReading(earliest_us=window_us[0], latest_us=window_us[1], **fields)
    one.site, one.gateway, one.vclock, one.view, one.kept = site, gateway, vclock, view, kept
    if one.kind == KIND:
        one.attrs = {**one.attrs, EARLIER: True}
    one.stamp = window_us[0] - UNBOUNDED_US, window_us[1] + UNBOUNDED_US, "unbounded"
    one.check()
    return one
