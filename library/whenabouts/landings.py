"""The readings of a landing, in a folder or in a bucket."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa


def read_landing(uri: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """All readings that have landed, each once, as an Arrow table; columns: some of those of a landing, None for all.

    uri: a folder, or `s3://bucket/path` and the like. value and attrs are JSON, times microseconds since 1970 UTC. Damaged
    files raise. Cost: the whole landing in memory, some 100 bytes a reading.

    Raises:
        FrameError: there is no such column, or no such folder.
        DamagedFileError: a file is not as it was written; the text names it.
    """
    from whenabouts.frames.kinds import FrameError
    from whenabouts_cloud.correlation.pairs import without_repeats
    from whenabouts_cloud.landing.history import everything, readings_of
    from whenabouts_cloud.landing.scan import encoded, read_piece
    from whenabouts_cloud.landing.schema import IDENTITY, SCHEMA
    from whenabouts_cloud.landing.store import Store

    wanted = list(SCHEMA.names if columns is None else columns)
    unknown = [name for name in wanted if name not in SCHEMA.names]
    if unknown:
        raise FrameError(f"columns: found {unknown[0]!r}, expected some of {', '.join(SCHEMA.names)}")
    if "://" not in str(uri) and not Path(uri).is_dir():
        raise FrameError(
            f"uri: found no folder {uri}, expected that of a landing, or an address such as s3://bucket/landing"
        )
    landing = Store.at(uri)
    schema = encoded(list(dict.fromkeys([*IDENTITY, *wanted])))
    pieces = readings_of(everything(landing))
    tables = [read_piece(landing, piece, schema) for piece in pieces]
    table = without_repeats(pa.concat_tables([schema.empty_table(), *tables]).unify_dictionaries())
    plain = pa.schema([SCHEMA.field(name) for name in wanted])
    return table.select(wanted).cast(plain)
