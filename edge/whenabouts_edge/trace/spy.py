"""Reads and writes the hex dump of pyserial's `spy://PORT?file=NAME`.

    000003.101 TX   0000  48 45 4C 4C 4F                                    HELLO
    000003.102 RX   0000  48 45 4C 4C 4F                                    HELLO

Seconds since the port was assigned, label, offset, up to 16 bytes, ASCII. Offset 0000 begins a chunk, growing offsets
continue it; lines of a reading and a writing thread may be interleaved. Other labels (control lines, BRK, Q-RX ...) are
skipped.

A spy file has no absolute time and stamps only the return of a read, to the millisecond, by a clock that can be set.
Only these bounds hold: bytes arrived after the port was opened or last emptied (`reset_input_buffer`), and before the
stamp plus half a millisecond. Where the clock was set back, the parser warns and continues from the previous stamp; the
length of that gap is unknown.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from serial.urlhandler.protocol_spy import hexdump

from whenabouts_edge.trace.format import RECORD_BYTES_MAX, Direction, LineError, Record
from whenabouts_edge.trace.lines import Line

ROUNDING_NS = 500_000
"""Stamps are rounded to the millisecond: the true time lies up to this much on either side."""

INTERLEAVED_MAX = 64
"""Most chunks that may begin while one of another thread is being written; then that one counts as complete."""

INTERLEAVED_NS = 100_000_000
"""Lines of two threads may be swapped: stamps that go back by at most this do not mean that the clock was set."""

_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
_LINE = re.compile(r"(-?\d+)\.(\d{3}) (\S+) *(.*)")
_DUMP = re.compile(r"([0-9A-F]{4,})  ")
_HEX_COLUMNS = 49  # sixteen times "XX " and a blank in the middle
_ROW_COLUMNS = _HEX_COLUMNS + 1 + 16


def looks_like_spy(first_line: bytes) -> bool:
    """True if a file that begins with this line is a spy file."""
    return re.match(rb"-?\d{5,}\.\d{3} [A-Z][A-Z-]{1,3} ", _COLOUR.sub(b"", first_line)) is not None


@dataclass(slots=True)
class _Chunk:
    direction: Direction
    entry_ns: int
    return_ns: int
    data: bytearray = field(default_factory=bytearray)
    complete: bool = False


class SpyParser:
    """Joins dump lines to chunks, returned in the order in which they began. Times count from the start of the file and
    are never below 0.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._chunks: deque[_Chunk] = deque()
        self._now_ns = 0
        self._set_back_ns = 0
        self._emptied_ns = -ROUNDING_NS

    def feed(self, line: Line) -> list[Record]:
        """The chunks that this line completes.

        Raises:
            LineError: the line does not have the format of spy://.
        """
        text = _COLOUR.sub(b"", line.data).decode("ascii", "replace")
        match = _LINE.fullmatch(text)
        if match is None:
            raise LineError(repr(text[:60]), "seconds, a label and a value as pyserial's spy:// writes them")
        self._advance(line.number, Decimal(f"{match[1]}.{match[2]}"))
        label, value = match[3], match[4]
        if label in ("RX", "TX") and value != "<empty>":
            self._dump("rx" if label == "RX" else "tx", value, line.torn)
        elif label == "Q-RX" and value == "reset_input_buffer":
            self._emptied_ns = self._now_ns - ROUNDING_NS  # the line is written before the buffer is emptied
        return list(self._ready(at_end=False))

    def end(self) -> list[Record]:
        """The chunks that the end of the file completes."""
        return list(self._ready(at_end=True))

    def _ready(self, at_end: bool) -> Iterator[Record]:
        while self._chunks and (self._chunks[0].complete or at_end or len(self._chunks) > INTERLEAVED_MAX):
            chunk = self._chunks.popleft()
            yield Record(chunk.direction, chunk.entry_ns, chunk.return_ns, bytes(chunk.data))

    def _advance(self, number: int, seconds: Decimal) -> None:
        now_ns = int(seconds * 1_000_000_000) + self._set_back_ns
        if now_ns < self._now_ns:
            if self._now_ns - now_ns <= INTERLEAVED_NS:
                return
            self._set_back_ns += self._now_ns - now_ns
            self._warn(f"line {number}: the clock was set back by {(self._now_ns - now_ns) / 1e9:.3f} s")
            return
        self._now_ns = now_ns

    def _dump(self, direction: Direction, value: str, torn: bool) -> None:
        match = _DUMP.match(value)
        if match is None:
            raise LineError(repr(value[:60]), "an offset of 4 or more hexadecimal digits and bytes")
        row = value[match.end() :]
        if torn and len(row) != _ROW_COLUMNS:
            raise LineError("a torn line", f"{_ROW_COLUMNS} columns after the offset")
        try:
            data = bytes.fromhex(row[:_HEX_COLUMNS])
        except ValueError:
            raise LineError(repr(row[:_HEX_COLUMNS]), "up to 16 bytes as pairs of hexadecimal digits") from None
        if not 1 <= len(data) <= 16:
            raise LineError(f"{len(data)} bytes", "1 to 16 bytes in a line")
        chunk = self._chunk_at(direction, int(match[1], 16))
        chunk.data += data
        chunk.complete = len(data) < 16

    def _chunk_at(self, direction: Direction, offset: int) -> _Chunk:
        chunk = self._open_chunk(direction)
        if offset:
            if chunk is None or offset != len(chunk.data):
                before = "no open chunk" if chunk is None else f"{len(chunk.data)} bytes so far"
                raise LineError(f"offset {offset:04X} after {before}", "offset 0000 or the number of bytes so far")
            if offset + 16 > RECORD_BYTES_MAX:
                raise LineError(f"a chunk longer than {RECORD_BYTES_MAX} bytes", "shorter reads and writes")
            return chunk
        if chunk is not None:
            chunk.complete = True
        entry_ns = self._emptied_ns if direction == "rx" else self._now_ns - ROUNDING_NS
        chunk = _Chunk(direction, entry_ns, self._now_ns + ROUNDING_NS)
        self._chunks.append(chunk)
        return chunk

    def _open_chunk(self, direction: Direction) -> _Chunk | None:
        """The chunk of this direction that a full last line left open."""
        return next((chunk for chunk in self._chunks if chunk.direction == direction and not chunk.complete), None)


def to_spy(records: Iterable[Record], start_ns: int) -> Iterator[str]:
    """Records as lines of a spy file, for people; stamps are return times, counted from `start_ns`.

    Data without a place in the format is lost: entry times, and fractions of a millisecond. An error becomes a line
    with label ERR, which readers skip.
    """
    for record in records:
        seconds = (record.return_ns - start_ns) / 1_000_000_000
        if record.direction == "error":
            yield f"{seconds:010.3f} ERR  {' '.join(record.error.split())}\n"
        elif not record.data:
            yield f"{seconds:010.3f} {record.direction.upper():4} <empty>\n"
        for offset, row in hexdump(record.data):
            yield f"{seconds:010.3f} {record.direction.upper():4} {offset:04X}  {row}\n"
