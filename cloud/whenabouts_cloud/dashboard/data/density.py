"""How many readings each lane has in each stretch of time: a sparse histogram whose stretches widen when it is full.

A stretch (bucket) is 2^k us wide and begins at a multiple of its width, so a coarser histogram is an exact sum of a finer
one. An entry is a lane, a bucket and a count, in sorted runs that are merged when one is not twice as long as the next:
adding n readings costs n log n in all. With more than `most` entries k grows by one, and entries join.
"""

from typing import Any

import numpy as np

FIRST_SHIFT = 10  # buckets of 1024 us
MAX_ENTRIES = 1_000_000  # 12 bytes each, and five times as much while runs are merged
_LANE = 2**43  # of a key, above the bucket: lanes below 2^20


class Density:
    """Counts by lane and bucket. shift: k. outside: readings beyond the times that it can hold (1970 to 2255)."""

    def __init__(self, most: int = MAX_ENTRIES, shift: int = FIRST_SHIFT) -> None:
        self.shift, self._most = shift, most
        self.outside = 0
        self._runs: list[tuple[Any, Any]] = []  # sorted keys, counts; the longest first

    def add(self, lanes: Any, middles: Any) -> None:
        """Count readings: lanes (int32, below 2^20) and the middles of their stamps (us)."""
        held = (middles >= 0) & (middles < 2**53) & (lanes >= 0)
        self.outside += int(len(middles) - held.sum())
        if not held.any():
            return
        keys = lanes[held].astype(np.int64) * _LANE + (middles[held] >> self.shift)
        self._runs.append(_summed(keys, None))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            self._runs[-2:] = [_joined(self._runs[-2:])]
        while sum(len(keys) for keys, _ in self._runs) > self._most:
            self._widen()

    def counts(self, lanes: list[int], from_us: int, column_us: int, columns: int) -> Any:
        """Readings by lane and column, int64 [lane, column]; a bucket counts where its beginning is.

        Exact if `aligned`.
        """
        found = np.zeros((len(lanes), columns), np.int64)
        first = max(0, from_us >> self.shift)
        end = max(first, -(-(from_us + column_us * columns) >> self.shift))
        for keys, counts in self._runs:
            for row, lane in enumerate(lanes):
                begin, stop = np.searchsorted(keys, (lane * _LANE + first, lane * _LANE + min(end, _LANE)))
                if begin == stop:
                    continue
                at = (((keys[begin:stop] - lane * _LANE) << self.shift) - from_us) // column_us
                inside = (at >= 0) & (at < columns)
                found[row] += np.bincount(at[inside], counts[begin:stop][inside], columns).astype(np.int64)
        return found

    def aligned(self, from_us: int, column_us: int) -> bool:
        """True if each bucket lies in one column."""
        width = 1 << self.shift
        return from_us % width == 0 and column_us % width == 0

    def __len__(self) -> int:
        return sum(len(keys) for keys, _ in self._runs)

    def _widen(self) -> None:
        """Join each two buckets. One run at the end: halving keeps the order within a lane, but not the places of lanes."""
        keys, counts = _joined(self._runs)
        lanes = keys // _LANE
        self.shift += 1
        self._runs = [_summed(lanes * _LANE + ((keys - lanes * _LANE) >> 1), counts)]


def _joined(runs: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    return _summed(np.concatenate([keys for keys, _ in runs]), np.concatenate([counts for _, counts in runs]))


def _summed(keys: Any, counts: Any | None) -> tuple[Any, Any]:
    """Distinct keys, sorted, and the sum of counts of each (ones, if None)."""
    if counts is None:
        found, number = np.unique(keys, return_counts=True)
        return found, number.astype(np.uint32)
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first], np.add.reduceat(counts, first).astype(np.uint32) if len(keys) else counts
