"""Plays a trace out of a port: the other end of what `capture` recorded, with its timing.

`play` asks a `Player` what is due and hands it to a far end: a serial port, whose other side a program has open, or a new
pseudo-terminal that one opens like a device. Nothing is sent before its time; how late the latest bytes were is told. A far
end that takes no more holds the replay up, so nothing is lost; a pseudo-terminal that its program has closed loses bytes as
a wire would, which is counted.
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

LOOK_S = 0.1  # at most so long between looks at whether to stop
ANSWER_POLL_MS = 5  # a port that is listened to is asked so often; what is due meanwhile is as late at most
# A program that opens a port empties its buffer as the last step of opening it; what is sent before that is lost.
SETTLE_S = 0.3

Ending = Literal["end of trace", "stopped"]


class FarEnd(Protocol):
    """Where the bytes go, and where a program's answers come from."""

    lost_bytes: int

    def ready(self) -> bool:
        """Whether a program can be there to receive."""

    def write(self, data: bytes) -> int:
        """Hand over as many of the bytes as it takes; how many that were."""

    def wait(self, timeout_s: float) -> bytes:
        """Up to timeout_s, for bytes of the program."""

    def drained(self) -> bool:
        """Whether the program has read everything."""


@dataclass(frozen=True, slots=True)
class Played:
    """How a replay went; late_us_max: by how much the latest bytes missed their time."""

    ended: Ending
    records: int
    sent_bytes: int
    lost_bytes: int
    received_bytes: int
    mismatches: int
    errors: int
    late_us_max: int


def play(make: Callable[[int], Player], far: FarEnd, stopped: threading.Event) -> Played:
    """Play until the trace is over and read, or `stopped` is set. make: the player that begins at a moment.

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
    """An open serial port, which takes everything. listen: whether what comes back matters."""

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
    """A pseudo-terminal whose device the symbolic link `path` names, until closed; ready when a program has opened it.

    Raises:
        FileExistsError: something is at that path.
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
            os.close(slave)  # the terminal says that nobody has it open only if this process has not

    def close(self) -> None:
        """Take it away; a program that has it open sees the port vanish."""
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
                if error.errno != errno.EIO:  # closed in this very moment
                    raise
        elif events:
            time.sleep(timeout_s)  # nobody has it open, which poll tells at once
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
