"""A simulated reader on a serial line, and the thread of the agent that reads it, as a task on virtual time.

The agent's thread waits in a read of its port. Here the task waits first, for bytes or for the end of the time-out, and then
lets the thread go on; until the read returns, its clock stands where it stood when it began to wait. On a machine with slow
threads the system looks at its buffer late, and the thread goes on later still: the read returns what the system saw.
"""

import asyncio
import errno
import time
from collections import deque
from typing import Any, NamedTuple

from whenabouts_edge.config.settings import ReaderConfig
from whenabouts_edge.readers.host_session import Batch
from whenabouts_edge.readers.port import Port, PortError
from whenabouts_edge.readers.thread import ReaderThread
from whenabouts_hardware.readers import em4100
from whenabouts_sim.chaos.machine.clock import VirtualTime
from whenabouts_sim.chaos.machine.room import Full, Room
from whenabouts_sim.chaos.machine.running import running
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.wire import Piece
from whenabouts_sim.world.world import Sighting

ROOM_S = 0.005  # how soon a thread goes on when there is room


class Happened(NamedTuple):
    """At a moment of UTC a line was "unplugged", "opened", or "not found" by somebody who wanted to open it."""

    at_us: int
    what: str


class SerialLine:
    """The device that `Port` opens. One reader, which goes on when nobody reads, and while the line is unplugged.

    lost: sightings of which bytes came while it was unplugged, or was not opened again yet, or waited in the system's
    buffer when it was unplugged; and those of which damaged bytes say nothing, which are in `damaged`, too. history: what
    happened to it.
    """

    def __init__(self, reader: ReaderCore, clock: VirtualTime, loop: asyncio.AbstractEventLoop) -> None:
        self._reader, self._clock, self._loop = reader, clock, loop
        self._pieces: deque[tuple[Piece, int]] = deque()  # in the system's buffer, with how much of each was read
        self._seen: int | None = None  # bytes in the buffer when the system looked; None: it looks when it is asked
        self._seen_ns = 0  # when it looked
        self._is_cut = False  # of the frame that comes, some piece was lost
        self.is_plugged = True
        self._is_gone = False  # it was unplugged since it was opened
        self.timeout: float | None = None
        self.lost: set[Sighting] = set()
        self.damaged: set[Sighting] = set()
        self.history: list[Happened] = []

    def open(self) -> None:
        """The system empties its buffer.

        Raises:
            PortError: it is unplugged.
        """
        self._look()
        self._note("opened" if self.is_plugged else "not found")
        if not self.is_plugged:
            raise PortError("found no device")
        self._is_gone = False
        self._pieces.clear()

    def unplug(self) -> None:
        """Take it away: what waits in the system's buffer is lost."""
        self._look()
        self._note("unplugged")
        self.is_plugged, self._is_gone = False, True
        for piece, _ in self._pieces:
            self._lose(piece)
        self._pieces.clear()

    def plug(self) -> None:
        """Bring it back: it can be opened again."""
        self._look()
        self.is_plugged = True

    def end(self) -> None:
        """The schedule ends: what came since somebody looked last is lost if the line was not opened again."""
        self._look()

    async def wait(self, timeout_s: float) -> None:
        """Wait for bytes, or until it is unplugged."""
        end_s = self._loop.time() + timeout_s
        while not self._look() and not self._is_gone:
            next_us = self._reader.next_us()
            left_s = end_s - self._loop.time()
            if left_s <= 0:
                return
            if next_us is not None:
                left_s = min(left_s, max(1, next_us - self._clock.true_us) / 1e6)
            await asyncio.sleep(left_s)

    def look(self) -> None:
        """The system looks at its buffer, and the read that waits will return."""
        self._seen, self._seen_ns = self._look(), self._clock.now_ns

    @property
    def in_waiting(self) -> int:
        """Bytes in the system's buffer."""
        self._demand()
        self._clock.behind_ns = None
        return self._look() if self._seen is None else self._seen

    def read(self, size: int) -> bytes:
        """Return what is there; the time-out has passed if nothing is.

        The first read of a slow thread returns what the system saw. The thread was slow either before it returned, or behind
        its next question, of which the answer is what was left then.
        """
        self._demand()
        there = self._look() if self._seen is None else self._seen
        # The microsecond decides which, as a coin that needs no chance of its own.
        is_slow_later = self._seen is not None and self._clock.behind_ns is not None and self._seen_ns // 1000 % 2
        self._clock.behind_ns = self._seen_ns if is_slow_later else None
        data, left = bytearray(), min(size, there)
        self._seen = there - left if is_slow_later else None
        while left:
            piece, begin = self._pieces.popleft()
            some = piece.data[begin : begin + left]
            data += some
            left -= len(some)
            if begin + len(some) < len(piece.data):
                self._pieces.appendleft((piece, begin + len(some)))
        return bytes(data)

    def write(self, data: bytes) -> int:
        """Send to the reader."""
        self._demand()
        self._reader.feed(data, self._clock.true_us)
        return len(data)

    def cancel_read(self) -> None:
        """Nobody waits."""

    def close(self) -> None:
        """The reader goes on."""

    def _note(self, what: str) -> None:
        self.history.append(Happened(self._clock.true_us, what))

    def _demand(self) -> None:
        if self._is_gone:
            self._seen = None
            raise OSError(errno.EIO, "the device was unplugged")

    def _look(self) -> int:
        for piece in self._reader.due(self._clock.true_us):
            if self._is_gone:
                self._lose(piece)
                continue
            if piece.sighting is not None and _says_nothing(piece, piece.sighting):
                self.damaged.add(piece.sighting)
                self.lost.add(piece.sighting)
            elif piece.sighting is not None and self._is_cut:
                self.lost.add(piece.sighting)
            self._is_cut = self._is_cut and not piece.ends_frame
            self._pieces.append((piece, 0))
        return sum(len(piece.data) - begin for piece, begin in self._pieces)

    def _lose(self, piece: Piece) -> None:
        """Nobody can read this piece any more; its frame is of no use without it."""
        self._is_cut = not piece.ends_frame
        if piece.sighting is not None:
            self.lost.add(piece.sighting)


