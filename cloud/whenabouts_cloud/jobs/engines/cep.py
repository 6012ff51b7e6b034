"""Rules about events in an order as Spark jobs: tables "events" (`events.schema_of`) and, for CAUSAL, "views" (`views.RUN`).

Events are sharded by key. In a rule ACROSS KEYS one match can hold events of any keys, so all events are in one shard. Views
come from state readings, which the rule's streams need not cover; every shard gets all views.

In a batch a match belongs to the slab in which its first event begins. Rules that no window bounds are not cut in time:
rules with SKIP, where each match depends on all earlier matches, and rules that order by vector clocks. Rules with COUNT are
not cut either, as they keep few numbers a key. A group takes about 200 bytes an event.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.cep.shard.at_once import matches_of
from whenabouts_cloud.cep.shard.counted import CountShard, counts_of
from whenabouts_cloud.cep.shard.events import events_of, moved, schema_of, sources_of
from whenabouts_cloud.cep.shard.results import COUNT, RESULT
from whenabouts_cloud.cep.shard.shard import CepShard
from whenabouts_cloud.cep.shard.views import MARK, RUN, STATE, Views, runs_of
from whenabouts_cloud.frontier.gateways import Watermark, gateways_of
from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.jobs.engines.engine import EngineJob, Ints, Mask, Routed, TimeSlab
from whenabouts_cloud.jobs.engines.sharding import shard_of_key
from whenabouts_cloud.landing import schema as landing
from whenabouts_cloud.landing.schema import STAMPED, json_in
from whenabouts_cloud.pattern.expressions import words_of
from whenabouts_cloud.rules.coverage import covered, encode, of_kinds
from whenabouts_cloud.rules.model import CepRule, Stream
from whenabouts_cloud.shard import Shard, StepOutput
from whenabouts_protocol.reading import NO_EVENT_KINDS


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

    def readings(self, rules: Sequence[CepRule], landed: pa.Table) -> pa.Table:
        """Readings with the columns that any rule needs, of the streams of all rules if that saves work for each of them.

        Attributes are parsed once.
        """
        sources = sorted({name for rule in rules for name in sources_of(rule.plan(), rule.count)})
        attributes = [name for name in sources if name.startswith("attrs:")]
        mine = ~of_kinds(landed, NO_EVENT_KINDS)
        costly = attributes or any(words_of(rule.plan()) for rule in rules)
        if len(rules) > 1 or costly:  # else `routed` leaves out the others at no cost
            streams = list(dict.fromkeys(stream for rule in rules for stream in rule.streams))
            mine &= covered(streams, landed).any(axis=1)
        readings = landed if mine.all() else landed.filter(pa.array(mine))
        plain = readings.select([*STAMPED, *(name for name in sources if name not in attributes)])
        for name, column in _attributes(readings["attrs"], attributes).items():
            plain = plain.append_column(name, column)
        return plain

    def routed(self, rule: CepRule, readings: pa.Table, shards: int) -> Iterable[Routed]:
        events, row = events_of(rule, rule.plan(), readings)
        shard = shard_of_key(events["key"], shards) if rule.pattern.per_key else np.zeros(len(row), np.int64)
        return [Routed("events", events, shard)]

    def shard(self, rule: CepRule) -> Shard:
        return CountShard(rule) if rule.count else CepShard(rule)

    def shared(self, rule: CepRule) -> bool:
        return rule.pattern.mode == "causal"

    def shared_rows(self, landed: pa.Table) -> Iterable[tuple[str, pa.Table]]:
        """The views that state readings begin."""
        emitted = pc.fill_null(pc.match_substring(landed["attrs"].cast(pa.string()), MARK), False)
        rows = landed.filter(pc.and_(emitted, pa.array(of_kinds(landed, ["state"]))))
        views = Views()
        views.add(runs_of(rows.select(STATE).cast(landing.of(*STATE))))
        known = views.table()
        if known.num_rows:
            yield "views", known

    def whole(
        self, rule: CepRule, tables: Mapping[str, pa.Table], watermarks: Sequence[Watermark], slab: TimeSlab | None
    ) -> StepOutput:
        if rule.count:
            return _counted(rule, tables["events"])
        views = Views()
        if "views" in tables:
            views.add(tables["views"])
        return _matched(rule, tables["events"], views, slab)

    def reach(self, rule: CepRule) -> Callable[[int], int] | None:
        if rule.count or rule.pattern.skip != "none" or rule.pattern.mode == "causal":
            return None
        return lambda longest: rule.pattern.window_us + 2 * max(longest, rule.longest_us) + 1

    def times(self, rule: CepRule, table: str, rows: pa.Table) -> Ints:
        times: Ints = rows["t_min"].to_numpy()
        return times

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


def _attributes(column: pa.ChunkedArray, names: Sequence[str]) -> dict[str, pa.DictionaryArray]:
    """For each `attrs:x` the JSON of attribute x, from JSON objects; each distinct object is parsed once."""
    if not names:
        return {}
    texts = encode(column)
    objects = [_object(text) for text in texts.dictionary.to_pylist()]
    columns = {}
    for name in names:
        attribute = name.removeprefix("attrs:")
        values = [json.dumps(one[attribute]) if attribute in one else None for one in objects]
        columns[name] = pa.DictionaryArray.from_arrays(texts.indices, pa.array(values, pa.string())).cast(pa.string())
    return columns


def _object(text: str | None) -> dict[str, Any]:
    found = json_in(text)
    return found if isinstance(found, dict) else {}


def _matched(rule: CepRule, events: pa.Table, views: Views, slab: TimeSlab | None) -> StepOutput:
    """Matches of one group. A reading in two slabs is counted in one of them only."""
    result = matches_of(rule, events, views, None if slab is None else (slab.low, slab.high))
    home = np.ones(events.num_rows, bool)
    if slab is not None:
        t = moved(rule, events["type"].to_numpy(), events["t_min"].to_numpy())
        home = (t >= slab.low) & ((t < slab.high) | (slab.high == INT64_MAX))
    counts = {
        "readings": int(home[result.once].sum()),
        "repeats": int((home & result.within).sum() - home[result.once].sum()),
        "beyond_time": int((home & ~result.within).sum()),
        "matches": result.matches.num_rows,
        "ungrouped": len(result.ungrouped),
        "ungrouped_at": gateways_of(events.take(pa.array(result.ungrouped))),
    }
    return StepOutput(result.matches, counts)


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
