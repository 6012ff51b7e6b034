"""`replay://PATH?speed=...&end=...&match=tx`: a trace that looks like a serial port to any pyserial program.

    replay:///var/lib/whenabouts/dock.trace?speed=10      absolute path
    replay://captures/dock.trace?end=loop                 path relative to the working directory

PATH  a file in any format of `trace`; write %3F for a question mark and %25 for a percent sign in it.
speed a positive decimal number, 10 plays ten times as fast (default 1); `max` leaves no time between records.
end   effect of a read after the last byte: `block` (default) waits like a silent device,
      `empty` returns b"" at once like the end of a file,
      `disconnect` raises SerialException("device disconnected"), `loop` begins again.
match `tx`: the data after a write in the trace comes only after the program has written the same bytes,
      with the recorded delay.

The trace starts when the port is opened, with an empty buffer; closing and opening starts it again. A recorded error
is raised once, by the read that reaches it. Port settings and modem lines are accepted and change nothing.
`trace.player` decides which bytes are available when.

Attributes in addition to pyserial's: `replay_records_total` (None while the trace is too long to count at opening),
`replay_records_played`, `replay_finished` (everything played and read), `replay_mismatches` and
`replay_last_mismatch` (expected, written) for match=tx. One thread may read while another writes. Cost: one lock a
call.
"""

import errno
import threading
import time
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, unquote

from serial import PortNotOpenError, SerialBase, SerialException

from whenabouts_edge.trace.format import TraceError
from whenabouts_edge.trace.player import Player
from whenabouts_edge.trace.reader import Trace, open_trace

COUNT_BYTES_MAX = 8 * 1024 * 1024
"""Traces up to this size are read through at opening to count their records; longer ones would delay the opening by
seconds."""

End = Literal["block", "empty", "disconnect", "loop"]
_ENDS = ("block", "empty", "disconnect", "loop")
_FORM = "replay://PATH[?speed=NUMBER|max][&end=block|empty|disconnect|loop][&match=tx]"


@dataclass(frozen=True, slots=True)
class ReplayUrl:
    """The parts of a replay:// URL; `speed` is None for max."""

    path: Path
    speed: Decimal | None = Decimal(1)
    end: End = "block"
    match_tx: bool = False


def parse_url(url: str) -> ReplayUrl:
    """The parts of a replay:// URL.

    Raises:
        ValueError: an unknown key or a value out of range; the text names the allowed ones.
    """
    scheme, separator, rest = url.partition("://")
    path, _, query = rest.partition("?")
    if scheme.lower() != "replay" or not separator or not path:
        raise ValueError(f"found {url!r}, expected {_FORM}")
    given: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in ("speed", "end", "match"):
            raise ValueError(f"{url}: found key {key!r}, expected speed, end or match")
        if key in given:
            raise ValueError(f"{url}: found key {key!r} twice, expected it once")
        given[key] = value
    end = given.get("end", "block")
    if end not in _ENDS:
        raise ValueError(f"{url}: found end={end}, expected {', '.join(_ENDS[:-1])} or {_ENDS[-1]}")
    match = given.get("match")
    if match not in (None, "tx"):
        raise ValueError(f"{url}: found match={match}, expected tx")
    try:
        speed = speed_of(given.get("speed", "1"))
    except ValueError as error:
        raise ValueError(f"{url}: {error}") from None
    return ReplayUrl(Path(unquote(path)), speed, cast(End, end), match == "tx")


def speed_of(text: str) -> Decimal | None:
    """The speed in a text, None for max.

    Raises:
        ValueError: it is not a number in the allowed range.
    """
    if text == "max":
        return None
    try:
        speed = Decimal(text)
    except InvalidOperation:
        speed = Decimal(0)
    if not speed.is_finite() or not Decimal("1e-6") <= speed <= Decimal("1e6"):
        raise ValueError(f"found speed={text}, expected a number from 0.000001 to 1000000, or max")
    return speed


