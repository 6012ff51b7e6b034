"""Checksums of what a landing's formats do not protect: the footers of data files, and JSON.

Pages of Parquet have checksums, their footer has none: a changed bit there can change a column's name, a number, or the
ranges of readings that the ingest reads when it starts. So the footer's own metadata hold the CRC-32 of the footer, with
zeros in its place, and one changed bit of it can be put back. A JSON object ends with the CRC-32 of the text before:
{"site":"hall",...,"crc":123}. What has no checksum, as files of others and of earlier versions, is taken as it is. So a
changed bit in the name of the checksum must not switch it off: a name that is nearly the right one counts.
"""

import io
import json
import re
import zlib
from contextlib import nullcontext
from typing import IO, Any

import numpy as np

CRC_KEY = b"whenabouts.crc"
NO_CRC = b"0" * 8
# What stands before the value in the footer: behind the key come, in Thrift's compact protocol, type and length of a text.
_HEAD = CRC_KEY + b"\x18\x08"
# Of the name of a checksum so many may have changed: nothing else is so like it by chance.
_CHANGED_BYTES_MAX = 2  # in a footer
_CHANGED_BITS_MAX = 2  # in JSON
_FOOTER_BYTES_MAX = 1 << 24  # no longer one is looked for
_TAIL_BYTES = 8  # the length of the footer, and PAR1
_MAGIC = b"PAR1"
_HEX = re.compile(rb"[0-9a-f]{8}")
_JSON_KEY = b',"crc":'
# The effect on a CRC-32 of a change of the last byte; which change has an effect with this first byte; and bits by effects.
_EFFECTS = [zlib.crc32(bytes([change])) ^ zlib.crc32(b"\0") for change in range(256)]
_INDEX = {effect >> 24: change for change, effect in enumerate(_EFFECTS)}
_LAST_BYTE = {_EFFECTS[1 << bit]: 1 << bit for bit in range(8)}


class ChecksumError(ValueError):
    """Bytes are not what was written."""


def seal_footer(file: IO[bytes]) -> None:
    """Write the checksum into the footer of a Parquet file whose metadata have NO_CRC under CRC_KEY.

    A file of the system may be open for writing only.
    """
    file.flush()
    with open(file.name, "rb") if isinstance(file, io.BufferedWriter) else nullcontext(file) as written:
        at, footer = _footer(written, written.seek(0, 2))
    begin = footer.find(_HEAD + NO_CRC) + len(_HEAD)
    if begin < len(_HEAD):
        raise ValueError(f"found no {CRC_KEY.decode()} in the footer, expected it in the file's metadata")
    file.seek(at + begin)
    file.write(b"%08x" % zlib.crc32(footer))
    file.seek(0, 2)


def check_footer(file: Any) -> None:
    """Compare the footer of an open Parquet file with its checksum, if it has one; some 10 us.

    Raises:
        ChecksumError: it differs.
    """
    size = file.size()
    if size < _TAIL_BYTES:
        return
    _, footer = _footer(file, size)
    begin = _value_at(footer)
    if begin is None:
        return
    end = begin + len(NO_CRC)
    if footer[begin:end] != b"%08x" % zlib.crc32(footer[:begin] + NO_CRC + footer[end:]):
        raise ChecksumError("its footer differs from its checksum")


def restored_end(file: Any) -> tuple[int, bytes] | None:
    """Where the footer of an open Parquet file begins, and all bytes from there on, with at most one changed bit put back;
    None if more has changed.

    A footer without a checksum is taken as it is. Cost: 2 ms for a footer of 2 kB, in proportion to its length.
    """
    size = file.size()
    body = max(0, size - _TAIL_BYTES)
    tail = _read(file, body, size)
    length = int.from_bytes(tail[:4], "little")
    is_sealed = False
    # A changed length comes first: of many bits one may explain the difference by chance.
    lengths = (length, *(length ^ 1 << bit for bit in range(32)))
    for one, may_differ in (*((one, False) for one in lengths), (length, True)):
        at = body - one
        if at < 0 or one > _FOOTER_BYTES_MAX:
            continue
        found = _read(file, at, body)
        if (begin := _value_at(found)) is None:
            continue
        is_sealed = True
        footer = _restored(found, begin, may_differ)
        if footer is not None:
            return at, footer + one.to_bytes(4, "little") + _MAGIC
    return None if is_sealed else (body, tail)


