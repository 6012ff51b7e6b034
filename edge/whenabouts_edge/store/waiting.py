"""The rows of the spool in which readings wait for the clock to be known.

A row is written behind, in the spool's thread, some milliseconds after its reading was kept in memory; it goes in the
transaction that stores the reading as a message. A reading that is stored before its row was written is told to have left,
and gets no row. So each reading is on the disk once, whenever the power goes. A reading that the full spool refused keeps
its row, and comes again with the next agent. Rows know the run of the machine (its boot id) they belong to, and
`clock_known` one moment of UTC that had surely come in the last run that knew any.
"""

import json
import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from whenabouts_edge.clock import UNBOUNDED_US
from whenabouts_edge.readers.host import Kept, Observed
from whenabouts_protocol import Interval

SCHEMA = """
CREATE TABLE IF NOT EXISTS waiting (
    row INTEGER PRIMARY KEY, run TEXT NOT NULL, earliest_us INTEGER NOT NULL, latest_us INTEGER NOT NULL,
    since_us INTEGER, reading TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS clock_known (run TEXT PRIMARY KEY, utc_us INTEGER NOT NULL) WITHOUT ROWID;
"""
_RUN = Path("/proc/sys/kernel/random/boot_id")
log = logging.getLogger("whenabouts.edge")
_FIELDS = ("stream", "key", "kind", "value", "unit", "attrs", "vclock")


def this_run() -> str:
    """The kernel's name of this run of the machine; empty where it has none, and then every start counts as a new run."""
    try:
        return _RUN.read_text().strip()
    except OSError:
        return ""


class WaitingRows:
    """The rows in one open spool; used by its thread, but for `numbered`, which gives places in memory alone."""

    def __init__(self, db: sqlite3.Connection, run: str) -> None:
        self._db, self._run = db, run
        with db:
            db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
        self._next: int = db.execute("SELECT coalesce(max(row), 0) + 1 FROM waiting").fetchone()[0]
        self._written = self._next - 1
        self._gone: set[int] = set()  # left before they were written
        known = db.execute("SELECT utc_us FROM clock_known WHERE run != ?", (run,)).fetchone()
        self._since_us: int | None = known[0] if known else None
        self.leaving: list[int] = []
        self.unreadable = 0

    def numbered(self, observed: Sequence[Observed]) -> None:
        """Give each that has none its row, which `write` writes."""
        for one in observed:
            if one.kept is None:
                one.kept = Kept(self._next, self.leaving)
                self._next += 1

    def write(self, observed: Sequence[Observed]) -> None:
        """Write the rows of these; durable when this returns. Raises sqlite3.OperationalError when the disk is full."""
        rows = []
        for one in observed:
            assert one.kept is not None
            if one.kept.row not in self._gone:
                text = json.dumps({name: getattr(one, name) for name in _FIELDS})
                rows.append((one.kept.row, self._run, *one.window_us, self._since_us, text))
        with self._db:
            self._db.executemany("INSERT OR IGNORE INTO waiting VALUES (?, ?, ?, ?, ?, ?)", rows)
        for one in observed:
            assert one.kept is not None
            self._written = max(self._written, one.kept.row)
            self._gone.discard(one.kept.row)

    def delete_leaving(self) -> None:
        """Part of the transaction that stores their readings."""
        if self.leaving:
            self._db.executemany("DELETE FROM waiting WHERE row = ?", [(row,) for row in self.leaving])

    def left(self) -> None:
        """That transaction is done."""
        self._gone.update(row for row in self.leaving if row > self._written)
        self.leaving.clear()

    def read(self, site: str, gateway: str) -> list[Observed]:
        """Every reading that waits from before, in the order in which they were read."""
        last = dict(self._db.execute("SELECT run, max(latest_us) FROM waiting GROUP BY run"))
        rows = self._db.execute("SELECT row, run, earliest_us, latest_us, since_us, reading FROM waiting ORDER BY row")
        found = []
        for row, run, earliest_us, latest_us, since_us, text in rows:
            same = bool(run) and run == self._run
            kept = Kept(row, self.leaving) if same else Kept(row, self.leaving, last[run], since_us)
            try:
                found.append(_observed(site, gateway, (earliest_us, latest_us), kept, text))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                self.unreadable += 1
                log.error("spool: row %d of the readings that wait for the clock cannot be read (%s)", row, error)
        return found

    def know(self, utc_us: int) -> None:
        """UTC has surely come to this by now. Raises sqlite3.OperationalError when the disk is full."""
        with self._db:
            self._db.execute("DELETE FROM clock_known")
            self._db.execute("INSERT INTO clock_known VALUES (?, ?)", (self._run, utc_us))


def _observed(site: str, gateway: str, window_us: tuple[int, int], kept: Kept, text: str) -> Observed:
    """The reading of a row, with a stamp that says that nothing is known."""
    fields = json.loads(text)
    fields["vclock"] = tuple(fields["vclock"])
    unknown = Interval(window_us[0] - UNBOUNDED_US, window_us[1] + UNBOUNDED_US)
    one = Observed(site, gateway, stamp=unknown, clock_state="unbounded", window_us=window_us, kept=kept, **fields)
    one(0, 0)  # raises unless it makes a reading
    return one
