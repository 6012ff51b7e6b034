"""From the readers' threads into the spool, in group commits; a `gap` reading reports what the spool refuses.

Readers hand over pending readings in order. They wait when MAX_WAITING are on their way, so a slow disk slows the reading
of ports instead of filling memory. A commit takes the readings gathered in commit_ms, or MAX_BATCH readings at once.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence

from whenabouts_edge.events import set_within
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.thread import MAX_WAITING
from whenabouts_edge.store.gaps import Gap
from whenabouts_edge.store.spool import SpoolFull
from whenabouts_protocol import WireError
from whenabouts_protocol.logs import Log

MAX_BATCH = 100  # readings of one commit and one message
RETRY_S = 1.0  # between attempts while the spool is full
# Time without a refusal until readings count as flowing again: a spool near its limit takes some and refuses some.
CALM_S = 30.0

log = Log(__name__)


class Intake:
    """Buffers pending readings and stores them. append: stores a batch and gaps, or raises SpoolFull. stored: called
    after each commit.

    keep: writes the counts of refused readings to disk, if it has room. before: gaps that earlier agents counted and did
    not report.
    """

    def __init__(
        self,
        append: Callable[[Sequence[PendingReading], Sequence[Gap]], Awaitable[object]],
        stored: Callable[[], None],
        commit_ms: int,
        keep: Callable[[Sequence[Gap]], Awaitable[None]],
        before: Sequence[Gap] = (),
    ) -> None:
        self._append, self._on_stored, self._commit_s = append, stored, commit_ms / 1000
        self._keep = keep
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(MAX_WAITING)
        self._one_reserves = threading.Lock()  # else several readers could each hold some room and wait for ever
        self._buffer: list[PendingReading] = []
        self._filled = asyncio.Event()
        self._batch_full = asyncio.Event()
        self._ends = False
        self._gaps = {gap.stream: gap for gap in before}
        self._reporting: dict[str, Gap] = {}  # gaps whose readings are being stored
        self.accepted = 0
        self.settled = 0  # stored, or refused and counted
        self.refused = 0
        self._refused_before: int | None = None  # `refused` before this spell of refusals; None while readings flow
        self._refused_s = 0.0  # the moment of the last refusal

    def reserve(self, count: int) -> None:
        """Wait until there is room for count readings, MAX_WAITING at most. A reader's thread calls this before it hands
        them over; without any it does not wait behind one that has some.
        """
        if not count:
            return
        with self._one_reserves:
            for _ in range(count):
                self._room.acquire()

    def release(self, count: int) -> None:
        """Give back room that was reserved for readings which are not handed over now."""
        if count:
            self._room.release(count)

    @property
    def waiting(self) -> int:
        """Readings accepted and not yet settled."""
        return self.accepted - self.settled

    def accept(self, readings: Sequence[PendingReading]) -> None:
        """Take readings for which room was reserved; belongs to the event loop's thread."""
        if readings:
            self._buffer.extend(readings)
            self.accepted += len(readings)
            self._filled.set()
            if len(self._buffer) >= MAX_BATCH:
                self._batch_full.set()

    def offer(self, readings: Sequence[PendingReading]) -> None:
        """Take readings for which no room was reserved, as many as find room; refuse the rest and report them by a gap."""
        taken = 0
        while taken < len(readings) and self._room.acquire(blocking=False):
            taken += 1
        self.accept(readings[:taken])
        if taken < len(readings):
            self._refuse(list(readings[taken:]), f"found {MAX_WAITING} readings that wait to be stored")
            self._filled.set()

    @property
    def gap_open(self) -> bool:
        """True while some refused readings are not yet reported by a stored gap reading."""
        return bool(self._gaps or self._reporting)

    async def run(self) -> None:
        """Store readings until `end` is called, and then those that are left."""
        while self._buffer or not self._ends:
            if self._gaps and not self._buffer:
                await self._report_gaps()
            if len(self._buffer) < MAX_BATCH and not self._ends:
                await self._gather()
            await self._store(self._buffer[:MAX_BATCH])
            self._report_calm()
        if self._gaps:
            await self._report_gaps()

    def end(self) -> None:
        """Let `run` return once nothing is left."""
        self._ends = True
        self._filled.set()
        self._batch_full.set()

    async def _gather(self) -> None:
        self._batch_full.clear()
        if not self._buffer:
            self._filled.clear()
            timeout_s = RETRY_S if self._gaps or self._refused_before is not None else None
            if not await set_within(self._filled, timeout_s):
                return
        await set_within(self._batch_full, self._commit_s)

    async def _store(self, readings: list[PendingReading]) -> None:
        if not readings:
            return
        try:
            await self._append_with_gaps(readings)
        except WireError:
            if len(readings) == 1:
                raise
            half = len(readings) // 2  # together they make a message that is too long
            await self._store(readings[:half])
            await self._store(readings[half:])
            return
        except SpoolFull as error:
            self._refuse(readings, str(error))
            await self._keep(list(self._gaps.values()))
        del self._buffer[: len(readings)]
        self.settled += len(readings)
        self._room.release(len(readings))
        self._on_stored()

    async def _report_gaps(self) -> None:
        try:
            await self._append_with_gaps([])
        except SpoolFull:
            await self._keep(list(self._gaps.values()))
        else:
            self._on_stored()

    async def _append_with_gaps(self, readings: list[PendingReading]) -> None:
        """Store these behind the gaps so far; readings that are refused meanwhile begin new gaps."""
        self._reporting, self._gaps = self._gaps, {}
        try:
            await self._append(readings, list(self._reporting.values()))
        except BaseException:
            for gap in self._reporting.values():
                later = self._gaps.get(gap.stream)
                self._gaps[gap.stream] = gap if later is None else gap.joined(later)
            raise
        finally:
            self._reporting = {}

    def _refuse(self, readings: list[PendingReading], why: str) -> None:
        if self._refused_before is None:
            self._refused_before = self.refused
            log.error("spool.refuses", f"{why}; refuses new readings until there is room")
        self._refused_s = self._loop.time()
        self.refused += len(readings)
        for one in readings:
            one.refused()
            gap, known = Gap.of(one), self._gaps.get(one.stream)
            self._gaps[one.stream] = gap if known is None else known.joined(gap)

    def _report_calm(self) -> None:
        """Log that readings flow again, once all gaps are stored and no reading was refused for CALM_S."""
        before = self._refused_before
        if before is not None and not self.gap_open and self._loop.time() - self._refused_s >= CALM_S:
            self._refused_before = None
            log.warning("spool.stores", "there is room again", refused=self.refused - before)
