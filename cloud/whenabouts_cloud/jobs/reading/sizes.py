"""How many readings the shards of a rule have, and when: measured by a pass over the landing, to cut large shards in time.

A task keeps SAMPLES times of each shard and part of its files, at equal distances in their order, each for as many readings.
So a cut of n readings is off its place by at most n / SAMPLES of them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whenabouts_cloud.blobs import of_bytes, to_bytes
from whenabouts_cloud.frontier.times import FURTHEST_US
from whenabouts_cloud.jobs.engines.engine import AnyRule, EngineJob, Ints
from whenabouts_cloud.jobs.reading.packing import packed_row

SAMPLES = 1024
SIZE = pa.schema(
    [("shard", pa.int64()), ("count", pa.int64()), ("longest_us", pa.int64()), ("times", pa.list_(pa.int64()))]
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


@dataclass(frozen=True)
class Measuring(Generic[AnyRule]):
    """The work of tasks that measure a rule's shards."""

    engine: EngineJob[AnyRule]
    rule: AnyRule
    shards: int

    def readings(self, landed: pa.Table) -> Iterator[pa.RecordBatch]:
        """One row with the sizes of the shards among these readings."""
        rows = []
        for routed in self.engine.routed(self.rule, self.engine.readings([self.rule], landed), self.shards):
            if not routed.rows.num_rows:
                continue
            times = self.engine.times(self.rule, routed.table, routed.rows)
            first, last = (routed.rows[name].to_numpy().astype(np.float64) for name in ("t_min", "t_max"))
            lengths = np.clip(last - first, 0, FURTHEST_US)
            for shard in np.unique(routed.shard).tolist():
                mine = routed.shard == shard
                ordered = np.sort(times[mine])
                at = np.linspace(0, len(ordered) - 1, min(SAMPLES, len(ordered))).astype(np.int64)
                # A length of two numbers of 64 bits is exact as a float to one part in 2^52.
                rows.append((shard, len(ordered), int(lengths[mine].max() * (1 + 2**-50)) + 1, ordered[at]))
        columns = zip(*rows, strict=True) if rows else [[]] * len(SIZE)
        table = pa.table([pa.array(x, kind.type) for x, kind in zip(columns, SIZE, strict=True)], schema=SIZE)
        yield packed_row(0, "sizes", to_bytes(table))

    def watermarks(self, said: Iterable[Mapping[str, Any]], complete: bool) -> Iterator[pa.RecordBatch]:
        """Watermarks do not count."""
        return iter(())


def sizes_in(rows: Iterable[bytes]) -> dict[int, Size]:
    """The sizes of all shards, from the rows of all tasks."""
    sizes: defaultdict[int, Size] = defaultdict(Size)
    for row in rows:
        for one in of_bytes(bytes(row)).to_pylist():
            size = sizes[one["shard"]]
            size.count += one["count"]
            size.longest_us = max(size.longest_us, one["longest_us"])
            size.times.append(np.array(one["times"], np.int64))
            size.weights.append(np.full(len(one["times"]), one["count"] / len(one["times"])))
    return sizes
