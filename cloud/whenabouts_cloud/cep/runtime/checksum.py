"""Snapshots with a checksum behind them: machine code must not be given arrays that are not as they were written."""

import zlib
from collections.abc import Iterable

LENGTH = 4  # bytes of the checksum, a CRC-32


def with_checksum(parts: Iterable[bytes]) -> bytes:
    """The parts one after the other, and their checksum. Cost: about a second for 1 GB."""
    kept, crc = list(parts), 0
    for part in kept:
        crc = zlib.crc32(part, crc)
    return b"".join([*kept, crc.to_bytes(LENGTH, "little")])


def opened(blob: bytes) -> memoryview:
    """What was sealed.

    Raises:
        ValueError: a byte of it is another one, some are missing or too many.
    """
    body, checksum = memoryview(blob)[:-LENGTH], blob[-LENGTH:]
    if zlib.crc32(body).to_bytes(LENGTH, "little") != checksum:
        raise ValueError(
            f"snapshot: found {len(blob)} bytes that are damaged, cut off or of another version (their checksum differs), "
            "expected those that snapshot() gave; feed the events again"
        )
    return body
