"""Readings of a time from the blocks that overlap it; middles of stamps, kept of the blocks that were used last."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.dashboard.data.row_groups import Block, read_block
from whenabouts_cloud.landing.scan import encoded
from whenabouts_cloud.landing.store import Store

KEPT_BYTES = 60 << 20

Numbered = Callable[[pa.Table], Any]
Middles = tuple[Any, Any]  # lanes int32, middles int64


def middles_of(table: pa.Table) -> Any:
    """The middle of each stamp, us, rounded down; computed so that no sum overflows."""
    t_min, t_max = (np.asarray(table[name].fill_null(0), np.int64) for name in ("t_min", "t_max"))
    return (t_min >> 1) + (t_max >> 1) + (t_min & t_max & 1)


class KeptMiddles:
    """Lanes and middles of the readings of blocks; the blocks used last are kept, up to KEPT_BYTES. Any thread may ask."""

    def __init__(self, landing: Store, numbered: Numbered, most_bytes: int = KEPT_BYTES) -> None:
        self._landing, self._numbered, self._most = landing, numbered, most_bytes
        self._kept: OrderedDict[tuple[str, int, int, int], Middles] = OrderedDict()
        self._bytes, self._lock = 0, threading.Lock()

    def of(self, block: Block) -> Middles:
        """Of a block, in the order of its rows.

        Raises:
            FileNotFoundError, DamagedFileError: see `read_block`.
        """
        key = (block.piece.path, block.group, block.piece.after, block.piece.upto)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        table = read_block(self._landing, block, ("site", "gateway", "stream", "t_min", "t_max"))
        found = (self._numbered(table), middles_of(table))
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self._bytes += _size(found)
            while self._bytes > self._most and len(self._kept) > 1:
                self._bytes -= _size(self._kept.popitem(last=False)[1])
        return found


def overlapping_rows(
    landing: Store, blocks: Sequence[Block], columns: Sequence[str], from_us: int, to_us: int
) -> pa.Table:
    """The readings of these blocks whose stamps overlap [from_us, to_us].

    Raises:
        FileNotFoundError, DamagedFileError: see `read_block`.
    """
    tables = [encoded_empty(columns)]
    for block in blocks:
        table = read_block(landing, block, columns)
        tables.append(
            table.filter(pc.and_(pc.less_equal(table["t_min"], to_us), pc.greater_equal(table["t_max"], from_us)))
        )
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def encoded_empty(columns: Sequence[str]) -> pa.Table:
    """No readings, with these columns."""
    return encoded(columns).empty_table()


def _size(found: Middles) -> int:
    return int(found[0].nbytes + found[1].nbytes)
