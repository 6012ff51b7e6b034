"""Opens a serial port and reads chunks whose arrival is bounded on both sides.

A stamp is only as good as the bounds on arrival. The return of read() bounds it from above; the last moment at which
the host's buffer was known to be empty bounds it from below. Two operations give that knowledge: asking `in_waiting`
and then reading all the counted bytes (later bytes arrived after the question), and a read that timed out (the kernel
checks once more when the time-out expires and finds nothing).

"The host's buffer" is the buffer that `in_waiting` counts. Time a byte spends before that, in a USB adapter (16 ms in
an FTDI without low-latency mode) or in a driver's queue, belongs to the reader's device window, not to the chunk.

The clock passed in must be the one that paces time-outs: `time.monotonic_ns`. Cost: three clock calls and one ioctl a
chunk.
"""

import contextlib
import errno
import grp
import os
import termios
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import serial
import serial.tools.list_ports

from whenabouts_edge import serial_handlers

POLL_MS = 20
"""Default time-out of one read: the largest age of the lower bound of a chunk after silence."""

CHUNK_BYTES_MAX = 4096
"""Longest chunk, one tty buffer. Further bytes form the next chunk with the same lower bound: still true, only wider."""

WRITE_TIMEOUT_S = 5.0
"""A write that takes longer (flow control held by the device) is a PortError instead of a hung agent."""

EARLY_READS_MAX = 50
"""This many reads in a row that return nothing well before their time-out mean that the device is at its end; fewer are
cancelled reads."""

_DEVICE_ERRORS = (OSError, termios.error)  # SerialException is an OSError, termios.error is not


class PortError(Exception):
    """A port cannot be opened, or was lost. The text names the port, what was found and what to do."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes from one read of the port.

    The first byte cannot have reached the host's buffer before `after_ns`; all of them had by `before_ns`. Monotonic
    nanoseconds.
    """

    data: bytes
    after_ns: int
    before_ns: int


@dataclass(frozen=True, slots=True)
class Sent:
    """Entry and return time of a write, monotonic nanoseconds. Returning means passed to the driver, not sent over the
    wire.
    """

    entry_ns: int
    return_ns: int


class SerialLike(Protocol):
    """The part of pyserial's Serial that Port uses."""

    timeout: float | None

    @property
    def in_waiting(self) -> int: ...
    def read(self, size: int, /) -> bytes: ...
    def write(self, data: bytes, /) -> int | None: ...
    def cancel_read(self) -> None: ...
    def close(self) -> None: ...


class ReaderPort(Protocol):
    """What the thread of a reader needs of a port, whatever is behind it."""

    @property
    def replay_start_ns(self) -> int | None: ...
    @property
    def replay_finished(self) -> bool: ...
    @property
    def empty_ns(self) -> int: ...
    @property
    def left_out(self) -> int: ...
    @property
    def has_ready(self) -> bool: ...
    def read(self) -> Chunk | None: ...
    def write(self, data: bytes, /) -> Sent: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Port:
    """Reads an open pyserial object as chunks.

    Args:
        device: the open object; its time-out is set to the poll period.
        name: name of the port in errors.
        monotonic_ns: the clock that also paces the object's time-outs.
        opened_ns: a moment before the port was opened, or before its buffer was emptied.
        poll_ms: time-out of one read, more than 0.
        waiting_exact: True if `in_waiting` counts bytes. socket:// only gives 0 or 1; then only a 0 shows that the
            buffer is empty.
        notes: modes that were tried at opening and are not supported, for the log.
    """

    left_out = 0  # of an open line every byte is read
    has_ready = False  # it keeps no chunk

    def __init__(
        self,
        device: SerialLike,
        name: str,
        monotonic_ns: Callable[[], int],
        opened_ns: int,
        *,
        poll_ms: int = POLL_MS,
        waiting_exact: bool = True,
        notes: tuple[str, ...] = (),
    ) -> None:
        if poll_ms <= 0:
            raise ValueError(f"port {name}: poll period {poll_ms} ms, expected more than 0")
        self.name = name
        self.notes = notes
        self._device = device
        self._monotonic_ns = monotonic_ns
        self._empty_ns = opened_ns
        self._poll_ns = poll_ms * 1_000_000
        self._waiting_exact = waiting_exact
        self._early_reads = 0
        self._closed = False
        self._reading = threading.RLock()  # reentrant: a signal handler may close during a read
        if device.timeout != poll_ms / 1000:  # setting it configures the port again, which some drivers refuse
            device.timeout = poll_ms / 1000

    @property
    def empty_ns(self) -> int:
        """The last moment at which the host's buffer is known to have been empty."""
        return self._empty_ns

    @property
    def replay_start_ns(self) -> int | None:
        """The start of the replay of a replay:// port; None for a device."""
        start_ns: int | None = getattr(self._device, "replay_start_ns", None)
        return start_ns

    @property
    def replay_finished(self) -> bool:
        """True if a replay:// port has given its last byte; always False for a device."""
        return bool(getattr(self._device, "replay_finished", False))

    def read(self) -> Chunk | None:
        """The next chunk, or None when a poll period passed without a byte.

        Raises:
            PortError: the device vanished, was closed, or is at its end. Every later read raises too.
        """
        with self._reading, self._errors():
            entry_ns = self._monotonic_ns()
            first = self._device.read(1)
            if not first:
                self._note_silence(entry_ns, self._monotonic_ns())
                return None
            self._early_reads = 0
            return self._read_waiting(first)

    def write(self, data: bytes) -> Sent:
        """Hands the bytes to the driver.

        Raises:
            PortError: the device vanished, was closed, or took longer than the write time-out.
        """
        with self._errors():
            entry_ns = self._monotonic_ns()
            self._device.write(data)
            return Sent(entry_ns, self._monotonic_ns())

    def cancel(self) -> None:
        """Makes a read that another thread waits in return None at once, if the port type supports it."""
        with contextlib.suppress(
            AttributeError, TypeError, *_DEVICE_ERRORS
        ):  # TypeError: pyserial, closed in the meantime
            self._device.cancel_read()

    def close(self) -> None:
        """Closes the device, also during a read of another thread; no error if the device has vanished."""
        self._closed = True
        self.cancel()
        with self._reading, contextlib.suppress(*_DEVICE_ERRORS):  # never closes the descriptor during a read
            self._device.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        if self._closed:
            raise PortError(_lost_text(self.name, "the port was closed"))
        try:
            yield
        except _DEVICE_ERRORS as error:
            raise PortError(_lost_text(self.name, str(error))) from error
        except (TypeError, ValueError) as error:
            if not self._closed:
                raise
            # pyserial raises these when it is closed during a call.
            raise PortError(_lost_text(self.name, "the port was closed")) from error

    def _read_waiting(self, first: bytes) -> Chunk:
        after_ns = self._empty_ns
        data = bytearray(first)
        while True:
            asked_ns = self._monotonic_ns()
            waiting = self._device.in_waiting
            if waiting == 0:
                self._empty_ns = before_ns = asked_ns
                break
            room = CHUNK_BYTES_MAX - len(data)
            data += self._device.read(min(waiting, room))
            before_ns = self._monotonic_ns()
            if waiting >= room:
                break  # more may wait: the buffer was not empty
            if self._waiting_exact:
                self._empty_ns = asked_ns
                break
        return Chunk(bytes(data), after_ns, before_ns)

    def _note_silence(self, entry_ns: int, return_ns: int) -> None:
        expiry_ns = entry_ns + self._poll_ns
        if return_ns >= expiry_ns:
            self._empty_ns = expiry_ns
            self._early_reads = 0
        elif 2 * (return_ns - entry_ns) < self._poll_ns:
            self._early_reads += 1
            if self._early_reads > EARLY_READS_MAX:
                self._early_reads = EARLY_READS_MAX
                problem = f"more than {EARLY_READS_MAX} reads in a row returned nothing without waiting"
                raise PortError(_lost_text(self.name, problem))


