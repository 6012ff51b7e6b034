"""Reads the `*.transport` captures of hs-mercury-api: dialogues with ThingMagic readers, in tests/ of that project.

    Sending: VERSION                       1605291.034818992
             ff 00 03 1d 0c                                    |.....|
    Received:VERSION                       1605291.039468075
             ff 14 03 00 00 14 12 08  00 30 00 00 02 20 16 12  |.........0... ..|

A head line with direction, command and monotonic seconds, then a hex dump of the whole frame. The stamp of an answer
is the time at which it had been received; it cannot have begun before its command was sent, so the head line before
bounds it from below.
"""

import re

from whenabouts_edge.trace.format import RECORD_BYTES_MAX, Direction, LineError, Record
from whenabouts_edge.trace.lines import Line

_HEAD = re.compile(rb"(Sending: |Received:)\S+ +(\d+)\.(\d{9})")
_DUMP = re.compile(rb" {4,}((?:[0-9a-f]{2} {1,2})+) *\|.*\|")


def looks_like_transport(first_line: bytes) -> bool:
    """Whether a file that begins with this line is a transport capture."""
    return _HEAD.fullmatch(first_line) is not None


class TransportParser:
    """Joins a head line and its dump to one record, tx for Sending and rx for Received; times are the capturing
    machine's monotonic clock."""

    def __init__(self) -> None:
        self._direction: Direction | None = None
        self._entry_ns = self._return_ns = 0
        self._data = bytearray()

    def feed(self, line: Line) -> list[Record]:
        """The frame that this line completes by beginning another.

        Raises:
            LineError: it is neither head nor dump.
        """
        if head := _HEAD.fullmatch(line.data):
            return self._begin("tx" if head[1] == b"Sending: " else "rx", int(head[2]) * 1_000_000_000 + int(head[3]))
        dump = _DUMP.fullmatch(line.data)
        if dump is None or self._direction is None:
            expected = "a head line `Sending: ` or `Received:` with a stamp of 9 decimals, or a hex dump"
            raise LineError(repr(line.data[:60]), expected)
        self._data += bytes.fromhex(dump[1].decode("ascii"))
        if len(self._data) > RECORD_BYTES_MAX:
            raise LineError(f"a frame longer than {RECORD_BYTES_MAX} bytes", "shorter frames")
        return []

    def end(self) -> list[Record]:
        """The frame that the end of the file completes."""
        if self._direction is None:
            return []
        return [Record(self._direction, self._entry_ns, self._return_ns, bytes(self._data))]

    def _begin(self, direction: Direction, stamp_ns: int) -> list[Record]:
        first = self._direction is None
        if not first and stamp_ns < self._return_ns:
            raise LineError(f"a stamp {self._return_ns - stamp_ns} ns before the one above", "rising stamps")
        complete = self.end()
        self._entry_ns = stamp_ns if first or direction == "tx" else self._return_ns
        self._direction, self._return_ns = direction, stamp_ns
        self._data = bytearray()
        return complete
