"""Cuts large shards of a batch in time, for any distribution: a burst, one reading from 1970, one very frequent key.

Borders are quantiles of the readings' times. A result belongs to the slab in which it begins, and a slab gets every reading
that one of its results may need. Slabs are never narrower than twice the reach, as narrower ones would only copy readings
into more slabs. So a group exceeds its target size where more readings than that lie within twice the reach.
"""

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from whenabouts_cloud.frontier.times import FURTHEST_US, INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.engine import Slab

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MAX_SLABS = 512  # of time in a shard


def slabs_of(readings: "DataFrame", time: "Column", reach: Callable[[int], int], group_rows: int) -> list[Slab]:
    """Slabs that cover all of time for every shard of `readings`, one for a small shard; no slabs if all are small.

    Cost: a pass over the readings to count them, another for the quantiles of shards that are too large.
    """
    sizes = dict(map(tuple, readings.groupBy("shard").count().collect()))
    large = [shard for shard, count in sizes.items() if count > group_rows]
    if not large:
        return []
    shares = [k / MAX_SLABS for k in range(1, MAX_SLABS)]
    longest = F.max(F.least(F.try_subtract("t_max", "t_min"), F.lit(FURTHEST_US)))
    by_shard = readings.where(F.col("shard").isin(large)).groupBy("shard")
    borders: dict[int, tuple[list[int], int]] = {}
    for shard, cuts, length in by_shard.agg(F.percentile_approx(time, shares, 10_000), longest).collect():
        wanted = min(MAX_SLABS, sizes[shard] // group_rows + 1)
        far = reach(length or 0)
        borders[shard] = borders_of([cuts[k * MAX_SLABS // wanted - 1] for k in range(1, wanted)], 2 * far), far
    slabs = []
    for shard in sorted(sizes):
        inner, far = borders.get(shard, ([], 0))
        slabs += [Slab(shard, *ends, far) for ends in itertools.pairwise([INT64_MIN, *inner, INT64_MAX])]
    return slabs


def borders_of(cuts: list[int], apart: int) -> list[int]:
    """Drop ascending cuts that are not more than `apart` after the last one kept."""
    kept: list[int] = []
    for cut in cuts:
        if not kept or cut - kept[-1] > apart:
            kept.append(cut)
    return kept
