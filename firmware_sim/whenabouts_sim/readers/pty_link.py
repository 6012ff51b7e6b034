"""A simulated reader on a serial port: runs a firmware core behind a pseudo-terminal, in real time.

The agent opens `path`, a symbolic link that stays the same when the reader is unplugged and plugged in again, with
plain pyserial. True time comes from a `SimClock`, so a world can run faster than the wall.
Like a UART, the link never waits for its host: bytes that do not fit into the kernel's input buffer are lost and counted.
A record or keep-alive that this process cannot deliver within the latency of reader and adapter is withheld and counted
("late"): delivered late it would give sightings wrong times, which would look like a fault of the agent.
Unlike a UART, a pseudo-terminal keeps bytes that arrive while the agent has the port closed; pyserial discards them on open.
Each link has one thread; it sleeps until the host writes or the core has something to send.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TextIO

from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.wire import Piece
from whenabouts_sim.world.clocks import SimClock
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.world import Sighting

# The Linux tty layer holds this many unread bytes, for a real serial port as for a pseudo-terminal.
HOST_BUFFER_BYTES = 4095
HOST_READ_BYTES = 4096
# An idle thread wakes up after this time, so that a stopped link always ends.
IDLE_S_MAX = 1.0


class PtyLink:
    """Runs `core` behind the port `path`; `emitted` grows as frames leave, and so does the file `log` if given.

    Counters: `overruns` and `late` (frames lost to the host, see above), `late_us_max` (worst delay of this process).
    """

    def __init__(self, core: ReaderCore, clock: SimClock, path: Path, log: Path | None = None) -> None:
        self.core = core
        self.path = path
        self.emitted: list[EmittedFrame] = []
        self.overruns = 0
        self.late = 0
        self.late_us_max = 0
        self.started_by_host = threading.Event()
        self._clock = clock
        self._log_path = log
        self._log: TextIO | None = None
        self._master: int | None = None
        self._slave: int | None = None
        self._frame_hurt = ""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name=f"reader {core.name}", daemon=True)

    def __enter__(self) -> PtyLink:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Plugs the reader in and begins to serve it."""
        if self._log_path is not None:
            self._log = self._log_path.open("w", buffering=1)
        self.plug()
        self._thread.start()

    def go(self, sightings: Iterable[Sighting]) -> None:
        """Gives these sightings to the reader; those in the past are not seen."""
        mine = [sighting for sighting in sightings if sighting.reader == self.core.name]
        self._with_core(lambda now_us: self.core.load(mine, now_us))

    def brown_out(self) -> None:
        """Lets an M6e Nano reboot.

        Raises:
            TypeError: the reader is of another kind.
        """
        core = self.core
        if not isinstance(core, M6eNano):
            raise TypeError(f"brown-out: reader {core.name} is a {type(core).__name__}, expected an M6eNano")
        self._with_core(core.brown_out)

    def unplug(self) -> None:
        """Unplugs the reader: hosts that have the port open get an error or end of file; the path is removed."""
        with self._lock:
            if self._master is None or self._slave is None:
                return
            self.core.power_off(self._now_us())
            self.path.unlink(missing_ok=True)
            os.close(self._slave)
            os.close(self._master)
            self._master = self._slave = None
            self._frame_hurt = ""
            self.started_by_host.clear()
        self._wake()

    def plug(self) -> None:
        """Plugs the reader in under the same path; it comes up as after power on."""
        with self._lock:
            if self._master is not None:
                return
            master, slave = os.openpty()
            # Raw also while no agent has the port open: this end of the slave stays open, so that the port neither hangs
            # up nor falls back to echoing when the agent closes it.
            tty.setraw(slave)
            os.set_blocking(master, False)
            self._link_to(os.ttyname(slave))
            self._master, self._slave = master, slave
            self.core.power_on(self._now_us())
        self._wake()

    def stop(self) -> None:
        """Unplugs, ends the thread and closes the log."""
        self._stopping.set()
        self._wake()
        if self._thread.is_alive():
            self._thread.join()
        self.unplug()
        os.close(self._wake_read)
        os.close(self._wake_write)
        if self._log is not None:
            self._log.close()

    @property
    def unseen(self) -> int:
        """Number of sightings that the reader did not see."""
        return self.core.unseen

    def _now_us(self) -> int:
        return self._clock.true_us(time.monotonic_ns())

    def _link_to(self, device: str) -> None:
        """Points the path at the device, in one atomic step."""
        beside = self.path.with_name(self.path.name + ".new")
        beside.unlink(missing_ok=True)
        beside.symlink_to(device)
        beside.replace(self.path)

    def _with_core(self, action: Callable[[int], None]) -> None:
        with self._lock:
            action(self._now_us())
        self._wake()

    def _wake(self) -> None:
        os.write(self._wake_write, b"\0")

    def _run(self) -> None:
        while not self._stopping.is_set():
            with self._lock:
                timeout_s = self._serve()
                watched = [self._wake_read] if self._master is None else [self._wake_read, self._master]
            if self._wait(watched, timeout_s):
                os.read(self._wake_read, HOST_READ_BYTES)

    def _wait(self, watched: list[int], timeout_s: float) -> bool:
        """Sleeps until the host writes or another thread wakes this one; True for another thread."""
        try:
            readable, _, _ = select.select(watched, [], [], timeout_s)
        except OSError as error:
            if error.errno != errno.EBADF:  # unplugged in this very moment
                raise
            return False
        return self._wake_read in readable

    def _serve(self) -> float:
        """Reads from the host, sends the pieces that are due, and returns the seconds until the next one."""
        self._hear()
        for piece in self.core.due(self._now_us()):
            self._send(piece)
        next_us = self.core.next_us()
        if next_us is None:
            return IDLE_S_MAX
        wait_ns = self._clock.mono_ns(next_us) - time.monotonic_ns()
        return min(IDLE_S_MAX, max(0.0, wait_ns / 1e9))

    def _hear(self) -> None:
        if self._master is None:
            return
        try:
            data = os.read(self._master, HOST_READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return
        self.core.feed(data, self._now_us())
        if isinstance(self.core, M6eNano) and self.core.streaming:
            self.started_by_host.set()

    def _send(self, piece: Piece) -> None:
        now_us = self._now_us()
        self.late_us_max = max(self.late_us_max, now_us - piece.ready_us)
        if piece.latest_us is not None and now_us > piece.latest_us:
            self.late += self._frame_hurt != "late"
            self._frame_hurt = "late"
        elif not self._write(piece.data):
            self.overruns += not self._frame_hurt
            self._frame_hurt = self._frame_hurt or "overrun"
        if piece.ends_frame:
            if piece.sighting is not None:
                self._record(piece.sighting, now_us, piece.damaged or self._frame_hurt)
            self._frame_hurt = ""

    def _write(self, data: bytes) -> bool:
        """Writes bytes to the host's input buffer; False if some did not fit and are lost."""
        if self._master is None or self._slave is None:
            return False
        unread = struct.unpack("i", fcntl.ioctl(self._slave, termios.FIONREAD, b"\0" * 4))[0]
        fits = max(0, HOST_BUFFER_BYTES - unread)
        try:
            written = os.write(self._master, data[:fits]) if fits else 0
        except BlockingIOError:
            written = 0
        return written == len(data)

    def _record(self, sighting: Sighting, now_us: int, damaged: str) -> None:
        entry = EmittedFrame(sighting.reader, sighting.number, sighting.key, sighting.true_us, now_us, damaged)
        self.emitted.append(entry)
        if self._log is not None:
            self._log.write(entry.to_json() + "\n")
