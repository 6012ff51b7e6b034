"""Rules about events in an order as Spark jobs: tables "events" (`events.schema_of`) and, for CAUSAL, "views" (`views.RUN`).

Events are sharded by key. In a rule ACROSS KEYS one match can hold events of any keys, so all events are in one shard. Views
come from state readings, which the rule's streams need not cover; every shard gets all views.

In a batch a match belongs to the slab in which its first event begins. Rules that no window bounds are not cut in time:
rules with SKIP, where each match depends on all earlier matches, and rules that order by vector clocks. Rules with COUNT are
not cut either, as they keep few numbers a key. A group takes about 200 bytes an event.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from whenabouts_cloud.blobs import to_bytes
from whenabouts_cloud.cep.shard.at_once import matches_of
from whenabouts_cloud.cep.shard.counted import CountShard, counts_of
from whenabouts_cloud.cep.shard.events import events_of, moved, schema_of, sources_of
from whenabouts_cloud.cep.shard.results import COUNT, RESULT
from whenabouts_cloud.cep.shard.shard import CepShard
from whenabouts_cloud.cep.shard.views import MARK, RUN, STATE, Views, runs_of
from whenabouts_cloud.frontier.gateways import Watermark, gateways_of
from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.engine import EngineJob, Mask, Routed, TimeSlab
from whenabouts_cloud.jobs.landing import belongs_to_any, shard_of_key
from whenabouts_cloud.landing.schema import STAMPED
from whenabouts_cloud.rules.model import CepRule, Stream
from whenabouts_cloud.shard import Shard, StepOutput
from whenabouts_protocol.reading import NO_EVENT_KINDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class Cep(EngineJob[CepRule]):
    """Jobs of rules that either all have COUNT or all have not."""

    columns = (*STAMPED, "kind", "value", "unit", "attrs", "vclock")

    def results(self, rule: CepRule) -> pa.Schema:
        return COUNT if rule.count else RESULT

    def tables(self, rule: CepRule) -> Mapping[str, pa.Schema]:
        views = {"views": RUN} if self.shared(rule) else {}
        return {"events": schema_of(rule.plan(), rule.count), **views}

    def streams(self, rule: CepRule) -> Sequence[Stream]:
        return rule.streams

    def shards(self, rule: CepRule, shards: int) -> int:
        return shards if rule.pattern.per_key else 1

    def readings(self, rules: Sequence[CepRule], landed: "DataFrame", shards: int) -> "DataFrame":
        """Readings of the streams of all rules, with the columns that any rule needs; attributes are parsed once."""
        streams = dict.fromkeys(stream for rule in rules for stream in rule.streams)
        rows = landed.where(~F.col("kind").isin(*NO_EVENT_KINDS)).where(belongs_to_any(streams))
        if all(rule.pattern.per_key for rule in rules):
            rows = rows.where(F.col("key").isNotNull())
        sources = sorted({name for rule in rules for name in sources_of(rule.plan(), rule.count)})
        if any(name.startswith("attrs:") for name in sources):
            rows = rows.withColumn("parsed", F.try_parse_json("attrs"))
        keyed = any(rule.pattern.per_key for rule in rules)
        shard = (shard_of_key(shards) if keyed else F.lit(0)).alias("shard")
        return rows.select(shard, *STAMPED, *(_source(name).alias(name) for name in sources))

    def routed(self, rule: CepRule, readings: pa.Table, shards: int) -> Iterable[Routed]:
        events, row = events_of(rule, rule.plan(), readings)
        shard = readings["shard"].to_numpy()[row] if rule.pattern.per_key else np.zeros(len(row), np.int64)
        return [Routed("events", events, shard)]

    def shard(self, rule: CepRule) -> Shard:
        return CountShard(rule) if rule.count else CepShard(rule)

    def shared(self, rule: CepRule) -> bool:
        return rule.pattern.mode == "causal"

    def shared_rows(self, landed: "DataFrame") -> "DataFrame":
        """State readings that begin a view, packed."""
        emitted = landed.where((F.col("kind") == "state") & F.contains("attrs", F.lit(MARK)))
        return emitted.select(*STATE).mapInArrow(_pack_views, "table string, rows binary")

    def whole(
        self, rule: CepRule, tables: Mapping[str, pa.Table], watermarks: Sequence[Watermark], slab: TimeSlab | None
    ) -> StepOutput:
        if rule.count:
            return _counted(rule, tables["events"])
        views = Views()
        if "views" in tables:
            views.add(tables["views"])
        return _matched(rule, tables["events"], views, slab)

    def cut(self, rule: CepRule) -> "tuple[Column, Callable[[int], int]] | None":
        if rule.count or rule.pattern.skip != "none" or rule.pattern.mode == "causal":
            return None
        return F.col("t_min"), lambda longest: rule.pattern.window_us + 2 * max(longest, rule.longest_us) + 1

    def inside(self, rule: CepRule, table: str, rows: pa.Table) -> Callable[[TimeSlab], Mask]:
        types = rows["type"].to_numpy()
        t, t_max = (moved(rule, types, rows[name].to_numpy()) for name in ("t_min", "t_max"))

        def inside(slab: TimeSlab) -> Mask:
            needed: Mask = np.ones(len(t), bool)
            if slab.low != INT64_MIN:
                needed &= t_max >= slab.low - slab.reach
            if slab.high != INT64_MAX:
                needed &= t <= slab.high + slab.reach
            return needed

        return inside


CEP = Cep()


def _source(name: str) -> "Column":
    """Column that a condition reads; for an attribute, its JSON."""
    if not name.startswith("attrs:"):
        return F.col(name)
    path = "$['" + name.removeprefix("attrs:").replace("'", "\\'") + "']"
    return F.to_json(F.try_variant_get("parsed", path, "variant"))


def _pack_views(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    views = Views()
    for batch in batches:
        views.add(runs_of(pa.Table.from_batches([batch])))
    known = views.table()
    if known.num_rows:
        yield pa.RecordBatch.from_pydict({"table": ["views"], "rows": pa.array([to_bytes(known)], pa.binary())})


def _matched(rule: CepRule, events: pa.Table, views: Views, slab: TimeSlab | None) -> StepOutput:
    """Matches of one group. A reading in two slabs is counted in one of them only."""
    result = matches_of(rule, events, views)
    matches = result.matches
    home = np.ones(events.num_rows, bool)
    if slab is not None:
        mine = (result.start_us >= slab.low) & (result.start_us < slab.high)
        matches = matches.filter(pa.array(mine))
        t = moved(rule, events["type"].to_numpy(), events["t_min"].to_numpy())
        home = (t >= slab.low) & ((t < slab.high) | (slab.high == INT64_MAX))
    counts = {
        "readings": int(home[result.once].sum()),
        "repeats": int((home & result.within).sum() - home[result.once].sum()),
        "beyond_time": int((home & ~result.within).sum()),
        "matches": matches.num_rows,
        "ungrouped": len(result.ungrouped),
        "ungrouped_at": gateways_of(events.take(pa.array(result.ungrouped))),
    }
    return StepOutput(matches, counts)


def _counted(rule: CepRule, events: pa.Table) -> StepOutput:
    """Counts of one group."""
    result = counts_of(rule, events)
    counts = {
        "readings": len(result.once),
        "repeats": int(result.within.sum()) - len(result.once),
        "beyond_time": int((~result.within).sum()),
        "counts": result.counts.num_rows,
        "middles": result.middles,
        "ungrouped_at": [],
    }
    return StepOutput(result.counts, counts)
