"""Snapshots followed by a checksum, so that machine code is never given damaged arrays."""

import zlib
from collections.abc import Iterable

LENGTH = 4  # bytes of the checksum, a CRC-32


def with_checksum(parts: Iterable[bytes]) -> bytes:
    """Join the parts and append their checksum. Cost: about a second for 1 GB."""
    kept, crc = list(parts), 0
    for part in kept:
        crc = zlib.crc32(part, crc)
    return b"".join([*kept, crc.to_bytes(LENGTH, "little")])


def opened(blob: bytes) -> memoryview:
    """Check a snapshot and return it without its checksum.

    Raises:
        ValueError: the checksum differs: bytes were changed, removed or added.
    """
    body, checksum = memoryview(blob)[:-LENGTH], blob[-LENGTH:]
    if zlib.crc32(body).to_bytes(LENGTH, "little") != checksum:
        raise ValueError(
            f"snapshot: found {len(blob)} bytes that are damaged, cut off or of another version (their checksum differs), "
            "expected those that snapshot() gave; feed the events again"
        )
    return body
