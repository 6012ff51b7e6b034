"""A rule about events in an order over a whole landing, as one Spark job: the set of matches that a stream of it ends with.

Events are divided into shards by key. A shard that is too large to be held at once is divided in time as well, into slabs
of about equally many events, between quantiles: a match belongs to the slab in which its first event begins, and a slab
gets every event that a match of it may have or a negation of it may forbid. Not divided in time are rules that no window
bounds: those that skip after a match, as what is skipped depends on all before, and those that order by vector clocks. Nor
are those that count, whose keys have few numbers each.

Cost: one scan, packed into one shuffle of few large rows (`event_ipc`); for landings above GROUP_EVENTS rows a count before
it, and quantiles of the shards that are too large. A group is held in memory whole, at about 200 bytes an event.
"""

import functools
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from whenabouts_cloud.cep.shard.batch import matches_of
from whenabouts_cloud.cep.shard.counted import counts_of
from whenabouts_cloud.cep.shard.events import Ints, moved
from whenabouts_cloud.cep.shard.results import COUNT, RESULT
from whenabouts_cloud.cep.shard.views import Views
from whenabouts_cloud.frontier.gateways import gateways_of
from whenabouts_cloud.frontier.times import FURTHEST_US, INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.event_ipc import (
    LANDING,
    PACKED_RESULT,
    events_in,
    output_of,
    packed,
    packed_rows,
    readings_of,
    unpacked,
    views_in,
    views_of,
)
from whenabouts_cloud.jobs.landing import LOOK_UP
from whenabouts_cloud.jobs.output.task_files import Tell
from whenabouts_cloud.rules.model import CepRule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GROUP_EVENTS = 1_000_000  # aimed at in one group, which a worker holds in memory whole
MAX_SLABS = 512  # of time in a shard


class Slab(NamedTuple):
    """Matches of a shard that begin within [low, high), and how far beyond that their events may lie."""

    shard: int
    low: int
    high: int
    reach: int


def read_landing(spark: "SparkSession", landing: str) -> "DataFrame":
    """The readings of a landing folder, only the columns that rules about events in an order may need."""
    return spark.read.schema(LANDING).options(**LOOK_UP).parquet(landing)


def detect_landing(
    rule: CepRule, landing: "DataFrame", shards: int = 4, group_events: int = GROUP_EVENTS
) -> "DataFrame":
    """The matches of a rule in a landing, with the columns of RESULT, or its counts (COUNT); as `detect_packed`."""
    rows = unpacked(detect_packed(rule, landing, shards, group_events))
    return rows.where("note is null").select((COUNT if rule.count else RESULT).names)


def detect_packed(
    rule: CepRule, landing: "DataFrame", shards: int = 4, group_events: int = GROUP_EVENTS, tell: Tell = packed_rows
) -> "DataFrame":
    """The same with rows that tell what each group counted, packed, or told in the way of a sink.

    May run small jobs at once, to place slabs and to learn views; the result itself is lazy like any frame.
    """
    readings = readings_of(rule, landing, shards)
    slabs = _slabs(rule, readings, group_events) if landing.count() > group_events else []
    groups = functools.partial(_into_slabs, slabs) if slabs else None

    views = Views()
    if rule.pattern.mode == "causal":
        views.add(views_in(row.views for row in views_of(landing).collect()))

    # A function of its own: Spark wants to see its annotations.
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for row in tell(_group(rule, slabs, views, pa.Table.from_batches(batches))):
            yield pa.RecordBatch.from_arrays([pa.array([row], pa.binary())], ["told"])

    # By number: a hash of so few groups would put several into one task and leave others without any.
    rows = packed(rule, readings, groups).repartitionById(len(slabs) or shards, "group")
    return rows.groupBy("group").applyInArrow(work, PACKED_RESULT)


