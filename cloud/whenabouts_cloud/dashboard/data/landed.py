"""What has landed, as the timeline asks for it: counts per lane and column, single readings, lanes, frontiers.

`follow` finds new files, reads their footers (the newest first), and counts their readings into a histogram; until a block
is counted, its footer gives an estimate. A question that is finer than the histogram reads the blocks of its time. When a
file that was listed has gone (it was merged with others, or deleted), all is listed and counted anew.

Cost: 0.5 ms a file, 0.1 s a million readings. Memory: 12 bytes an entry of the histogram (see `density`), twice that for a
moment, 0.4 kB a block, and the blocks that were looked at (`readings_in`).
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.dashboard.data.density import Density
from whenabouts_cloud.dashboard.data.lane_table import MAX_LANES, Lane, LaneTable
from whenabouts_cloud.dashboard.data.readings_in import KeptMiddles, middles_of, overlapping_rows
from whenabouts_cloud.dashboard.data.row_groups import Block, blocks_of, read_block
from whenabouts_cloud.dashboard.data.truth_file import TruthFile
from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.history import History, Offset, Piece, frontiers_of, readings_of
from whenabouts_cloud.landing.scan import frontiers_in
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_cloud.landing.store import Store

MAX_BLOCKS = 200_000  # of which single readings can be shown; older ones are only counted
FINE_ROWS = 3_000_000  # that are read for a question that is finer than the histogram
ROWS = 1_000_000  # of the blocks that are read for single readings
PROBLEMS = 20
REMOTE_RELIST_S = 5.0  # between two listings of an object store, each of which costs requests
ANEW_S = 5.0  # between two listings of all, as files may go again and again
KEY_BLOCKS = 4  # the newest, whose keys are suggested
COUNTED = ("site", "gateway", "stream", "t_min", "t_max")
IDENTIFIED = ("site", "gateway", "boot", "seq", "stream", "kind", "key", "t_min", "t_max", "landed_us")


@dataclass(frozen=True)
class Landed:
    """A landing in figures. Times in us; counted: part of the readings that are counted, 0 to 1."""

    first_us: int | None
    last_us: int | None
    latest_landed_us: int | None
    readings: int
    lanes: int
    files: int
    bytes: int
    counted: float
    exact: bool
    damaged: int
    problems: list[str]
    has_truth: bool


class Counted(NamedTuple):
    """Readings by lane and column, and whether they are exact."""

    cells: Any
    exact: bool


class TooManyError(Exception):
    """A question would read more than is sensible; the text says what to do."""


@dataclass
class _Known:
    """What was found since all was listed last."""

    history: History
    listed: bool = False  # once at least
    offset: Offset = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)  # with readings, whose footers are not read; the newest last
    frontiers: list[Piece] = field(default_factory=list)  # not read; the newest last
    waiting: list[Block] = field(default_factory=list)  # not counted; the newest last
    blocks: list[Block] = field(default_factory=list)
    table: LaneTable = field(default_factory=LaneTable)
    density: Density = field(default_factory=Density)
    watermarks: dict[tuple[str, str], int] = field(default_factory=dict)
    first_us: int = 2**63 - 1
    last_us: int = -(2**63)
    landed_us: int = -1
    counted_rows: int = 0
    waiting_rows: int = 0
    files: int = 0
    bytes: int = 0
    unkept: int = 0


class LandedIndex:
    """An index of a landing. `follow` belongs to one thread, all else to any."""

    def __init__(self, landing: Store, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._landing, self._monotonic_s = landing, monotonic_s
        self._lock = threading.RLock()
        self._known = _Known(History(landing))
        self._kept = KeptMiddles(landing, self._numbered)
        self._truth = TruthFile(landing)
        self._damaged: dict[str, str] = {}
        self._gone, self._anew_s, self._found_s = False, -ANEW_S, -REMOTE_RELIST_S
        self._keys: tuple[Any, list[str]] = (None, [])
        self.version = 0

    def follow(self, budget_s: float) -> bool:
        """Find what is new and read it for about this time; True if there is more to do at once.

        Raises:
            OSError: the landing cannot be listed.
        """
        until_s = self._monotonic_s() + budget_s
        if self._gone:
            if self._monotonic_s() < self._anew_s + ANEW_S:
                return False
            self._begin_anew()
        known = self._known
        if self._landing.local is not None or self._monotonic_s() >= self._found_s + REMOTE_RELIST_S:
            self._found_s = self._monotonic_s()
            self._find(known)
            self.version += self._truth.follow()
        worked = False
        while (more := self._step(known)) and self._monotonic_s() < until_s and not self._gone:
            worked = True
        if worked:
            pa.default_memory_pool().release_unused()
        return more

    def summary(self) -> Landed:
        """The landing in figures."""
        with self._lock:
            known = self._known
            total = known.counted_rows + known.waiting_rows
            first, last = known.first_us, known.last_us
            return Landed(
                first if first <= last else None, last if first <= last else None,
                known.landed_us if known.landed_us >= 0 else None, total, len(known.table), known.files, known.bytes,
                self._counted(), self._exact(), len(self._damaged), self._problems(), len(self._truth) > 0,
            )  # fmt: skip

    def lanes(self, search: str, offset: int, limit: int) -> tuple[list[Lane], int]:
        """A page of the lanes whose name contains a text, sorted by name, and how many there are."""
        with self._lock:
            known = self._known
            found = known.table.chosen(search)
            page = found[offset : offset + limit]
            marks = known.watermarks
            return [known.table.lane(name, number, marks.get(name[:2])) for name, number in page], len(found)

    def counts(self, lanes: Sequence[int], from_us: int, column_us: int, columns: int) -> Counted:
        """How many readings have their middle in each column [from_us + p column_us, + column_us), by lane.

        lanes: their numbers. Columns that are no multiples of the histogram's buckets are counted from the files, or, if
        these hold too many readings, from the buckets, as well as they fit.
        """
        with self._lock:
            known, chosen = self._known, list(lanes)
            aligned = known.density.aligned(from_us, column_us)
            if aligned:
                cells = known.density.counts(chosen, from_us, column_us, columns)
                cells += self._estimated(known, chosen, from_us, column_us, columns)
                return Counted(cells, self._exact())
            blocks = _overlapping(known.blocks, from_us, from_us + column_us * columns)
            fine = known.unkept == 0 and sum(block.rows for block in blocks) <= FINE_ROWS
            if not fine:
                cells = known.density.counts(chosen, from_us, column_us, columns)
                cells += self._estimated(known, chosen, from_us, column_us, columns)
                return Counted(cells, False)
        return self._fine(blocks, chosen, from_us, column_us, columns)

    def rows(self, from_us: int, to_us: int, columns: Sequence[str] = IDENTIFIED) -> pa.Table:
        """Single readings that overlap a time.

        Raises:
            TooManyError: their blocks hold more than ROWS.
        """
        with self._lock:
            blocks = _overlapping(self._known.blocks, from_us, to_us)
        if (rows := sum(block.rows for block in blocks)) > ROWS:
            raise TooManyError(f"found {rows} readings to look through, expected at most {ROWS}: choose a shorter time")
        tables = []
        for block in blocks:
            if (
                table := self._tried(partial(overlapping_rows, self._landing, [block], columns, from_us, to_us))
            ) is not None:
                tables.append(table)
        if not tables:
            return overlapping_rows(self._landing, (), columns, from_us, to_us)
        return pa.concat_tables(tables).unify_dictionaries().combine_chunks()

    def numbers(self, table: pa.Table) -> Any:
        """The lane of each reading of a table with site, gateway and stream."""
        return self._numbered(table)

    def reading(self, site: str, gateway: str, boot: int, seq: int, t_min: int, t_max: int) -> dict[str, Any] | None:
        """All columns of a reading; None if there is none.

        Raises:
            TooManyError: its blocks hold more than ROWS.
        """
        rows = self.rows(t_min, t_max, SCHEMA.names)
        same = pc.and_(pc.equal(rows["boot"], boot), pc.equal(rows["seq"], seq))
        for one in rows.filter(same).to_pylist():
            if (one["site"], one["gateway"]) == (site, gateway):
                return dict(one)
        return None

    def true_us(self, site: Any, gateway: Any, boot: Any, seq: Any) -> int | None:
        """The true time of a reading, where a simulator has written it."""
        return self._truth.of(site, gateway, boot, seq)

    @property
    def has_truth(self) -> bool:
        """True if a simulator has written true times."""
        return len(self._truth) > 0

    def keys(self, prefix: str, limit: int) -> list[str]:
        """Keys of the newest files that begin with these letters, sorted."""
        with self._lock:
            newest = self._known.blocks[-KEY_BLOCKS:]
        if self._keys[0] != newest:
            found: set[str] = set()
            for block in newest:
                if (table := self._tried(partial(read_block, self._landing, block, ("key",)))) is not None:
                    found.update(key for key in pc.unique(table["key"]).to_pylist() if key)
            self._keys = (newest, sorted(found))
        return [key for key in self._keys[1] if key.startswith(prefix)][:limit]

    def _find(self, known: _Known) -> None:
        end = known.history.latest(known.offset)
        if end == known.offset:
            self.version += not known.listed  # that there is nothing is news
            known.listed = True
            return
        pieces = known.history.pieces(known.offset, end)
        known.history.forget(end)
        with self._lock:
            known.offset, known.listed = end, True
            fresh = readings_of(pieces)
            known.pieces += fresh
            known.frontiers += frontiers_of(pieces)
            known.files += len(fresh)
            known.bytes += sum(size or 0 for size in self._landing.sizes(piece.path for piece in fresh))
            self.version += 1

    def _step(self, known: _Known) -> bool:
        """The next bit of work; False if there is none. One block is counted before footers, so that there are lanes."""
        if known.waiting and (not known.pieces or len(known.table) == 0):
            self._count(known)
        elif known.pieces:
            self._read_footer(known)
        elif known.frontiers:
            self._read_frontier(known)
        else:
            return False
        return True

    def _read_footer(self, known: _Known) -> None:
        piece = known.pieces[-1]  # removed when its blocks are known: until then nothing is exact
        blocks = self._tried(lambda: blocks_of(self._landing, piece)) or []
        with self._lock:
            known.pieces.pop()
            known.waiting[:0] = blocks  # pieces come from the newest to the oldest
            known.waiting_rows += sum(block.rows for block in blocks)
            if len(known.blocks) + len(blocks) <= MAX_BLOCKS:
                known.blocks += blocks
            else:
                known.unkept += len(blocks)
            for block in blocks:
                known.landed_us = max(known.landed_us, block.landed_us)
                if block.first_us > -(2**63) and block.last_us < 2**63 - 1:
                    known.first_us, known.last_us = (
                        min(known.first_us, block.first_us),
                        max(known.last_us, block.last_us),
                    )
            self.version += 1

    def _count(self, known: _Known) -> None:
        """Count the newest block that waits. The lock is held for as short as it can be: questions wait for it."""
        block = known.waiting[-1]  # removed when it is counted: until then nothing is exact
        table = self._tried(lambda: read_block(self._landing, block, COUNTED))
        has_rows = table is not None and table.num_rows > 0
        if has_rows:
            lanes = self._numbered(table)
            t_min, t_max = (np.asarray(table[name].fill_null(0), np.int64) for name in ("t_min", "t_max"))
            density = known.density.added(lanes, middles_of(table))
        with self._lock:
            known.waiting.pop()
            known.waiting_rows -= block.rows
            self.version += 1
            if not has_rows:
                return
            known.counted_rows += table.num_rows
            known.table.add(lanes, t_min, t_max)
            known.density = density
            known.first_us, known.last_us = min(known.first_us, int(t_min.min())), max(known.last_us, int(t_max.max()))

    def _read_frontier(self, known: _Known) -> None:
        piece = known.frontiers.pop()
        for one in self._tried(lambda: _said_in(self._landing, piece)) or []:
            name = (one["site"], one["gateway"])
            if all(isinstance(part, str) for part in name) and isinstance(one["frontier_us"], int):
                with self._lock:
                    known.watermarks[name] = max(one["frontier_us"], known.watermarks.get(name, one["frontier_us"]))
        self.version += 1

    def _fine(self, blocks: list[Block], lanes: list[int], from_us: int, column_us: int, columns: int) -> Counted:
        rows = np.full(MAX_LANES + 1, -1, np.int64)  # the last: others
        rows[lanes] = np.arange(len(lanes))
        found = np.zeros(len(lanes) * columns, np.int64)
        for block in blocks:
            kept = self._tried(partial(self._kept.of, block))
            if kept is None:
                continue
            row, at = rows[kept[0]], (kept[1] - from_us) // column_us
            inside = (row >= 0) & (at >= 0) & (at < columns)
            found += np.bincount(row[inside] * columns + at[inside], minlength=len(found))
        with self._lock:
            whole = not self._known.pieces and not self._gone
        return Counted(found.reshape(len(lanes), columns), whole)

    def _estimated(self, known: _Known, lanes: list[int], from_us: int, column_us: int, columns: int) -> Any:
        """What blocks that are not counted yet add: their readings evenly over their time, by the lanes' shares so far."""
        if not known.waiting or len(known.table) == 0:
            return np.zeros((len(lanes), columns), np.int64)
        limits = np.array([(x.first_us, x.last_us, x.rows) for x in known.waiting], np.float64)
        edges = from_us + column_us * np.arange(columns + 1, dtype=np.float64)
        density = np.zeros(columns)
        for first, last, rows in limits[(limits[:, 1] >= from_us) & (limits[:, 0] <= edges[-1])]:
            width = max(1.0, last - first)
            if width > 1e18:
                continue  # its footer does not say when
            density += rows * np.diff(np.clip((edges - first) / width, 0, 1))
        return np.rint(np.outer(known.table.shares()[lanes], density)).astype(np.int64)

    def _numbered(self, table: pa.Table) -> Any:
        with self._lock:
            return self._known.table.numbers(table)

    def _tried(self, call: Callable[[], Any]) -> Any:
        """The result of a call that reads a file; None if that is damaged, which is noted, or has gone."""
        try:
            return call()
        except FileNotFoundError:
            self._gone = True
        except (DamagedFileError, OSError, pa.ArrowException, ValueError) as error:
            text = " ".join(str(error).split())[:200]
            if text not in self._damaged and len(self._damaged) < PROBLEMS:
                self._damaged[text] = text
        return None

    def _begin_anew(self) -> None:
        with self._lock:
            self._gone, self._anew_s = False, self._monotonic_s()
            self._known = _Known(History(self._landing))
            self._kept = KeptMiddles(self._landing, self._numbered)
            self._damaged = {}
            self.version += 1

    def _exact(self) -> bool:
        known = self._known
        return known.listed and not (known.pieces or known.waiting or self._gone)

    def _counted(self) -> float:
        known = self._known
        if not known.listed or (known.pieces and not known.counted_rows):
            return 0.0
        read = 1 - len(known.pieces) / max(1, known.files)
        return read * known.counted_rows / max(1, known.counted_rows + known.waiting_rows) if not self._exact() else 1.0

    def _problems(self) -> list[str]:
        known = self._known
        found = list(self._damaged)
        if known.unkept:
            found.append(
                f"found more than {MAX_BLOCKS} row groups: single readings of the oldest cannot be shown; compact"
            )
        if known.table.others:
            found.append(f"found more than {MAX_LANES} readers: {known.table.others} readings are in no lane")
        if known.density.outside > known.table.others:
            found.append(f"found {known.density.outside - known.table.others} readings before 1970 or after 2255")
        return found


def _overlapping(blocks: list[Block], from_us: int, to_us: int) -> list[Block]:
    return [block for block in blocks if block.first_us <= to_us and block.last_us >= from_us]


def _said_in(landing: Store, piece: Piece) -> list[dict[str, Any]]:
    """The watermarks of a file.

    Raises:
        FileNotFoundError: it has gone.
        DamagedFileError: see `frontiers_in`.
    """
    try:
        return list(frontiers_in(landing, [piece]))
    except DamagedFileError as error:
        if landing.sizes([piece.path]) == [None]:
            raise FileNotFoundError(str(error)) from None
        raise
