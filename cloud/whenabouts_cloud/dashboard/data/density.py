"""How many readings each lane has in each stretch of time: a sparse histogram whose stretches widen when it is full.

A stretch (bucket) is 2^k us wide and begins at a multiple of its width, so a coarser histogram is an exact sum of a finer
one. An entry is a lane, a bucket and a count, in sorted runs that are merged when one is not twice as long as the next:
adding n readings costs n log n in all. With more than `most` entries k grows by one, and entries join.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

FIRST_SHIFT = 10  # buckets of 1024 us
MAX_ENTRIES = 1_000_000  # 12 bytes each, and twice as much again while runs are merged
PART = 65_536  # entries of the longest run that are merged at once
MOST_PLACES = 8  # for each reading of a block, in which it is counted without sorting
_LANE = 2**43  # of a key, above the bucket: lanes below 2^20

Run = tuple[Any, Any]  # sorted keys, counts


@dataclass(frozen=True)
class Density:
    """Counts by lane and bucket; a value, so that one thread can add to it while others read what was there before.

    most: entries. shift: k. outside: readings beyond the times that it can hold (1970 to 2255). runs: sorted keys and their
    counts, the longest first.
    """

    most: int = MAX_ENTRIES
    shift: int = FIRST_SHIFT
    outside: int = 0
    runs: tuple[Run, ...] = ()

    def added(self, lanes: Any, middles: Any) -> "Density":
        """With more readings: lanes (int32, below 2^20) and the middles of their stamps (us)."""
        held = (middles >= 0) & (middles < 2**53) & (lanes >= 0)
        outside = self.outside + int(len(middles) - held.sum())
        if not held.any():
            return replace(self, outside=outside)
        runs = [*self.runs, _entries(lanes[held].astype(np.int64), middles[held] >> self.shift)]
        while len(runs) > 1 and len(runs[-2][0]) < 2 * len(runs[-1][0]):
            runs[-2:] = [_joined(runs[-2:])]
        made = replace(self, outside=outside, runs=tuple(runs))
        while len(made) > self.most:
            made = made._widened()
        return made

    def counts(self, lanes: list[int], from_us: int, column_us: int, columns: int) -> Any:
        """Readings by lane and column, int64 [lane, column]; a bucket counts where its beginning is.

        Exact if `aligned`.
        """
        found = np.zeros((len(lanes), columns), np.int64)
        first = max(0, from_us >> self.shift)
        end = max(first, -(-(from_us + column_us * columns) >> self.shift))
        for keys, counts in self.runs:
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
        return sum(len(keys) for keys, _ in self.runs)

    def _widened(self) -> "Density":
        """Each two buckets joined. One run at the end: halving keeps the order within a lane, not the places of lanes."""
        return replace(self, shift=self.shift + 1, runs=(_joined(self.runs, _halved),))


def _entries(lanes: Any, buckets: Any) -> Run:
    """Sorted keys and counts of readings; without sorting where lanes times buckets are few, as they are in most blocks."""
    first, width = int(buckets.min()), int(buckets.max() - buckets.min()) + 1
    places = (int(lanes.max()) + 1) * width
    if places > MOST_PLACES * len(lanes):
        keys, counts = np.unique(lanes * _LANE + buckets, return_counts=True)
        return keys, counts.astype(np.uint32)
    counts = np.bincount(lanes * width + (buckets - first), minlength=places)
    used = np.flatnonzero(counts)
    return used // width * _LANE + (used % width + first), counts[used].astype(np.uint32)


def _joined(runs: Sequence[Run], changed: Callable[[Any], Any] = lambda keys: keys) -> Run:
    """One run of several, part by part, so that sorting needs little memory. changed: makes new keys of each part."""
    longest = runs[0][0]
    borders = [*(longest[PART::PART] & ~1), 2**63 - 1]  # even, so that two buckets that join are in one part
    begins, parts = [0] * len(runs), []
    for border in borders:
        ends = [int(np.searchsorted(keys, border)) for keys, _ in runs]
        slices = [slice(*limits) for limits in zip(begins, ends, strict=True)]
        keys, counts = (np.concatenate([run[n][x] for run, x in zip(runs, slices, strict=True)]) for n in (0, 1))
        if len(keys):
            parts.append(_summed(changed(keys), counts))
        begins = ends
    return np.concatenate([keys for keys, _ in parts]), np.concatenate([counts for _, counts in parts])


def _halved(keys: Any) -> Any:
    """Keys of buckets twice as wide. The order stays."""
    lanes = keys // _LANE * _LANE
    return lanes + ((keys - lanes) >> 1)


def _summed(keys: Any, counts: Any) -> Run:
    """Distinct keys, sorted, and the sum of the counts of each; there is at least one."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first], np.add.reduceat(counts, first).astype(np.uint32)
