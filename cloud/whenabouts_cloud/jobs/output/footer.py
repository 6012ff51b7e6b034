"""Several Parquet files of one schema as one, without decoding them: their row groups' bytes, and one footer for all.

Nothing but the footer of a file says where in it something lies, as long as the writer made no page index. So row groups
are copied as they are, and their footers' offsets moved. A footer is Thrift's compact protocol, of which this knows what
the format's FileMetaData is made of: https://github.com/apache/parquet-format

Cost: a copy of the bytes, and some 50 us a row group of ten columns.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

MAGIC = b"PAR1"
CHUNK = 1 << 20  # bytes copied at once
TAIL = 8  # the footer's length in four bytes, and MAGIC

# Kinds of values in the compact protocol.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 12
# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
SCHEMA, NUM_ROWS, ROW_GROUPS = 2, 3, 4
COLUMNS, GROUP_OFFSET, ORDINAL = 1, 5, 7
CHUNK_OFFSET, META_DATA, PAGE_INDEXES = 2, 3, (4, 6)
PAGE_OFFSETS = (9, 10, 11, 14)  # of data, of an index, of a dictionary, of a Bloom filter

Struct = dict[int, tuple[int, Any]]  # field: (kind, value); a list's value is (kind, values)


def join(parts: Sequence[Path], into: IO[bytes]) -> None:
    """Write the row groups of the files, which are at least one, one after the other as one file.

    Raises:
        ValueError: a file is none of Parquet or cut short, has a page index, or another schema than the first.
    """
    at = into.write(MAGIC)
    whole: Struct = {}
    for part in parts:
        with part.open("rb") as file:
            footer, length = _footer(part, file)
            file.seek(len(MAGIC))
            copy(part, file, into, length)
        for group in footer[ROW_GROUPS][1][1]:
            _move(part, group, at - len(MAGIC))
            group.pop(ORDINAL, None)  # which only encryption needs
        at += length
        if not whole:
            whole = footer
            continue
        if whole[SCHEMA] != footer[SCHEMA]:
            raise ValueError(f"{part}: found another schema than in {parts[0]}, expected the same")
        whole[NUM_ROWS] = (I64, whole[NUM_ROWS][1] + footer[NUM_ROWS][1])
        whole[ROW_GROUPS][1][1].extend(footer[ROW_GROUPS][1][1])
    written = encode(whole)
    into.write(written + len(written).to_bytes(4, "little") + MAGIC)


def decode(footer: bytes) -> Struct:
    """The struct that these bytes begin with."""
    return _Reader(footer).struct()


def encode(struct: Struct) -> bytes:
    """The bytes of a struct."""
    out = bytearray()
    _put_struct(struct, out)
    return bytes(out)


def _footer(part: Path, file: IO[bytes]) -> tuple[Struct, int]:
    """The footer of a file and how many bytes of row groups it has."""
    end = file.seek(0, 2)
    file.seek(max(end - TAIL, 0))
    tail = file.read()
    begin = end - TAIL - int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or begin < len(MAGIC):
        raise ValueError(f"{part}: found no end of a Parquet file, expected one")
    file.seek(begin)
    return decode(file.read()), begin - len(MAGIC)


def copy(part: Path, source: IO[bytes], into: IO[bytes], length: int) -> None:
    """Copy so many bytes of a part. Raises ValueError when it ends before."""
    while length:
        data = source.read(min(length, CHUNK))
        if not data:
            raise ValueError(
                f"{part}: found its end {length} bytes before its footer, expected those: it was cut meanwhile"
            )
        length -= into.write(data)


def _move(part: Path, group: Struct, by: int) -> None:
    """Move what a row group says of its place by so many bytes."""
    _add(group, GROUP_OFFSET, by)
    for chunk in group[COLUMNS][1][1]:
        if any(field in chunk for field in PAGE_INDEXES):
            raise ValueError(f"{part}: found a page index, expected a file without")
        # Writers put 0 here, which is no place: the standard has given the field up.
        if chunk[CHUNK_OFFSET][1]:
            _add(chunk, CHUNK_OFFSET, by)
        for field in PAGE_OFFSETS:
            _add(chunk[META_DATA][1], field, by)


def _add(struct: Struct, field: int, by: int) -> None:
    if field in struct:
        struct[field] = (I64, struct[field][1] + by)


class _Reader:
    """Reads values one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> Struct:
        found: Struct = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._signed()
            found[field] = head & 15, self._value(head & 15)
        return found

    def _value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return None
        if kind in (I16, I32, I64):
            return self._signed()
        if kind == BYTE:
            return self._byte()
        if kind == DOUBLE:
            return self._bytes(8)
        if kind == BINARY:
            return self._bytes(self._number())
        if kind == STRUCT:
            return self.struct()
        if kind != LIST:
            raise ValueError(f"footer: found kind {kind} of Thrift's compact protocol, expected those of FileMetaData")
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._number()
        element = head & 15
        return element, [self._byte() if element in (TRUE, FALSE) else self._value(element) for _ in range(size)]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def _number(self) -> int:
        """Seven bits a byte, the least first; the eighth says that more follow."""
        found = shift = 0
        while (byte := self._byte()) & 128:
            found |= (byte & 127) << shift
            shift += 7
        return found | byte << shift

    def _signed(self) -> int:
        """Zigzag: 0, -1, 1, -2 ..."""
        number = self._number()
        return number >> 1 ^ -(number & 1)


def _put_struct(struct: Struct, out: bytearray) -> None:
    last = 0
    for field, (kind, value) in struct.items():
        if 0 < field - last < 16:
            out.append((field - last) << 4 | kind)
        else:
            out.append(kind)
            _put_signed(field, out)
        _put(kind, value, out)
        last = field
    out.append(0)


def _put(kind: int, value: Any, out: bytearray) -> None:
    if kind in (I16, I32, I64):
        _put_signed(value, out)
    elif kind == BYTE:
        out.append(value)
    elif kind == DOUBLE:
        out += value
    elif kind == BINARY:
        _put_number(len(value), out)
        out += value
    elif kind == STRUCT:
        _put_struct(value, out)
    elif kind == LIST:
        element, values = value
        out.append(min(len(values), 15) << 4 | element)
        if len(values) >= 15:
            _put_number(len(values), out)
        for one in values:
            _put(BYTE if element in (TRUE, FALSE) else element, one, out)


def _put_number(number: int, out: bytearray) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _put_signed(number: int, out: bytearray) -> None:
    _put_number(number << 1 if number >= 0 else ~number << 1 | 1, out)
