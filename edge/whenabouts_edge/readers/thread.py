"""The thread that drives one reader's port: opens it, starts the reader, reads, and after a fault opens it again with
growing pauses. A dead reader does not affect other readers.
"""

import random
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from whenabouts_edge.backoff import Backoff
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import ReaderConfig
from whenabouts_edge.readers.host_session import Batch, HostSession
from whenabouts_edge.readers.opening import open_reader
from whenabouts_edge.readers.port import POLL_MS, PortError, ReaderPort, device_of
from whenabouts_protocol.logs import Log

MAX_WAITING = 2000  # readings between the ports and the spool

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Periods of a reader's thread.

    reopen_us: shortest and longest pause between attempts to open a port. clear_ns, closed_clear_ns: how often a silent
    port, and a closed one, reports that nothing came. steady_ns: after being open for this long, a lost port begins
    with the shortest pause. moved_ns: between checks whether the path of an open port leads to another device.
    """

    reopen_us: tuple[int, int] = (500_000, 30_000_000)
    clear_ns: int = 100_000_000
    closed_clear_ns: int = 500_000_000
    steady_ns: int = 10_000_000_000
    moved_ns: int = 1_000_000_000


@dataclass(slots=True)
class ReaderState:
    """Health of one reader, for status and heartbeat."""

    state: str = "opening"  # opening, reading, lost, finished (a replay at its end)
    problem: str = ""
    complaint: str = ""  # the last of the reader since its port was opened
    device: str = ""  # target of the port's path when it was last opened
    opened: int = 0
    failed: int = 0  # failed attempts and losses in a row
    opened_ns: int = 0  # monotonic, just before opening: nothing was read earlier; for a replay its start
    readings: int = 0
    restarts: int = 0
    invalid: int = 0  # input that makes no reading
    counters: dict[str, int] = field(default_factory=dict)

    def status(self) -> dict[str, Any]:
        """Values for the status file."""
        fields = asdict(self)
        counters: dict[str, int] = fields.pop("counters")
        return fields | counters


class ReaderThread(threading.Thread):
    """Keeps one port open and read; delivers its readings, in order, through `deliver`.

    reach_us: most that the event of a frame can be stamped before the arrival of its first byte. parts_us: longest parts
    of its stamps that do not come from the clock: latency, adapter, wire, time between two looks at the port.

    deliver(batch) blocks while the agent cannot take more: then the port is not read, and bytes beyond the kernel's
    buffer are lost, as they would be anyway. clock() returns the newest sample.
    """

    def __init__(
        self,
        reader: ReaderConfig,
        site: str,
        gateway: str,
        host_us: Callable[[int], int],
        clock: Callable[[], ClockSample],
        deliver: Callable[[Batch], None],
        pace: Pace = Pace(),
        open_port: Callable[[ReaderConfig], ReaderPort] = open_reader,
    ) -> None:
        super().__init__(name=f"reader-{reader.name}", daemon=True)
        self.reader = reader
        self.reader_state = ReaderState()
        self._place = site, gateway
        self._host_us, self._clock, self._deliver = host_us, clock, deliver
        session = HostSession(reader, site, gateway, host_us).session
        self.reach_us, self.parts_us = session.reach_us, (*session.parts_us, 1000 * POLL_MS)
        self._pace, self._open = pace, open_port
        self._stopping = threading.Event()
        self._holds = False

    @property
    def holds(self) -> bool:
        """True while it has taken something from its port that it has not handed over."""
        return self._holds

    def stop(self) -> None:
        """Ask the thread to end; it does within a poll period."""
        self._stopping.set()

    def run(self) -> None:
        for pause_s in self.turns():
            if pause_s:
                self._stopping.wait(pause_s)

    def turns(self) -> Iterator[float]:
        """The work of the thread in turns; yields the pause before each in seconds, 0 before a read, which waits itself."""
        backoff = Backoff(*self._pace.reopen_us)
        while not self._stopping.is_set():
            opening_ns = time.monotonic_ns()
            device = device_of(self.reader.port)
            try:
                with self._open(self.reader) as port:
                    device = device or device_of(self.reader.port)  # it appeared in between
                    self._say("reading", "")
                    self.reader_state.opened += 1
                    self.reader_state.device = device[1] if device else self.reader.port
                    self.reader_state.opened_ns = port.replay_start_ns or opening_ns
                    yield from self._read(port, device)
                    return
            except PortError as error:
                self._say("lost", str(error))
            except Exception as error:  # a bug triggered by one port's bytes must not stop the reader permanently
                log.exception(
                    "reader.fault",
                    "a fault in the agent; opens the port again; please report this",
                    reader=self.reader.name,
                )
                self._say("lost", f"fault in the agent: {error!r}")
            if time.monotonic_ns() - opening_ns > self._pace.steady_ns:
                backoff.reset()
            self.reader_state.failed += 1
            if (yield from self._pause(backoff.pause_us(random.getrandbits(8)), device)):
                backoff.reset()

    def _pause(self, pause_us: int, device: tuple[int, str] | None) -> Generator[float, None, bool]:
        """Wait with the port closed, and keep reporting that nothing comes: a dead reader must not hold the watermark
        back.

        Returns True early if the path leads to another device than the one that failed: a device was plugged in.
        """
        until_ns = time.monotonic_ns() + 1000 * pause_us
        while not self._stopping.is_set() and (now_ns := time.monotonic_ns()) < until_ns:
            now = device_of(self.reader.port)
            if now is not None and (device is None or now[0] != device[0]):
                return True
            device = now
            now_us = self._host_us(now_ns)
            self._deliver(Batch([], now_us, now_us, now_us))
            yield min(self._pace.closed_clear_ns, until_ns - now_ns) / 1e9
        return False

    def _check_moved(self, device: tuple[int, str] | None) -> None:
        """Raise PortError if the path leads to another device: the old one would stay open and silent forever."""
        now = device_of(self.reader.port)
        if device is not None and now is not None and now != device:
            raise PortError(
                f"port {self.reader.port}: leads to {now[0]} now, was opened as {device[0]}; opening it again"
            )

    def _read(self, port: ReaderPort, device: tuple[int, str] | None) -> Iterator[float]:
        begun_ns = time.monotonic_ns() if port.replay_start_ns is None else port.replay_start_ns
        host_session = HostSession(self.reader, *self._place, self._host_us, self._host_us(begun_ns))
        try:
            yield from self._converse(port, device, host_session)
        finally:  # before the port counts as clear: what was left out of a connection that ends
            clear_us = host_session.session.clear_us
            if gaps := host_session.gaps(self._clock()):
                self._deliver(Batch(gaps, clear_us, clear_us, clear_us))
            self._holds = False

    def _converse(self, port: ReaderPort, device: tuple[int, str] | None, host_session: HostSession) -> Iterator[float]:
        restarts, invalid = self.reader_state.restarts, self.reader_state.invalid
        reported_ns, opened_ns = 0, time.monotonic_ns()
        moved_ns = opened_ns
        dialogue = host_session.session.dialogue
        handed = host_session.batch([], host_session.session.clear_us)
        # What a port has ready is read to the end: its senders may have been told that it was taken.
        while not self._stopping.is_set() or port.has_ready or dialogue.end(self._host_us(time.monotonic_ns())):
            if (now_ns := time.monotonic_ns()) - moved_ns >= self._pace.moved_ns:
                moved_ns = now_ns
                self._check_moved(device)
                if now_ns - opened_ns > self._pace.steady_ns:
                    self.reader_state.failed = 0
            while command := dialogue.due(self._host_us(time.monotonic_ns())):
                port.write(command)
            if dialogue.fault:
                raise PortError(f"reader {self.reader.port}: {dialogue.fault}")
            self._holds = port.has_ready
            yield 0.0
            chunk = port.read()
            self._holds = chunk is not None
            now_ns = time.monotonic_ns()
            empty_us = self._host_us(port.empty_ns)
            if chunk is None:
                readings, good = host_session.silent(empty_us, self._clock())
            else:
                readings, good = host_session.take(chunk, self._clock())
            if good and self.reader_state.problem and self.reader_state.state == "reading":
                self._say("reading", "")
            if restarts + dialogue.restarts > self.reader_state.restarts:
                self.reader_state.restarts = restarts + dialogue.restarts
                host_session.since_us = max(host_session.since_us, self._host_us(now_ns))
                self._say(
                    "reading",
                    f"started again after no good frame; last complaint: {host_session.session.complaint or 'none'}",
                )
            if readings or now_ns - reported_ns >= self._pace.clear_ns:
                reported_ns = now_ns
                self.reader_state.readings += len(readings)
                self.reader_state.invalid = invalid + host_session.invalid
                left_out = port.left_out + host_session.left_out
                counters = host_session.session.counters | host_session.reader_clock.counters
                self.reader_state.counters = counters | {"left_out": left_out}
                self.reader_state.complaint = host_session.session.complaint
                batch = host_session.batch(readings, host_session.session.clear(empty_us))
                for part in batch.parts(MAX_WAITING // 2, handed):  # more than may wait would wait for itself
                    self._deliver(part)
                handed = batch
            if port.replay_finished and chunk is None and self.reader_state.state == "reading":
                self._say("finished", "the replay is at its end")

    def _say(self, state: str, problem: str) -> None:
        if (state, problem) != (self.reader_state.state, self.reader_state.problem):
            write = log.warning if state == "lost" or (problem and state == "reading") else log.info
            write(f"reader.{state}", problem, reader=self.reader.name)
        self.reader_state.state, self.reader_state.problem = state, problem
