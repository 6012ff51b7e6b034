"""Reads and writes the `*.transport` format of ThingMagic's library: dialogues with its readers, one block of text a frame.

    Sending: VERSION                       1605291.034818992
             ff 00 03 1d 0c                                    |.....|
    Received:VERSION                       1605291.039468075
             ff 14 03 00 00 14 12 08  00 30 00 00 02 20 16 12  |.........0... ..|

A head line with direction, command and monotonic seconds, then a hex dump of the whole frame. The stamp of an answer
is the time at which it had been received; it cannot have begun before its command was sent, so the previous head line
bounds it from below.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from whenabouts_edge.trace.format import RECORD_BYTES_MAX, Direction, LineError, Record
from whenabouts_edge.trace.lines import Line
from whenabouts_hardware import decoder

_HEAD = re.compile(rb"(Sending: |Received:)\S+ +(\d+)\.(\d{9})")
_DUMP = re.compile(rb" {4,}((?:[0-9a-f]{2} {1,2})+) *\|.*\|")


def looks_like_transport(first_line: bytes) -> bool:
    """True if a file that begins with this line is a transport capture."""
    return _HEAD.fullmatch(first_line) is not None


class TransportParser:
    """Joins a head line and its dump to one record, tx for Sending and rx for Received; times are the capturing
    machine's monotonic clock."""

    def __init__(self) -> None:
        self._direction: Direction | None = None
        self._entry_ns = self._return_ns = 0
        self._data = bytearray()

    def feed(self, line: Line) -> list[Record]:
        """The frame that is complete because this line begins another.

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


def to_transport(records: Iterable[Record], warn: Callable[[str], None]) -> Iterator[str]:
    """Records of a dialogue with a ThingMagic reader as lines of a transport file, one frame after the other.

    A frame has the return time of the record that completed it. Data without a place in the format is lost: entry
    times, silence, errors, and bytes in no good frame, which are counted in a warning at the end. Commands are named by
    their number.
    """
    sides = {"tx": ("Sending: ", decoder("m6e", mode="host")), "rx": ("Received:", decoder("m6e", mode="reader"))}
    lost_bytes = 0
    for record in records:
        if record.direction == "error":
            continue
        head, frames = sides[record.direction]
        lost_bytes += len(record.data)
        for frame in frames.feed(record.data):
            if frame.ok:
                lost_bytes -= len(frame.raw)
                seconds, nanoseconds = divmod(record.return_ns, 1_000_000_000)
                yield f"{head}{f'OPCODE_{frame.raw[2]:02X}':28} {seconds}.{nanoseconds:09}\n"
                yield from _dump_lines(frame.raw)
    if lost_bytes:
        warn(f"{lost_bytes} bytes are in no good frame of a ThingMagic reader and were left out")


def _dump_lines(data: bytes) -> Iterator[str]:
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        halves = f"{row[:8].hex(' ')}  {row[8:].hex(' ')}".rstrip()
        text = "".join(chr(byte) if 0x20 < byte < 0x7F else "." for byte in row)
        yield f"         {halves:49} |{text}|\n"
