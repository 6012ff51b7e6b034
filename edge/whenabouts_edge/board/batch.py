"""The message of a batch, written straight from pending readings into an existing buffer.

The bytes equal those of `messages.batch.encode_batch` for the finished readings, which are never made: 32
readings and their rows at once need some 16 kB on a board. Here there are the tables of the head, and one row at a time.
The checks of a reading are the same; they are loaded for the first pending reading that is not a plain tag or gap.
"""

from whenabouts_edge.board import tidy
from whenabouts_protocol.cbor import write, write_head
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.layout import CLOCK_STATES, KINDS, SCHEMA, Dictionary, pack_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_edge.readers.pending import PendingReading

_FIELDS = 11  # of the head, with the rows as its last
_ROW_FIXED = 8
_ARRAY, _MAP = 0x80, 0xA0
_TIDY_ROWS = 4  # these leave some 2 kB of garbage
_BYTES = 1024  # size of a batch of badges
_PLAIN_US_MIN, _PLAIN_US_MAX = -(1 << 60), 1 << 60
_PLAIN_TEXT_MAX = 64  # characters: 256 bytes at most


class Buffer:
    """The part of a bytearray that writing needs. It grows as it is written, up to size_max; then WireError is raised."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._data = bytearray(min(_BYTES, size_max))
        self.size = 0

    def clear(self) -> None:
        """Empty the buffer."""
        self.size = 0

    def append(self, byte: int) -> None:
        """Append one byte."""
        self._reach(self.size + 1)
        self._data[self.size - 1] = byte

    def extend(self, data: bytes) -> None:
        """Append bytes."""
        start = self.size
        self._reach(start + len(data))
        self._data[start : self.size] = data

    def _reach(self, end: int) -> None:
        """Extend the content up to `end`, which lies behind its present end."""
        if end > self._size_max:
            raise WireError(f"batch: found more than {self._size_max} bytes")
        if end > len(self._data):
            self._data.extend(bytes(min(max(end, 2 * len(self._data)), self._size_max) - len(self._data)))
        self.size = end

    def content(self, at: int = 0) -> bytes:
        """The content from offset `at` on, followed by the content before it."""
        data = memoryview(self._data)
        return bytes(data[at : self.size]) + data[:at]


class Batches:
    """Writes the batches of one boot, of at most bytes_max each. Site and gateway are names of the protocol."""

    def __init__(self, site: str, gateway: str, boot: int, bytes_max: int) -> None:
        self._origin = site, gateway, boot
        self._buffer = Buffer(bytes_max)
        self._rows_bytes = 0

    def encoded(self, pending_readings: "list[PendingReading]", first_seq: int, stamp_of: "Any") -> "bytes | None":
        """The message of these, numbered from first_seq; None if it is too long, or one of them has no wire form.

        stamp_of: returns t_min, t_max and clock state of a pending reading.
        """
        try:
            self._write(pending_readings, first_seq, stamp_of)
        except ValueError:  # WireError is one
            return None
        return self._buffer.content(self._rows_bytes)

    def _write(self, pending_readings: "list[PendingReading]", first_seq: int, stamp_of: "Any") -> None:
        """Write the rows first, then the head with the tables that the rows filled, so each reading is visited once."""
        out: Any = self._buffer
        out.clear()
        streams, keys, names, clocks = Dictionary(), Dictionary(), Dictionary(), Dictionary()
        base_us = last_us = None
        write_head(_ARRAY, len(pending_readings), out)
        for n, pending in enumerate(pending_readings):
            if n % _TIDY_ROWS == 0:
                tidy()
            t_min, t_max, state = stamp_of(pending)
            key = None if pending.key is None else pack_key(pending.key)
            if not _is_plain(pending, key, t_min, t_max):
                _check(pending, first_seq + n, t_min, t_max, state)
            if base_us is None:
                base_us = last_us = t_min
            write_head(_ARRAY, _ROW_FIXED + (1 + len(pending.attrs) if pending.attrs else 0), out)
            out.append(0)  # the numbers have no gaps
            write(t_min - last_us, out)
            last_us = t_min
            write(t_max - t_min, out)
            write(streams.index((pending.stream, KINDS.index(pending.kind), pending.unit)), out)
            write(None if key is None else keys.index(key), out)
            write(CLOCK_STATES.index(state), out)
            write(clocks.index(pending.vclock), out)
            write(pending.value, out)
            if pending.attrs:
                sorted_names = sorted(pending.attrs)
                write(names.index(tuple(sorted_names)), out)
                for name in sorted_names:
                    write(pending.attrs[name], out)
        self._rows_bytes = out.size
        tidy()
        site, gateway, boot = self._origin
        write_head(_MAP, _FIELDS, out)
        tables = (clocks.values, streams.values, keys.values, names.values)
        for field, value in enumerate((SCHEMA, site, gateway, boot, first_seq, base_us) + tables):  # noqa: RUF005
            write(field, out)
            write(value, out, 1)
        write(_FIELDS - 1, out)


def _is_plain(pending: "PendingReading", key: "str | bytes | None", t_min: int, t_max: int) -> bool:
    """Return True if this is a tag or gap of the usual form from decoders and the store, in which nothing can be invalid."""
    if pending.attrs or pending.vclock != (0,) or not _PLAIN_US_MIN < t_min <= t_max < _PLAIN_US_MAX:
        return False
    if pending.kind == "gap":
        fits = pending.key is None and type(pending.value) is int and 0 <= pending.value < _PLAIN_US_MAX
    else:
        fits = pending.kind == "tag" and type(key) is bytes
        fits = fits and pending.value is None and pending.unit is None and len(pending.key or "") <= _PLAIN_TEXT_MAX
    return fits and pending.unit in (None, "{readings}") and 0 < len(pending.stream) <= _PLAIN_TEXT_MAX


def _check(pending: "PendingReading", seq: int, t_min: int, t_max: int, state: str) -> None:
    from whenabouts_protocol.reading import check_observation

    check_observation(
        seq,
        pending.stream,
        pending.kind,
        t_min,
        t_max,
        pending.key,
        pending.value,
        pending.unit,
        pending.attrs,
        state,
        pending.vclock,
    )
