"""Plays a trace against a clock: decides which bytes a program could have read by now. Pure; times and writes are
arguments.

A record becomes available at (its return_ns - the first record's entry_ns) / speed after the start, never before. Due
records wait while unread bytes exceed BUFFER_BYTES_MAX (a real port would drop bytes); nothing is lost.

With match_tx the trace stops at each tx record until the program has written those bytes. Time then continues from that
write, so an answer follows its command after the recorded delay, whether the program asks later or sooner than the
recorded one. Without match_tx a replay runs ahead of a program that asks and waits. Writes are compared as one stream:
a command may come in several writes. A write that differs, and a command that was begun but not completed, are counted
and dropped.
"""

from collections import deque
from collections.abc import Callable, Iterator
from decimal import Decimal

from whenabouts_edge.trace.format import Record

BUFFER_BYTES_MAX = 4096
"""One tty buffer: with this many unread bytes the trace waits until the program has read."""

PENDING_WRITES_MAX = 1024
"""Writes kept until the trace reaches its next tx record; more are counted as mismatches and dropped."""


class Player:
    """One pass through the records, or endless passes with `loop`.

    Args:
        records: opens a new pass over the trace.
        start_ns: the moment of the start, monotonic.
        speed: 10 is ten times as fast; None leaves no time between records.
        match_tx: hold the data after a tx record until the program has written its bytes.
        loop: begin again after the last record. A pass without any byte to read ends the loop.
    """

    def __init__(
        self,
        records: Callable[[], Iterator[Record]],
        start_ns: int,
        *,
        speed: Decimal | None = Decimal(1),
        match_tx: bool = False,
        loop: bool = False,
    ) -> None:
        self._open = records
        self._speed_over, self._speed_under = (0, 1) if speed is None else speed.as_integer_ratio()
        self._match_tx = match_tx
        self._loop = loop
        self._buffer = bytearray()
        self._error: str | None = None
        self._writes: deque[tuple[bytes, int]] = deque()
        self._partial = b""
        self._written_ns = start_ns
        self._base_ns = start_ns  # the moment on the player's clock that is _base_trace_ns in the trace
        self._base_trace_ns: int | None = None
        self._due_ns = start_ns
        self._pass_bytes = 0
        self._source = records()
        self._next: Record | None = None
        self._ended = False
        self.records_played = 0
        self.mismatches = 0
        self.last_mismatch: tuple[bytes, bytes] | None = None
        self._step()

    @property
    def waiting_bytes(self) -> int:
        """Bytes that can be read now."""
        return len(self._buffer)

    @property
    def finished(self) -> bool:
        """True if every record has been played and every byte read."""
        return self._ended and not self._buffer and self._error is None

    @property
    def holds_error(self) -> bool:
        """True if a recorded error waits to be taken; the trace stops until then."""
        return self._error is not None

    @property
    def expected_write(self) -> bytes | None:
        """The rest of the tx record at which the trace waits, or None."""
        if self._match_tx and self._next is not None and self._next.direction == "tx":
            return self._next.data[len(self._partial) :]
        return None

    def advance(self, now_ns: int) -> None:
        """Plays the records due at `now_ns`; call it before reading the buffer."""
        while self._next is not None and self._error is None and len(self._buffer) < BUFFER_BYTES_MAX:
            if self._match_tx and self._next.direction == "tx":
                if not self._written(self._next.data):
                    return
                self._base_ns, self._base_trace_ns = max(self._written_ns, self._due_ns), self._next.return_ns
            elif self._due_ns <= now_ns:
                self._release(self._next)
            else:
                return
            self.records_played += 1
            self._step()

    def next_due_ns(self) -> int | None:
        """The time when advance() has more to play; None if that needs a read or a write, or the trace is over."""
        if (
            self._next is None
            or self._error is not None
            or len(self._buffer) >= BUFFER_BYTES_MAX
            or self.expected_write is not None
        ):
            return None
        return self._due_ns

    def take(self, size: int) -> bytes:
        """Takes up to `size` available bytes."""
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def take_error(self) -> str | None:
        """Takes the text of a recorded error, once, after the bytes before it have been taken."""
        if self._buffer:
            return None
        error, self._error = self._error, None
        return error

    def wrote(self, data: bytes, now_ns: int) -> None:
        """Records the program's write, and plays the records that it releases."""
        self.advance(now_ns)
        if not self._match_tx or not data:
            return
        if self._ended or len(self._writes) >= PENDING_WRITES_MAX:
            self._mismatch(b"", data)
            return
        self._writes.append((data, now_ns))
        self.advance(now_ns)

    def _release(self, record: Record) -> None:
        if record.direction == "rx":
            self._buffer += record.data
            self._pass_bytes += len(record.data)
        elif record.direction == "error":
            self._error = record.error

    def _step(self) -> None:
        """Goes to the next record, or at the end to the next pass, and computes when it is due."""
        self._next = next(self._source, None)
        if self._next is None and self._loop and self._pass_bytes:
            self._pass_bytes = 0
            self._base_ns, self._base_trace_ns = self._due_ns, None
            self._source = self._open()
            self._next = next(self._source, None)
        if self._next is None:
            self._ended = True
            while self._writes:
                self._mismatch(b"", self._writes.popleft()[0])
            return
        if self._match_tx and self._next.direction == "tx":
            return  # due when written
        if self._base_trace_ns is None:
            self._base_trace_ns = self._next.entry_ns
        trace_ns = max(0, self._next.return_ns - self._base_trace_ns)
        wait_ns = 0 if self._speed_over == 0 else -(-trace_ns * self._speed_under // self._speed_over)
        self._due_ns = max(self._due_ns, self._base_ns + wait_ns)

    def _written(self, expected: bytes) -> bool:
        """True if the writes so far contain all of `expected`; removes those bytes, and writes that differ."""
        while self._partial != expected:
            if not self._writes:
                return False
            write, self._written_ns = self._writes.popleft()
            whole = self._partial + write
            if expected.startswith(whole):
                self._partial = whole
            elif whole.startswith(expected):
                self._writes.appendleft((whole[len(expected) :], self._written_ns))
                self._partial = expected
            elif self._partial:
                self._mismatch(expected, self._partial)
                self._partial = b""
                self._writes.appendleft((write, self._written_ns))  # perhaps the whole command again
            else:
                self._mismatch(expected, write)
        self._partial = b""
        return True

    def _mismatch(self, expected: bytes, written: bytes) -> None:
        self.mismatches += 1
        self.last_mismatch = (expected, written)
