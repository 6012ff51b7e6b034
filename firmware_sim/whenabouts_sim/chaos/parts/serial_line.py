"""A simulated reader on a serial line, and the thread of the agent that reads it, as a task on virtual time.

The agent's thread waits in a read of its port. Here the task waits first, for bytes or for the end of the time-out, and then
lets the thread go on; until the read returns, its clock stands where it stood when it began to wait. On a machine with slow
threads the system looks at its buffer late, and the thread goes on later still: the read returns what the system saw.
"""

import asyncio
import time
from typing import Any

from whenabouts_edge.config.settings import ReaderConfig
from whenabouts_edge.readers.port import Port
from whenabouts_edge.readers.thread import ReaderThread
from whenabouts_sim.chaos.machine.clock import VirtualTime
from whenabouts_sim.chaos.machine.running import running
from whenabouts_sim.readers.core import ReaderCore


class SerialLine:
    """The device that `Port` opens. One reader, which goes on when nobody reads."""

    def __init__(self, reader: ReaderCore, clock: VirtualTime, loop: asyncio.AbstractEventLoop) -> None:
        self._reader, self._clock, self._loop = reader, clock, loop
        self._bytes = bytearray()
        self._seen: int | None = None  # bytes in the buffer when the system looked; None: it looks when it is asked
        self.timeout: float | None = None

    def open(self) -> None:
        """The system empties its buffer."""
        self._reader.due(self._clock.true_us)
        self._bytes.clear()

    async def wait(self, timeout_s: float) -> None:
        """Wait for bytes."""
        end_s = self._loop.time() + timeout_s
        while not self._look():
            next_us = self._reader.next_us()
            left_s = end_s - self._loop.time()
            if left_s <= 0:
                return
            if next_us is not None:
                left_s = min(left_s, max(1, next_us - self._clock.true_us) / 1e6)
            await asyncio.sleep(left_s)

    def look(self) -> None:
        """The system looks at its buffer, and the read that waits will return."""
        self._seen = self._look()

    @property
    def in_waiting(self) -> int:
        """Bytes in the system's buffer."""
        return self._look()

    def read(self, size: int) -> bytes:
        """Return what is there; the time-out has passed if nothing is."""
        self._clock.behind_ns = None
        there, self._seen = self._look() if self._seen is None else self._seen, None
        data = bytes(self._bytes[: min(size, there)])
        del self._bytes[: len(data)]
        return data

    def write(self, data: bytes) -> int:
        """Send to the reader."""
        self._reader.feed(data, self._clock.true_us)
        return len(data)

    def cancel_read(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """The reader goes on."""

    def _look(self) -> int:
        for piece in self._reader.due(self._clock.true_us):
            self._bytes += piece.data
        return len(self._bytes)


async def _turn_of_the_processor() -> None:
    process = running()
    late_s = process.delay_s(disk=False) if process is not None else 0.0
    if late_s:
        await asyncio.sleep(late_s)


class ReaderTask(ReaderThread):
    """The agent's thread of one reader, as a task. line: its device; poll_ms: time-out of a read."""

    def __init__(self, line: SerialLine, clock: VirtualTime, poll_ms: int, *args: Any) -> None:
        reader, site, gateway, host_us, sample, deliver = args
        super().__init__(reader, site, gateway, host_us, sample, deliver, open_port=self._opened)
        self._line, self._virtual, self._poll_ms = line, clock, poll_ms
        self._turns = self.turns()

    def start(self) -> None:
        asyncio.get_running_loop().create_task(self._work())

    def join(self, timeout: float | None = None) -> None:
        """Read what has come, as the thread does before it ends; the task finds nothing left to do."""
        self._virtual.behind_ns = None
        while next(self._turns, None) is not None:
            pass

    def _opened(self, reader: ReaderConfig) -> Port:
        self._line.open()
        return Port(self._line, reader.port, time.monotonic_ns, time.monotonic_ns(), poll_ms=self._poll_ms)

    async def _work(self) -> None:
        while (pause_s := next(self._turns, None)) is not None:
            self._virtual.behind_ns = None
            if pause_s:
                await asyncio.sleep(pause_s)
                continue
            began_ns = self._virtual.now_ns
            await self._line.wait(self._poll_ms / 1000)
            await _turn_of_the_processor()
            self._line.look()
            await _turn_of_the_processor()
            self._virtual.behind_ns = began_ns
        self._virtual.behind_ns = None
