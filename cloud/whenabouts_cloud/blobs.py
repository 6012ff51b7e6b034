"""Serialises tables, and packs several byte strings into one: for snapshots, and for rows sent between processes."""

import json
from collections.abc import Sequence

import pyarrow as pa


def joined(parts: Sequence[bytes]) -> bytes:
    """Pack byte strings into one: a line of JSON with their lengths, then the parts.

    >>> parted(joined([b"ab", b"", b"c"]))
    [b'ab', b'', b'c']
    """
    return json.dumps([len(part) for part in parts]).encode() + b"\n" + b"".join(parts)


def parted(blob: bytes) -> list[bytes]:
    """Unpack a byte string made by `joined`."""
    head, _, rest = blob.partition(b"\n")
    parts, at = [], 0
    for length in json.loads(head):
        parts.append(rest[at : at + length])
        at += length
    return parts


def to_bytes(table: pa.Table) -> bytes:
    """Return a table as one Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def of_bytes(blob: bytes) -> pa.Table:
    """Return the table of an Arrow IPC stream."""
    return pa.ipc.open_stream(blob).read_all().combine_chunks()
