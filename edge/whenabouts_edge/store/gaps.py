"""Refused readings, counted by stream, and the rows of the spool that keep the counts until a `gap` reading reports them.

A count is written with every batch that is refused, and deleted in the transaction that stores its gap reading. So
neither an orderly end nor a power cut loses a count. Only a full disk may have no room for a row; the counts are then
kept only in memory. A reading is counted or comes again, never both: the transaction that counts it deletes the row in
which it waited for the clock.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.store.checksum import checksum
from whenabouts_protocol import Reading
from whenabouts_protocol.logs import Log

log = Log(__name__)

_COLUMNS = "stream, count, t_min, t_max, clock_state, crc"

SCHEMA = """
CREATE TABLE IF NOT EXISTS gap (
    stream TEXT PRIMARY KEY, count INTEGER NOT NULL, t_min INTEGER NOT NULL, t_max INTEGER NOT NULL,
    clock_state TEXT NOT NULL, crc INTEGER NOT NULL
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Gap:
    """A number of readings of one stream that were lost in this interval; `numbered` makes the gap reading.

    vclock: empty for a gap that an earlier agent counted, as that agent's clock means nothing in this one's group. rows: in
    which some of them waited for the clock (`waiting`).
    """

    site: str
    gateway: str
    stream: str
    count: int
    t_min: int
    t_max: int
    clock_state: str
    vclock: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()

    @classmethod
    def of(cls, one: PendingReading) -> "Gap":
        """The gap that one refused reading leaves. The reading must be dated."""
        assert one.stamp is not None
        rows = () if one.kept is None else (one.kept.row,)
        count: int = one.value if one.kind == "gap" else 1
        return cls(one.site, one.gateway, one.stream, count, *one.stamp, one.vclock, rows)

    def joined(self, more: "Gap") -> "Gap":
        """Union of two gaps of one stream; the clock is that of the later one."""
        return Gap(
            self.site,
            self.gateway,
            self.stream,
            self.count + more.count,
            min(self.t_min, more.t_min),
            max(self.t_max, more.t_max),
            more.clock_state,
            more.vclock,
            self.rows + more.rows,
        )

    def numbered(self, boot: int, seq: int) -> Reading:
        """The `gap` reading, with its number."""
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
        db.execute(f"SELECT {_COLUMNS} FROM gap LIMIT 0")  # an error now, if the table's description is damaged

    def write(self, gaps: Iterable[Gap]) -> None:
        """Replace the rows of these gaps' streams, in a transaction that others begin."""
        rows = [(gap.stream, gap.count, gap.t_min, gap.t_max, gap.clock_state) for gap in gaps]
        checked = [(*row, checksum(row)) for row in rows]
        self._db.executemany("INSERT OR REPLACE INTO gap VALUES (?, ?, ?, ?, ?, ?)", checked)

    def delete(self, gaps: Iterable[Gap]) -> None:
        """Delete the rows of these gaps, in the transaction that stores their gap readings."""
        self._db.executemany("DELETE FROM gap WHERE stream = ?", [(gap.stream,) for gap in gaps])

    def read(self, site: str, gateway: str) -> list[Gap]:
        """The gaps that earlier agents counted and did not report."""
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM gap ORDER BY stream")
        gaps = []
        for *row, crc in rows:
            if checksum(row) == crc:
                gaps.append(Gap(site, gateway, *row))
            else:
                log.error("spool.bad_row", "a count of refused readings is unreadable", stream=row[0])
        return gaps
