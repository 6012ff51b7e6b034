"""What a job reads of files of which a bit has changed: either it notices, or it gets what was written."""

import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.jobs.reading import source
from whenabouts_cloud.landing.history import Piece
from whenabouts_cloud.landing.scan import frontiers_in, read_piece
from whenabouts_cloud.landing.schema import NO_BOOT
from whenabouts_cloud.landing.sealing import unsealed
from whenabouts_cloud.landing.store import Store


@contextmanager
def watched(rotten: Mapping[Path, bytes], told: Callable[[str], None]) -> Iterator[None]:
    """Watch what jobs read meanwhile. rotten: files as they were before a bit changed. told: is called with what is read
    and was never written.
    """

    def readings(landing: Store, piece: Piece, schema: pa.Schema) -> pa.Table:
        table = read_piece(landing, piece, schema)
        before = rotten.get(_place(landing, piece))
        if before is not None and (
            new := _rows(table) - _rows(pq.read_table(io.BytesIO(before), columns=schema.names))
        ):
            told(f"a bit of {piece.path} has changed, and a job read {min(new)}")
        return table

    def watermarks(landing: Store, pieces: Sequence[Piece]) -> Iterator[dict[str, Any]]:
        for piece in pieces:
            before = rotten.get(_place(landing, piece))
            written = None if before is None else [_watermark(unsealed(line)) for line in before.splitlines()]
            for row in frontiers_in(landing, [piece]):
                if written is not None and _watermark(row) not in written:
                    told(f"a bit of {piece.path} has changed, and a job read {_watermark(row)}")
                yield row

    with patch.object(source, "read_piece", readings), patch.object(source, "frontiers_in", watermarks):
        yield


def _place(landing: Store, piece: Piece) -> Path:
    assert landing.local is not None
    return landing.local / piece.path


def _rows(table: pa.Table) -> Counter[str]:
    """The rows as texts: some columns hold lists."""
    return Counter(map(repr, zip(*(table[name].to_pylist() for name in sorted(table.column_names)), strict=True)))


def _watermark(row: Mapping[str, Any]) -> tuple[Any, ...]:
    said = tuple(row.get(name) for name in ("site", "gateway", "frontier_us"))
    return *said, row.get("boot", NO_BOOT), *(row.get("streams") or ())
