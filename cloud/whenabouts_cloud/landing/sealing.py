"""Checksums of what a landing's formats do not protect: the footers of data files, and JSON.

Pages of Parquet have checksums, their footer has none: a changed bit there can change a column's name, a number, or the
ranges of readings that the ingest reads when it starts. So the footer's own metadata hold the CRC-32 of the footer, with
zeros in its place. A JSON object ends with the CRC-32 of the text before: {"site":"hall",...,"crc":123}. What has no
checksum, as files of others and of earlier versions, is taken as it is.
"""

import io
import json
import re
import zlib
from contextlib import nullcontext
from typing import IO, Any

CRC_KEY = b"whenabouts.crc"
NO_CRC = b"0" * 8
# Key and value in the footer: behind the key come, in Thrift's compact protocol, the type of a text and its length.
_PLACE = re.compile(re.escape(CRC_KEY) + b"\\x18\\x08([0-9a-f]{8})")
_TAIL_BYTES = 8  # the length of the footer, and PAR1
_JSON_KEY = b',"crc":'


class ChecksumError(ValueError):
    """Bytes are not what was written."""


def seal_footer(file: IO[bytes]) -> None:
    """Write the checksum into the footer of a Parquet file whose metadata have NO_CRC under CRC_KEY.

    A file of the system may be open for writing only.
    """
    file.flush()
    with open(file.name, "rb") if isinstance(file, io.BufferedWriter) else nullcontext(file) as written:
        at, footer = _footer(written, written.seek(0, 2))
    place = _PLACE.search(footer)
    if place is None:
        raise ValueError(f"found no {CRC_KEY.decode()} in the footer, expected it in the file's metadata")
    file.seek(at + place.start(1))
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
    place = _PLACE.search(footer)
    if place is None:
        return
    plain = footer[: place.start(1)] + NO_CRC + footer[place.end(1) :]
    if zlib.crc32(plain) != int(place[1], 16):
        raise ChecksumError("its footer differs from its checksum")


def _footer(file: Any, size: int) -> tuple[int, bytes]:
    """Where the footer begins, and its bytes; none if its length cannot be."""
    file.seek(size - _TAIL_BYTES)
    length = int.from_bytes(file.read(4), "little")
    at = size - _TAIL_BYTES - length
    if at < 0:
        return 0, b""
    file.seek(at)
    return at, bytes(file.read(length))


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
    if value.pop("crc", None) not in (None, zlib.crc32(data[:at])):
        raise ChecksumError("it differs from its checksum")
    return value