def _slabs(rule: CepRule, readings: "DataFrame", group_events: int) -> list[Slab]:
    """Slabs that cover all of time for every shard, one where it is small enough; none if all are."""
    sizes = dict(map(tuple, readings.groupBy("shard").count().collect()))
    large = [shard for shard, count in sizes.items() if count > group_events]
    if not large or rule.count or rule.pattern.skip != "none" or rule.pattern.mode == "causal":
        return []
    shares = [k / MAX_SLABS for k in range(1, MAX_SLABS)]
    length = F.max(F.least(F.try_subtract("t_max", "t_min"), F.lit(FURTHEST_US)))
    of = readings.where(F.col("shard").isin(large)).groupBy("shard")
    found = {}
    for shard, cuts, longest in of.agg(F.percentile_approx("t_min", shares, 10_000), length).collect():
        reach = rule.pattern.window_us + 2 * max(longest or 0, rule.longest_us) + 1
        wanted = min(MAX_SLABS, sizes[shard] // group_events + 1)
        borders: list[int] = []
        for k in range(1, wanted):
            cut = cuts[k * MAX_SLABS // wanted - 1]
            # Narrower slabs than the reach would only copy events into ever more of them.
            if not borders or cut - borders[-1] > 2 * reach:
                borders.append(cut)
        found[shard] = (borders, reach)
    slabs = []
    for shard in sorted(sizes):
        borders, reach = found.get(shard, ([], 0))
        slabs += [Slab(shard, *ends, reach) for ends in itertools.pairwise([INT64_MIN, *borders, INT64_MAX])]
    return slabs


def _into_slabs(slabs: list[Slab], rule: CepRule, events: pa.Table, shard: Ints) -> list[tuple[Ints, Ints]]:
    """(rows, group) of events for every slab that they can reach."""
    types = events["type"].to_numpy()
    t, t_max = (moved(rule, types, events[name].to_numpy()) for name in ("t_min", "t_max"))
    pairs = []
    for number, slab in enumerate(slabs):
        inside = shard == slab.shard
        if slab.low != INT64_MIN:
            inside &= t_max >= slab.low - slab.reach
        if slab.high != INT64_MAX:
            inside &= t <= slab.high + slab.reach
        at = np.flatnonzero(inside)
        pairs.append((at, np.full(len(at), number)))
    return pairs


def _group(rule: CepRule, slabs: list[Slab], views: Views, rows: pa.Table) -> pa.Table:
    """The matches of one group and a row of counts. What lies in two slabs is counted in one of them."""
    events = events_in(rule, (blob.as_buffer() for blob in rows["events"]))
    if rule.count:
        return _counted(rule, events)
    found = matches_of(rule, events, views)
    matches = found.matches
    home = np.ones(events.num_rows, bool)
    if slabs:
        slab = slabs[rows["group"][0].as_py()]
        mine = (found.start_us >= slab.low) & (found.start_us < slab.high)
        matches = matches.filter(pa.array(mine))
        t = moved(rule, events["type"].to_numpy(), events["t_min"].to_numpy())
        home = (t >= slab.low) & ((t < slab.high) | (slab.high == INT64_MAX))
    counts = {
        "readings": int(home[found.once].sum()),
        "repeats": int((home & found.within).sum() - home[found.once].sum()),
        "beyond_time": int((home & ~found.within).sum()),
        "matches": matches.num_rows,
        "alone": len(found.alone),
        "alone_at": gateways_of(events.take(pa.array(found.alone))),
    }
    return output_of(matches, counts)


def _counted(rule: CepRule, events: pa.Table) -> pa.Table:
    """The counts of one group and a row of what there was."""
    found = counts_of(rule, events)
    counts = {
        "readings": len(found.once),
        "repeats": int(found.within.sum()) - len(found.once),
        "beyond_time": int((~found.within).sum()),
        "counts": found.counts.num_rows,
        "middles": found.middles,
        "alone_at": [],
    }
    return output_of(found.counts, counts)
