"""The stream buffer of the block operators: processed tuples as five int64 columns in one order, with a moving front."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

KEY, MIDDLE, LENGTH, INDEX, ARRIVAL = range(5)
FIRST_ROOM = 256


class Columns:
    """Rows `rows[:, i]` = (key, doubled middle, length, index, arrival), ordered by key, equal ones by arrival."""

    def __init__(self) -> None:
        self._data: Ints = np.empty((5, FIRST_ROOM), np.int64)
        self._front = self._end = 0

    def __len__(self) -> int:
        return self._end - self._front

    @property
    def rows(self) -> Ints:
        """A view of the held rows."""
        return self._data[:, self._front : self._end]

    def merge(self, block: Ints) -> None:
        """Insert a block that is ordered by key; only the part of the buffer after its first key moves."""
        count = block.shape[1]
        if not count:
            return
        self._make_room(count)
        keys = self._data[KEY, self._front : self._end]
        at = self._end if not len(keys) or keys[-1] <= block[KEY, 0] else None
        if at is None:
            at = self._front + int(keys.searchsorted(block[KEY, 0], side="right"))
            block = np.concatenate([self._data[:, at : self._end], block], axis=1)
            block = block[:, block[KEY].argsort(kind="stable")]
        self._data[:, at : at + block.shape[1]] = block
        self._end += count

    def drop_below(self, bound: int) -> int:
        """Drop rows with a smaller key; return their number."""
        if not len(self) or self._data[KEY, self._front] >= bound:
            return 0
        count = int(self.rows[KEY].searchsorted(bound))
        self._front += count
        return count

    def drop_first(self, count: int) -> None:
        """Drop `count` rows at the front."""
        self._front += count

    def _make_room(self, count: int) -> None:
        room = self._data.shape[1]
        if self._end + count <= room:
            return
        held = len(self)
        if held + count > room // 2:
            room = 2 * max(room, held + count)
        data = np.empty((5, room), np.int64)
        data[:, :held] = self.rows
        self._data, self._front, self._end = data, 0, held