def _read(file: Any, begin: int, end: int) -> bytes:
    file.seek(begin)
    return bytes(file.read(end - begin))


def _restored(footer: bytes, begin: int, may_differ: bool) -> bytes | None:
    """A footer whose checksum begins there, with at most one bit put back; None if it still differs."""
    end = begin + len(NO_CRC)
    covered, value = bytearray(footer[:begin] + NO_CRC + footer[end:]), footer[begin:end]
    crc = zlib.crc32(covered)
    changed_bits = _changed_bits(value, b"%08x" % crc)
    if changed_bits == 0 or (changed_bits == 1 and may_differ):
        return footer[:begin] + b"%08x" % crc + footer[end:]
    place = changed_bit(crc ^ int(value, 16), len(covered)) if may_differ and _HEX.fullmatch(value) else None
    if place is None:
        return None
    covered[place[0]] ^= place[1]
    return bytes(covered[:begin] + value + covered[end:])


def changed_bit(difference: int, size: int) -> tuple[int, int] | None:
    """The one bit in so many bytes whose change makes this difference to their CRC-32, as its byte and a mask; None if there
    is none, for then more has changed.

    The CRC-32 of equally long texts is linear. The search takes back byte after byte from the end, until what is left is the
    effect of a bit of a last byte.
    """
    for at in range(size - 1, -1, -1):
        if difference in _LAST_BYTE:
            return at, _LAST_BYTE[difference]
        index = _INDEX[difference >> 24]
        difference = (difference ^ _EFFECTS[index]) << 8 | index
    return None


def _value_at(footer: bytes) -> int | None:
    """Where the checksum begins in a footer; None if it has none."""
    at = footer.find(_HEAD)
    if at < 0 and len(footer) >= len(_HEAD):
        found = np.frombuffer(footer, np.uint8)
        changed = np.zeros(len(footer) - len(_HEAD) + 1, np.uint8)
        for place, byte in enumerate(_HEAD):
            changed += found[place : place + len(changed)] != byte
        nearest = int(changed.argmin())
        at = nearest if changed[nearest] <= _CHANGED_BYTES_MAX else -1
    return None if at < 0 else at + len(_HEAD)


def _footer(file: Any, size: int) -> tuple[int, bytes]:
    """Where the footer begins, and its bytes; none if its length cannot be."""
    end = size - _TAIL_BYTES
    at = end - int.from_bytes(_read(file, end, end + 4), "little")
    return (0, b"") if at < 0 else (at, _read(file, at, end))


def sealed(value: dict[str, Any]) -> bytes:
    """A JSON object of at least one entry as bytes, with its checksum."""
    text = json.dumps(value, separators=(",", ":")).encode()[:-1]
    return text + seal(zlib.crc32(text))


def seal(crc: int) -> bytes:
    """The end of a JSON object whose bytes so far have this CRC-32."""
    return _JSON_KEY + b"%d}" % crc


def unsealed(data: bytes) -> dict[str, Any]:
    """The JSON object in data.

    Raises:
        ValueError: it is none, or differs from its checksum.
    """
    at = data.rfind(_JSON_KEY)
    value = json.loads(data)
    if not isinstance(value, dict):
        raise ValueError("found no JSON object")
    name = next(reversed(value), "")
    if name != "crc" and _changed_bits(name.encode(), b"crc") <= _CHANGED_BITS_MAX:
        raise ChecksumError("the name of its checksum has changed")
    if value.pop("crc", None) not in (None, zlib.crc32(data[:at])):
        raise ChecksumError("it differs from its checksum")
    return value


def _changed_bits(found: bytes, expected: bytes) -> int:
    """How many bits differ; all where lengths do."""
    if len(found) != len(expected):
        return 8 * len(expected)
    return sum((one ^ other).bit_count() for one, other in zip(found, expected, strict=True))
