"""Refused readings, counted by stream, and the rows of the spool that keep the counts until a `gap` reading tells them.

A count is written with every batch that is refused and goes in the transaction that stores its reading, so that the end of
the agent, by order or by a power cut, takes neither. Only a disk that is full itself may have no room for a row; then the
counts are in memory alone.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from whenabouts_edge.readers.pending import PendingReading
from whenabouts_protocol import Reading

SCHEMA = """
CREATE TABLE IF NOT EXISTS gap (
    stream TEXT PRIMARY KEY, count INTEGER NOT NULL, t_min INTEGER NOT NULL, t_max INTEGER NOT NULL,
    clock_state TEXT NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Gap:
    """So many readings of a stream were lost in this interval; `numbered` gives the reading that says so.

    vclock: empty for one that an earlier agent counted, whose clock says nothing in this one's group.
    """

    site: str
    gateway: str
    stream: str
    count: int
    t_min: int
    t_max: int
    clock_state: str
    vclock: tuple[int, ...] = ()

    @classmethod
    def of(cls, one: PendingReading) -> "Gap":
        """The gap that this one reading, which is dated, leaves."""
        assert one.stamp is not None
        return cls(one.site, one.gateway, one.stream, 1, *one.stamp, one.vclock)

    def joined(self, more: "Gap") -> "Gap":
        """Both, as one of the same stream; the clock is that of the later one."""
        return Gap(
            self.site,
            self.gateway,
            self.stream,
            self.count + more.count,
            min(self.t_min, more.t_min),
            max(self.t_max, more.t_max),
            more.clock_state,
            more.vclock,
        )

    def numbered(self, boot: int, seq: int) -> Reading:
        """The reading that tells it."""
        return Reading(
            site=self.site,
            gateway=self.gateway,
            boot=boot,
            seq=seq,
            stream=self.stream,
            kind="gap",
            value=self.count,
            unit="{readings}",
            t_min=self.t_min,
            t_max=self.t_max,
            clock_state=self.clock_state,
            vclock=self.vclock,
        )


class GapRows:
    """The rows in one open spool; used by its thread."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        with db:
            db.executescript(f"BEGIN; {SCHEMA} COMMIT;")

    def write(self, gaps: Iterable[Gap]) -> None:
        """Put these in place of the rows of their streams; durable when this returns.

        Raises:
            sqlite3.OperationalError: the disk is full.
        """
        rows = [(gap.stream, gap.count, gap.t_min, gap.t_max, gap.clock_state) for gap in gaps]
        with self._db:
            self._db.executemany("INSERT OR REPLACE INTO gap VALUES (?, ?, ?, ?, ?)", rows)

    def delete(self, gaps: Iterable[Gap]) -> None:
        """Part of the transaction that stores the readings that tell these."""
        self._db.executemany("DELETE FROM gap WHERE stream = ?", [(gap.stream,) for gap in gaps])

    def read(self, site: str, gateway: str) -> list[Gap]:
        """The gaps that earlier agents counted and did not tell."""
        rows = self._db.execute("SELECT stream, count, t_min, t_max, clock_state FROM gap ORDER BY stream")
        return [Gap(site, gateway, *row) for row in rows]
