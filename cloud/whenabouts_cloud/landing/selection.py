"""Readings of a landing that a question is about: file by file, so that whoever asks can stop between two of them.

A file that is damaged, or that is gone because it was merged or deleted meanwhile, is left out and named. A reading
without an identity, a stream or a stamp is left out too: only other programs write such ones, and no engine can use them.

Cost: some 0.5 ms a file, of which only row groups are read that can hold such readings.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.landing.files import DamagedFileError
from whenabouts_cloud.landing.history import Piece, everything, readings_of
from whenabouts_cloud.landing.scan import read_piece
from whenabouts_cloud.landing.schema import IDENTITY
from whenabouts_cloud.landing.store import Store

NEEDED = (*IDENTITY, "stream", "t_min", "t_max")
MOST_NAMED = 20  # damaged files; the others are only counted


def overlapping(first_us: int, last_us: int) -> pc.Expression:
    """True for readings whose stamps overlap [first_us, last_us]; bounds beyond int64 are none."""
    least, greatest = -(1 << 63), (1 << 63) - 1
    return (pc.field("t_max") >= max(first_us, least)) & (pc.field("t_min") <= min(last_us, greatest))


class Selection:
    """The readings that a condition keeps, with the columns of `schema`: an iterable of a table for each file with some.

    `where` may name any column of the landing; `pieces` are the files to look into, by default all of them. While it is
    iterated, `incomplete` counts readings that were left out, `damaged` files, and `named` has the texts about the first
    MOST_NAMED of these.
    """

    def __init__(
        self, landing: Store, schema: pa.Schema, where: pc.Expression, pieces: Iterable[Piece] | None = None
    ) -> None:
        self._landing, self._schema, self._where, self._pieces = landing, schema, where, pieces
        self._needed = [name for name in NEEDED if name in schema.names]
        self.incomplete = self.damaged = 0
        self.named: list[str] = []

    def __iter__(self) -> Iterator[pa.Table]:
        for piece in readings_of(everything(self._landing)) if self._pieces is None else self._pieces:
            try:
                table = read_piece(self._landing, piece, self._schema, self._where)
            except DamagedFileError as error:
                self.damaged += 1
                self.named += [str(error)] if len(self.named) < MOST_NAMED else []
                continue
            whole = self._complete(table)
            if whole.num_rows:
                yield whole

    def _complete(self, table: pa.Table) -> pa.Table:
        lacking = [name for name in self._needed if table[name].null_count]
        if not lacking:
            return table
        known = pc.is_valid(table[lacking[0]])
        for name in lacking[1:]:
            known = pc.and_(known, pc.is_valid(table[name]))
        whole = table.filter(known)
        self.incomplete += table.num_rows - whole.num_rows
        return whole
