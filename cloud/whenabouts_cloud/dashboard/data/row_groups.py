"""Row groups of a landing's files: what their footers say of each, and the readings of one.

A block is what is read and kept at once: at most some hundred thousand readings. Footers cost 0.5 ms a file.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whenabouts_cloud.landing.files import DAMAGE, DamagedFileError, sound
from whenabouts_cloud.landing.history import Piece
from whenabouts_cloud.landing.layout import NUMBER
from whenabouts_cloud.landing.scan import encoded
from whenabouts_cloud.landing.store import Store

EARLIEST, LATEST = -(2**63), 2**63 - 1


class Block(NamedTuple):
    """A row group. first_us, last_us: no stamp of it lies outside; all times where the footer does not say.

    landed_us: when the last of it landed, -1 where the footer does not say.
    """

    piece: Piece
    group: int
    rows: int
    first_us: int
    last_us: int
    landed_us: int


def blocks_of(landing: Store, piece: Piece) -> list[Block]:
    """The blocks of a file.

    Raises:
        FileNotFoundError: the file has gone: it was merged with others, or deleted.
        DamagedFileError: its footer cannot be read.
    """
    try:
        with landing.open(piece.path) as source:
            footer = pq.ParquetFile(source).metadata
            names = [footer.schema.column(n).path for n in range(footer.num_columns)]
            return [_block(piece, footer.row_group(n), n, names) for n in range(footer.num_row_groups)]
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise _damaged(piece, error) from None


def read_block(landing: Store, block: Block, columns: Sequence[str]) -> pa.Table:
    """The readings of a block that are meant; texts are dictionary-encoded, and a column that the file lacks is null.

    Raises:
        FileNotFoundError: the file has gone: it was merged with others, or deleted.
        DamagedFileError: it cannot be read.
    """
    piece, schema = block.piece, encoded(columns)
    texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    try:
        with landing.open(piece.path) as source:
            known = set(pq.read_schema(source).names)
            source.seek(0)
            file = pq.ParquetFile(
                source, read_dictionary=[name for name in texts if name in known], page_checksum_verification=True
            )
            wanted = [name for name in (*columns, *([NUMBER] if piece.merged else [])) if name in known]
            table = sound(file.read_row_group(block.group, columns=wanted, use_threads=False))
            if piece.merged and NUMBER in known:
                number = table[NUMBER]
                table = table.filter(pc.and_(pc.greater(number, piece.after), pc.less_equal(number, piece.upto)))
            arrays = [table[x.name] if x.name in known else pa.nulls(table.num_rows, x.type) for x in schema]
            return pa.table(arrays, names=schema.names).cast(schema)
    except FileNotFoundError:
        raise
    except DAMAGE as error:
        raise _damaged(piece, error) from None


def _block(piece: Piece, group: pq.RowGroupMetaData, number: int, names: list[str]) -> Block:
    limits = []
    for name, end, unknown in (("t_min", "min", EARLIEST), ("t_max", "max", LATEST), ("landed_us", "max", -1)):
        found = group.column(names.index(name)).statistics if name in names else None
        value = getattr(found, end) if found is not None and found.has_min_max else unknown
        limits.append(value if isinstance(value, int) else unknown)
    return Block(piece, number, group.num_rows, *limits)


def _damaged(piece: Piece, error: Exception) -> DamagedFileError:
    return DamagedFileError(
        f"{piece.path}: found no whole Parquet file of readings ({' '.join(str(error).split())[:200]})"
    )
