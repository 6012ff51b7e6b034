"""How many readings the shards of a rule have, and when: measured while they are packed, to cut large shards in time.

A task keeps SAMPLES times of each shard and part of its files, at equal distances in their order, each for as many readings.
So a cut of n readings is off its place by at most n / SAMPLES of them.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts_cloud.blobs import of_bytes
from whenabouts_cloud.frontier.times import FURTHEST_US, INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.engines.engine import Ints, TimeSlab

SAMPLES = 1024
MAX_SLABS = 512  # of time in a shard
SIZE = pa.schema(
    [("group", pa.int64()), ("count", pa.int64()), ("longest_us", pa.int64()), ("times", pa.list_(pa.int64()))]
)


@dataclass
class Size:
    """The readings of a shard: how many, their longest stamp, a sample of their times and what each time stands for."""

    count: int = 0
    longest_us: int = 0
    times: list[Ints] = field(default_factory=list)
    weights: list[npt.NDArray[np.float64]] = field(default_factory=list)

    def cuts(self, parts: int) -> list[int]:
        """Times that divide the readings into this many parts of about equal size."""
        if parts < 2 or not self.times:
            return []
        times, weights = np.concatenate(self.times), np.concatenate(self.weights)
        order = np.argsort(times, kind="stable")
        upto = np.cumsum(weights[order])
        at = np.searchsorted(upto, upto[-1] * np.arange(1, parts) / parts)
        cuts: list[int] = times[order][np.minimum(at, len(times) - 1)].tolist()
        return cuts


def measure(group: int, rows: pa.Table, times: Ints) -> tuple[int, int, int, Ints]:
    """A row of SIZE for some readings of a group, which have these times."""
    first, last = (rows[name].to_numpy().astype(np.float64) for name in ("t_min", "t_max"))
    length = float(np.clip(last - first, 0, FURTHEST_US).max())
    ordered = np.sort(times)
    at = np.linspace(0, len(ordered) - 1, min(SAMPLES, len(ordered))).astype(np.int64)
    # A length of two numbers of 64 bits is exact as a float to one part in 2^52.
    return group, len(ordered), int(length * (1 + 2**-50)) + 1, ordered[at]


def size_table(rows: Sequence[tuple[int, int, int, Ints]]) -> pa.Table:
    """Rows of SIZE as a table."""
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(x, kind.type) for x, kind in zip(columns, SIZE, strict=True)], schema=SIZE)


def sizes_in(rows: Iterable[bytes]) -> dict[int, Size]:
    """The sizes of all groups, from the tables (`size_table`) of all tasks."""
    sizes: defaultdict[int, Size] = defaultdict(Size)
    for row in rows:
        for one in of_bytes(bytes(row)).to_pylist():
            size = sizes[one["group"]]
            size.count += one["count"]
            size.longest_us = max(size.longest_us, one["longest_us"])
            size.times.append(np.array(one["times"], np.int64))
            size.weights.append(np.full(len(one["times"]), one["count"] / len(one["times"])))
    return sizes


def slabs_of(size: Size, reach_us: int, group_rows: int, low: int = INT64_MIN, high: int = INT64_MAX) -> list[TimeSlab]:
    """Slabs that cover [low, high), by default all of time, each with about `group_rows` readings; in the order of time."""
    inner = borders_of(size.cuts(min(MAX_SLABS, size.count // group_rows + 1)), 2 * reach_us)
    ends = [low, *(border for border in inner if low < border < high), high]
    return [TimeSlab(*both, reach_us) for both in itertools.pairwise(ends)]


def borders_of(cuts: list[int], apart: int) -> list[int]:
    """Drop ascending cuts that are not more than `apart` after the last one kept."""
    kept: list[int] = []
    for cut in cuts:
        if not kept or cut - kept[-1] > apart:
            kept.append(cut)
    return kept