class Serial(SerialBase):  # type: ignore[misc]  # pyserial has no type information
    """The port behind a replay:// URL; see the head of this module."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.is_open: bool
        self._changed = threading.Condition()
        self._player: Player | None = None
        self._end: End = "block"
        self._cancelled = False
        self.replay_records_total: int | None = None
        self.replay_start_ns: int | None = None  # start of the replay, monotonic
        super().__init__(*args, **kwargs)

    def open(self) -> None:
        """Starts the trace.

        Raises:
            ValueError: the URL is wrong.
            SerialException: the file cannot be read or is not a trace.
        """
        if self._port is None:
            raise SerialException("Port must be configured before it can be used.")
        if self.is_open:
            raise SerialException("Port is already open.")
        wanted = parse_url(self._port)
        try:
            trace = open_trace(wanted.path)
            self.replay_records_total = _count(trace)
            self.replay_start_ns = time.monotonic_ns()
            player = Player(
                trace.records,
                self.replay_start_ns,
                speed=wanted.speed,
                match_tx=wanted.match_tx,
                loop=wanted.end == "loop",
            )
        except OSError as error:
            raise SerialException(
                error.errno or errno.EIO, f"could not open trace {wanted.path}: {error.strerror or error}"
            ) from error
        except TraceError as error:
            raise SerialException(f"could not open trace: {error}") from error
        with self._changed:
            self._player, self._end, self._cancelled = player, wanted.end, False
            self.is_open = True

    def close(self) -> None:
        """Ends the replay; a read that waits in another thread returns the bytes it has."""
        with self._changed:
            self.is_open = False
            self._changed.notify_all()

    @property
    def replay_records_played(self) -> int:
        """Records of the trace that have been played, over all passes."""
        return self._player.records_played if self._player is not None else 0

    @property
    def replay_finished(self) -> bool:
        """True if every record has been played and every byte read; never with end=loop."""
        with self._changed:
            if self.is_open:
                self._playing()
            return self._player is not None and self._player.finished

    @property
    def replay_mismatches(self) -> int:
        """Number of writes that differ from the trace at that place (match=tx)."""
        return self._player.mismatches if self._player is not None else 0

    @property
    def replay_last_mismatch(self) -> tuple[bytes, bytes] | None:
        """(expected, written) of the latest mismatch; nothing is expected after the end."""
        return self._player.last_mismatch if self._player is not None else None

    @property
    def in_waiting(self) -> int:
        """Bytes that can be read now."""
        with self._changed:
            player = self._playing()
            if player.finished and self._end == "disconnect":
                raise SerialException("device disconnected")
            return player.waiting_bytes

    @property
    def out_waiting(self) -> int:
        """Always 0: written bytes are sent at once."""
        return 0

    def read(self, size: int = 1) -> bytes:
        """Up to `size` bytes, within pyserial's time-out.

        Raises:
            SerialException: a recorded error, or the end with end=disconnect; bytes before it are returned first.
        """
        deadline_ns = None if self._timeout is None else time.monotonic_ns() + int(self._timeout * 1_000_000_000)
        data = bytearray()
        with self._changed:
            self._playing()
            while len(data) < size and self.is_open:
                now_ns = time.monotonic_ns()  # before playing: if it is past the deadline, nothing came by then
                player = self._playing()
                data += player.take(size - len(data))
                if len(data) == size or self._at_end(player, data) or self._cancelled:
                    break
                if deadline_ns is not None and now_ns >= deadline_ns:
                    break
                moments_ns = [moment for moment in (deadline_ns, player.next_due_ns()) if moment is not None]
                self._changed.wait(max(0, min(moments_ns) - now_ns) / 1e9 if moments_ns else None)
            self._cancelled = False
        return bytes(data)

    def write(self, data: Any) -> int:
        """Takes the bytes; with match=tx they release the data after them in the trace."""
        written = bytes(data)
        with self._changed:
            player = self._playing()
            if player.finished and self._end == "disconnect":
                raise SerialException("device disconnected")
            try:
                player.wrote(written, time.monotonic_ns())
            except (OSError, TraceError) as error:
                raise SerialException(f"replay failed: {error}") from error
            self._changed.notify_all()
        return len(written)

    def flush(self) -> None:
        """Does nothing: no bytes wait to be sent."""

    def reset_input_buffer(self) -> None:
        """Drops the bytes that could be read now."""
        with self._changed:
            player = self._playing()
            player.take(player.waiting_bytes)

    def reset_output_buffer(self) -> None:
        """Does nothing: no bytes wait to be sent."""
        with self._changed:
            self._playing()

    def cancel_read(self) -> None:
        """Makes a waiting read, or else the next one, return the bytes it has."""
        with self._changed:
            self._cancelled = True
            self._changed.notify_all()

    def cancel_write(self) -> None:
        """Does nothing: writes never wait."""

    @property
    def cts(self) -> bool:
        """Clear To Send: set."""
        return True

    @property
    def dsr(self) -> bool:
        """Data Set Ready: set."""
        return True

    @property
    def ri(self) -> bool:
        """Ring Indicator: not set."""
        return False

    @property
    def cd(self) -> bool:
        """Carrier Detect: set."""
        return True

    def _reconfigure_port(self, force_update: bool = False) -> None:
        """Does nothing: a trace was taken with its own settings."""

    def _update_break_state(self) -> None:
        pass

    def _update_rts_state(self) -> None:
        pass

    def _update_dtr_state(self) -> None:
        pass

    def _playing(self) -> Player:
        """The player, after playing all due records; call it with the lock held."""
        if not self.is_open or self._player is None:
            raise PortNotOpenError()
        try:
            self._player.advance(time.monotonic_ns())
        except (OSError, TraceError) as error:
            raise SerialException(f"replay failed: {error}") from error
        return self._player

    def _at_end(self, player: Player, data: bytearray) -> bool:
        """True if waiting longer is pointless; raises a pending error when no bytes come before it."""
        if not data and (error := player.take_error()) is not None:
            raise SerialException(error)
        if data and player.holds_error:
            return True
        if not player.finished or self._end in ("block", "loop"):
            return False
        if self._end == "disconnect" and not data:
            raise SerialException("device disconnected")
        return True


def _count(trace: Trace) -> int | None:
    if trace.path.stat().st_size > COUNT_BYTES_MAX:
        return None
    return sum(1 for _ in trace.records())