def _says_nothing(piece: Piece, sighting: Sighting) -> bool:
    """True for damage; but a changed case of a digit changes nothing."""
    key = sighting.key
    return bool(piece.damaged) and piece.data.upper() != em4100.encode(int(key[:2], 16), int(key[2:], 16))


async def _turn_of_the_processor() -> None:
    process = running()
    late_s = process.delay_s(disk=False) if process is not None else 0.0
    if late_s:
        await asyncio.sleep(late_s)


class ReaderTask(ReaderThread):
    """The agent's thread of one reader, as a task. line: its device; poll_ms: time-out of a read.

    Where the thread would wait until the agent takes what it has read, the task reads no more before that.
    """

    def __init__(self, line: SerialLine, clock: VirtualTime, poll_ms: int, *args: Any) -> None:
        reader, site, gateway, host_us, sample, deliver = args
        self._unhanded: deque[Batch] = deque()
        self._hand = deliver
        super().__init__(reader, site, gateway, host_us, sample, self._unhanded.append, open_port=self._opened)
        self._line, self._virtual, self._poll_ms = line, clock, poll_ms
        self._turns = self.turns()

    @property
    def holds(self) -> bool:
        """True while there is something that the agent had no room for."""
        return super().holds or bool(self._unhanded)

    def start(self) -> None:
        asyncio.get_running_loop().create_task(self._work())

    def join(self, timeout: float | None = None) -> None:
        """Read what has come, as the thread does before it ends; the task finds nothing left to do."""
        self._virtual.behind_ns = None
        while self._hand_over() and next(self._turns, None) is not None:
            pass
        self._hand_over()

    def _opened(self, reader: ReaderConfig) -> Port:
        self._line.open()
        return Port(self._line, reader.port, time.monotonic_ns, time.monotonic_ns(), poll_ms=self._poll_ms)

    async def _work(self) -> None:
        while True:
            pause_s = next(self._turns, None)
            self._virtual.behind_ns = None
            while not self._hand_over():
                await asyncio.sleep(ROOM_S)
            if pause_s is None:
                return
            if pause_s:
                await asyncio.sleep(pause_s)
                continue
            began_ns = self._virtual.now_ns
            await self._line.wait(self._poll_ms / 1000)
            await _turn_of_the_processor()
            self._line.look()
            await _turn_of_the_processor()
            self._virtual.behind_ns = began_ns

    def _hand_over(self) -> bool:
        """Hand what was read to the agent; False if the thread would wait for room."""
        while self._unhanded:
            Room.got = 0
            try:
                self._hand(self._unhanded[0])
            except Full:
                return False
            self._unhanded.popleft()
        return True
