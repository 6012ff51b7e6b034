"""The agent's time: the newest sample of its clock, and the readings that wait until the clock is known.

What waits is in memory (`undated`) and soon on disk (`waiting`); what a full disk refuses is tried again.
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
from whenabouts_edge.store.intake import MAX_WAITING, RETRY_S
from whenabouts_edge.store.undated import LIMIT, Undated
from whenabouts_edge.store.waiting import WaitingRows
from whenabouts_protocol.logs import Log

NOTE_TIME_EVERY_S = 600.0

log = Log(__name__)


class Timekeeper:
    """db is the spool's thread, rows are what it keeps of readings that wait; earlier: those read from there at the start.

    All but `current` and `now_us` belongs to the event loop's thread.
    """

    def __init__(self, clock: HostClock, db: Executor, rows: WaitingRows, earlier: Sequence[PendingReading]) -> None:
        self._clock, self._db, self._rows = clock, db, rows
        self._loop = asyncio.get_running_loop()
        self.sample = clock.sample()
        self._epoch = 0  # counts steps beyond the bound
        self._undated = Undated(clock.host_us(0))
        self._undated.keep(earlier)
        self._unwritten: list[PendingReading] = []  # wait for the clock, and for their rows in the spool
        self._one_writes = asyncio.Lock()  # or a row could come back after its reading was stored
        self._known_s: float | None = None  # when a moment of UTC was last written down

    def now_us(self) -> int:
        """The present of the host's clock."""
        return self._clock.host_us(time.monotonic_ns())

    def current(self) -> ClockSample:
        """The newest sample as it counts now; for the readers' threads too."""
        return self._clock.current(self.sample)

    @property
    def waits(self) -> bool:
        """True while readings wait for the clock."""
        return bool(self._undated)

    @property
    def known(self) -> bool:
        """True while a reading can go on at once: UTC is known, and none waits that it would pass."""
        return not self._undated and self.sample.bound_us is not None

    def utc_us(self, host_us: int) -> int | None:
        """The UTC that no reading of this moment or a later one can be stamped before; None while that is not known."""
        sample = self.current()
        if sample.bound_us is None or self._undated:
            return None
        return sample.to_utc(host_us, host_us).t_min

    async def take_sample(self) -> None:
        """Ask the clock again."""
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
        """Write down now and then that UTC has come so far: what a next run reads before it knows the time came later."""
        if self.sample.bound_us is None or (
            self._known_s is not None and time.monotonic() - self._known_s < NOTE_TIME_EVERY_S
        ):
            return
        self._known_s = time.monotonic()
        with contextlib.suppress(sqlite3.OperationalError):  # a full disk: an older moment is true too
            utc_us = self.sample.to_utc(self.sample.host_us, self.sample.host_us).t_min
            await self._loop.run_in_executor(self._db, self._rows.know, utc_us)

    def keep(self, readings: Sequence[PendingReading]) -> None:
        """These wait for the clock, behind those that do."""
        self._rows.numbered(readings)
        self._undated.keep(readings)
        self._unwritten += readings

    def released(self) -> list[PendingReading]:
        """Some that need not wait longer, in their order; none if all must."""
        return self._undated.released(self.current(), self.now_us())

    async def write(self) -> None:
        """Write down what waits for the clock; what a full disk refuses is tried again, and waits in memory meanwhile."""
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
        """Write down all that waits for the clock, however often the disk refuses it."""
        while self._unwritten:
            await self.write()

    def status(self) -> dict[str, Any]:
        """For the status file."""
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