def open_port(
    url: str,
    baud: int,
    *,
    bytesize: int = 8,
    parity: str = "N",
    stopbits: float = 1,
    poll_ms: int = POLL_MS,
    monotonic_ns: Callable[[], int] = time.monotonic_ns,
) -> Port:
    """Opens a device path or any pyserial URL, `replay://` included.

    A native port is locked against other programs and put into low-latency mode; if a driver has no such mode,
    Port.notes names it.

    Raises:
        PortError: there is no such port, no permission, another program has it, or URL and settings are not understood.
    """
    serial_handlers.register()
    opened_ns = monotonic_ns()
    try:
        device: Any = serial.serial_for_url(
            url,
            baudrate=baud,
            bytesize=bytesize,
            parity=parity,
            stopbits=stopbits,
            timeout=poll_ms / 1000,
            write_timeout=WRITE_TIMEOUT_S,
            exclusive=True,
        )
    except (*_DEVICE_ERRORS, ValueError) as error:
        raise PortError(_open_text(url, error)) from error
    notes = () if "://" in url else _low_latency(device)
    exact = not url.lower().startswith("socket://")
    return Port(device, url, monotonic_ns, opened_ns, poll_ms=poll_ms, waiting_exact=exact, notes=notes)


def device_of(url: str) -> tuple[int, str] | None:
    """The current device of a path, as (number, name); None for a URL, or if there is none.

    Links of /dev/serial/by-id vanish when a device is unplugged, and lead elsewhere when it comes back under another
    name.
    """
    if "://" in url:
        return None
    try:
        return os.stat(url).st_rdev, os.path.realpath(url)
    except OSError:
        return None


def _low_latency(device: Any) -> tuple[str, ...]:
    try:
        device.set_low_latency_mode(True)
    except Exception as error:  # the port works without it
        return (f"no low-latency mode: {error}",)
    return ()


def _lost_text(name: str, problem: str) -> str:
    return f"port {name}: {problem}; expected an open device; check plug and power, then open it again"


def _open_text(url: str, error: Exception) -> str:
    code = getattr(error, "errno", None)
    if code == errno.ENOENT and "://" not in url:
        ports = ", ".join(sorted(port.device for port in serial.tools.list_ports.comports())) or "none"
        advice = "plug the reader in or name one of these or of /dev/serial/by-id"
        return f"port {url}: no such port; serial ports found: {ports}; {advice}"
    if code in (errno.EACCES, errno.EPERM):
        group = _group_of(url)
        advice = f"run `sudo usermod -aG {group} $USER` and log in again"
        return f"port {url}: no permission, expected membership of group {group}; {advice}"
    if code in (errno.EBUSY, errno.EAGAIN):
        advice = f"see which with `fuser -v {url}` (often ModemManager or a terminal) and end it"
        return f"port {url}: busy, another program has it open; {advice}"
    expected = "a serial device or a pyserial URL (replay://, socket://, ...)"
    return f"port {url}: {error}; expected {expected}; check name and settings"


def _group_of(path: str) -> str:
    """The group that may use the device: dialout on Debian, uucp elsewhere; for devices of group root the default
    group.
    """
    try:
        name = grp.getgrgid(os.stat(path).st_gid).gr_name
    except (OSError, KeyError):
        return "dialout"
    return "dialout" if name == "root" else name
