"""The agent's time: the newest sample of its clock, and the readings that wait until the clock is known.

Waiting readings are in memory (`undated`) and soon on disk (`waiting`); a write that a full disk refuses is tried again.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

from whenabouts_edge.clock import ClockSample, HostClock
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.thread import MAX_WAITING
from whenabouts_edge.store.intake import RETRY_S
from whenabouts_edge.store.undated import LIMIT, Undated, has_utc
from whenabouts_edge.store.waiting import WaitingRows
from whenabouts_protocol.logs import Log

NOTE_TIME_EVERY_S = 600.0

log = Log(__name__)


class Timekeeper:
    """Samples the clock and holds back readings until it is known. db: the spool's thread. rows: the spool's rows of
    waiting readings. earlier: the readings found in them at the start.

    All but `current` and `now_us` belongs to the event loop's thread.
    """

    def __init__(self, clock: HostClock, db: Executor, rows: WaitingRows, earlier: Sequence[PendingReading]) -> None:
        self._clock, self._db, self._rows = clock, db, rows
        self._loop = asyncio.get_running_loop()
        self.sample = clock.sample()
        self._epoch = 0  # counts steps beyond the bound
        self._undated = Undated(clock.host_us(0))
        self._undated.keep(earlier)
        self._unwritten: list[PendingReading] = []  # these wait for the clock, and for their rows in the spool
        self._one_writes = asyncio.Lock()  # else a row could come back after its reading was stored
        self._known_s: float | None = None  # when a moment of UTC was last written to disk

    def now_us(self) -> int:
        """Current time of the host's clock."""
        return self._clock.host_us(time.monotonic_ns())

    def current(self) -> ClockSample:
        """The newest sample, wider by the slewing since it was taken. Readers' threads may call this too."""
        return self._clock.current(self.sample)

    @property
    def waits(self) -> bool:
        """True while readings wait for the clock."""
        return bool(self._undated)

    def utc_us(self, host_us: int) -> int | None:
        """Earliest UTC at which the stamp of a reading made at host_us or later can begin; None while it is not known."""
        sample = self.current()
        if sample.bound_us is None or self._undated:
            return None
        return sample.to_utc(host_us, host_us).t_min

    async def take_sample(self) -> None:
        """Take a new sample of the clock."""
        before, self.sample = self.sample, await asyncio.to_thread(self._clock.sample)
        await self._note_time()
        step_us = self.sample.step_since(before)
        if step_us:
            self._epoch += 1
            log.warning(
                "clock.stepped", "by more than its bound; another clock epoch begins", by_s=round(step_us / 1e6, 6),
                epoch=self._epoch,
            )  # fmt: skip

    async def _note_time(self) -> None:
        """Write UTC to disk now and then: readings of a later run, made before it knows UTC, are later than this."""
        if self.sample.bound_us is None or (
            self._known_s is not None and time.monotonic() - self._known_s < NOTE_TIME_EVERY_S
        ):
            return
        self._known_s = time.monotonic()
        with contextlib.suppress(sqlite3.OperationalError):  # a full disk: the older moment stays a valid bound
            utc_us = self.sample.to_utc(self.sample.host_us, self.sample.host_us).t_min
            await self._loop.run_in_executor(self._db, self._rows.know, utc_us)

    def passed(self, readings: Sequence[PendingReading]) -> Sequence[PendingReading]:
        """Those of these that can go on at once: all before the first without UTC, if no earlier reading waits. Keeps the
        others.

        Their stamps decide, not the newest sample: that can have come since, and the host can have slept since.
        """
        count = 0
        while not self._undated and count < len(readings) and has_utc(readings[count]):
            count += 1
        self.keep(readings[count:])
        return readings[:count]

    def keep(self, readings: Sequence[PendingReading]) -> None:
        """Keep these until the clock is known, behind those that wait already."""
        self._rows.numbered(readings)
        self._undated.keep(readings)
        self._unwritten += readings

    def released(self) -> list[PendingReading]:
        """Some of the readings that need not wait longer, in their order; none if all must wait."""
        return self._undated.released(self.current(), self.now_us())

    async def write(self) -> None:
        """Write waiting readings to disk. Those that a full disk refuses stay in memory and are tried again."""
        async with self._one_writes:
            written = self._unwritten[:MAX_WAITING]
            if not written:
                return
            try:
                await self._loop.run_in_executor(self._db, self._rows.write, written)
            except sqlite3.OperationalError as error:
                log.error(
                    "spool.unwritable", "readings wait for the clock in memory; free space on its disk", error=error
                )
                del self._unwritten[:-LIMIT]
                await asyncio.sleep(RETRY_S)
            else:
                del self._unwritten[: len(written)]

    async def write_all(self) -> None:
        """Write all waiting readings to disk, however often the disk refuses them."""
        while self._unwritten:
            await self.write()

    def status(self) -> dict[str, Any]:
        """Fields of the status file."""
        return {
            "state": self.sample.state,
            "bound_us": self.sample.bound_us,
            "source": self.sample.source,
            "epoch": self._epoch,
            "undated": len(self._undated),
            "unwritten": len(self._unwritten),
            "dated_late": self._undated.dated,
            "never_dated": self._undated.given_up,
        }
