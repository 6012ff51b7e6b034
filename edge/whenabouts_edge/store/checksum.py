"""Checksums of the rows of a spool: SQLite notices a damaged page only where its own structure is hit.

A card that returns a changed bit would change a stamp without a trace.
"""

import zlib
from collections.abc import Iterable


def checksum(values: Iterable[object], payload: object = b"") -> int:
    """CRC-32 of the values of a row and its payload; -1 for a payload that is no bytes any more."""
    if not isinstance(payload, bytes):
        return -1
    return zlib.crc32(payload, zlib.crc32(repr(tuple(values)).encode()))
