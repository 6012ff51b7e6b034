"""Plays a trace out of a port with its recorded timing, in place of the reader.

`play` takes the due bytes from a `Player` and writes them to a far end: a serial port that a program has open at its
other end, or a new pseudo-terminal that a program opens like a device. Nothing is sent early; the largest delay is
reported. A full far end holds the replay up, so nothing is lost; a pseudo-terminal that its program has closed loses
bytes like a wire, and counts them.
"""

import errno
import fcntl
import os
import select
import struct
import termios
import threading
import time
import tty
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from whenabouts_edge.readers.port import Port
from whenabouts_edge.trace.player import BUFFER_BYTES_MAX, Player

LOOK_S = 0.1  # longest time between checks for a stop
ANSWER_POLL_MS = 5  # polling period of a port with answers; due bytes are late by at most this
# The last step of opening a port empties its buffer; bytes sent earlier are lost.
SETTLE_S = 0.3

Ending = Literal["end of trace", "stopped"]


class FarEnd(Protocol):
    """Destination of the bytes, and source of a program's answers."""

    lost_bytes: int

    def ready(self) -> bool:
        """True if a program may be there to receive."""

    def write(self, data: bytes) -> int:
        """Write as many of the bytes as the far end takes; return their number."""

    def wait(self, timeout_s: float) -> bytes:
        """Wait up to timeout_s for bytes of the program."""

    def drained(self) -> bool:
        """True if the program has read everything."""


@dataclass(frozen=True, slots=True)
class Played:
    """Result of a replay; late_us_max: largest delay of bytes behind their recorded time."""

    ended: Ending
    records: int
    sent_bytes: int
    lost_bytes: int
    received_bytes: int
    mismatches: int
    errors: int
    late_us_max: int


def play(make: Callable[[int], Player], far: FarEnd, stopped: threading.Event) -> Played:
    """Play until the trace is over and read, or `stopped` is set. make: returns a player that begins at the given
    moment.

    Raises:
        OSError, PortError: the far end failed.
        TraceError: the trace is damaged.
    """
    while not far.ready() and not stopped.wait(LOOK_S):
        pass
    player = make(time.monotonic_ns())
    sent = received = errors = late_ns = 0
    held: bytes = b""
    while not stopped.is_set() and not (player.finished and not held):
        now_ns = time.monotonic_ns()
        due_ns = player.next_due_ns()
        player.advance(now_ns)
        if not held:
            held = player.take(BUFFER_BYTES_MAX)
            if held and due_ns is not None:
                late_ns = max(late_ns, now_ns - due_ns)
        if held:
            taken = far.write(held)
            sent += taken
            held = held[taken:]
        elif player.take_error() is not None:
            errors += 1
            continue
        answer = far.wait(_pause_s(player, held))
        if answer:
            received += len(answer)
            player.wrote(answer, time.monotonic_ns())
    while not stopped.is_set() and not far.drained():
        stopped.wait(LOOK_S / 10)
    ended: Ending = "stopped" if stopped.is_set() else "end of trace"
    return Played(
        ended, player.records_played, sent, far.lost_bytes, received, player.mismatches, errors, late_ns // 1000
    )


def _pause_s(player: Player, held: bytes) -> float:
    due_ns = player.next_due_ns()
    if held:
        return LOOK_S / 10  # the far end is full
    return LOOK_S if due_ns is None else min(LOOK_S, max(0.0, (due_ns - time.monotonic_ns()) / 1e9))


class PortEnd:
    """An open serial port, which takes everything. listen: True if answers matter."""

    def __init__(self, port: Port, listen: bool, stopped: threading.Event) -> None:
        self._port, self._listen, self._stopped = port, listen, stopped
        self.lost_bytes = 0

    def ready(self) -> bool:
        return True

    def write(self, data: bytes) -> int:
        self._port.write(data)
        return len(data)

    def wait(self, timeout_s: float) -> bytes:
        if not self._listen:
            self._stopped.wait(timeout_s)
            return b""
        until_s = time.monotonic() + timeout_s
        while not self._stopped.is_set():
            chunk = self._port.read()
            if chunk is not None:
                return chunk.data
            if time.monotonic() >= until_s:
                break
        return b""

    def drained(self) -> bool:
        return True


class PtyEnd:
    """A pseudo-terminal, reachable through the symbolic link `path` until closed; ready when a program has opened it.

    Raises:
        FileExistsError: `path` exists already.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lost_bytes = 0
        self._opened_s: float | None = None
        self._master, slave = os.openpty()
        try:
            tty.setraw(slave)
            self._device = os.ttyname(slave)
            os.set_blocking(self._master, False)
            path.symlink_to(self._device)
        except BaseException:
            os.close(self._master)
            raise
        finally:
            os.close(slave)  # else the terminal always counts as open

    def close(self) -> None:
        """Remove the terminal; a program that has it open sees the port vanish."""
        if self.path.is_symlink() and os.readlink(self.path) == self._device:
            self.path.unlink()
        os.close(self._master)

    def ready(self) -> bool:
        if not self._is_open():
            self._opened_s = None
        elif self._opened_s is None:
            self._opened_s = time.monotonic()
        return self._opened_s is not None and time.monotonic() - self._opened_s >= SETTLE_S

    def write(self, data: bytes) -> int:
        if not self._is_open():
            self.lost_bytes += len(data)
            return len(data)
        try:
            return os.write(self._master, data)
        except BlockingIOError:
            return 0

    def wait(self, timeout_s: float) -> bytes:
        poll = select.poll()
        poll.register(self._master, select.POLLIN)
        events = poll.poll(timeout_s * 1000)
        if events and events[0][1] & select.POLLIN:
            try:
                return os.read(self._master, BUFFER_BYTES_MAX)
            except OSError as error:
                if error.errno != errno.EIO:  # closed at this moment
                    raise
        elif events:
            time.sleep(timeout_s)  # nobody has it open: poll returns at once
        return b""

    def drained(self) -> bool:
        if not self._is_open():
            return True
        slave = os.open(self._device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            return bool(struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, bytes(4)))[0] == 0)
        finally:
            os.close(slave)

    def _is_open(self) -> bool:
        poll = select.poll()
        poll.register(self._master, 0)
        return not any(events & select.POLLHUP for _, events in poll.poll(0))
