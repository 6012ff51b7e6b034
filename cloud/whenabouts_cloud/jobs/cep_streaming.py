"""Rules about events in an order over a landing as it grows: readings, promises -> state per rule and key shard -> matches.

The readings are read and packed once for all rules. Each rule has shards, so its frontier and what it keeps do not depend on
the others, and rules can be added and removed between two queries over the same checkpoint.

Events go to the shard of their key, promises of gateways (and, for CAUSAL, views of groups) to every shard: a match whose
last negation is sealed by time alone is told although no event of its key comes. A shard is one row of Spark's state, the
snapshot of a `CepShard`: few coarse shards, because the operator costs per key and per state access. Events come to it
packed (`event_ipc`), so nothing is done per event outside of kernels and Arrow.

A promise read in one invocation of a shard counts from the next one on (`shard` says why). For that, a shard's next
invocation must hold every reading of it that was visible by then: a listing takes all there is as long as nothing limits
the files per trigger, and a shard is invoked in every micro-batch that has a row for it.

Micro-batches must not be limited by maxFilesPerTrigger, so starting on a long history reads all of it in the first one.
"""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from whenabouts_cloud.cep.shard.counted import CountShard
from whenabouts_cloud.cep.shard.results import aside_rows
from whenabouts_cloud.cep.shard.shard import CepShard
from whenabouts_cloud.frontier.gateways import Promise
from whenabouts_cloud.jobs.correlate_streaming import ALL_AGES
from whenabouts_cloud.jobs.event_ipc import (
    LANDING,
    PACKED_RESULT,
    events_in,
    group_name,
    groups_of,
    output_of,
    packed_each,
    readings_of_all,
    views_in,
    views_of,
)
from whenabouts_cloud.jobs.landing import FRONTIER, LOOK_UP
from whenabouts_cloud.jobs.output.formats import COUNTS, MATCHES
from whenabouts_cloud.jobs.output.sink import Report, ResultSink
from whenabouts_cloud.jobs.output.task_files import Tell
from whenabouts_cloud.rules.current import RunningRules
from whenabouts_cloud.rules.model import CepRule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STATE = "snapshot binary"
NOTHING = -1  # as a stream: the row is about something else
# What a row for a group may be about beside its number: events, a promise, or views. Numbers have no null, which pandas
# would make them floats for.
_ROW = {
    "events": (None, "binary"), "source": ("", "string"), "stream": (NOTHING, "int"), "frontier_us": (0, "long"),
    "views": (None, "binary"),
}  # fmt: skip


def start_query(
    rules: CepRule | RunningRules,
    spark: "SparkSession",
    landing: Path,
    out: Path,
    shards: int,
    trigger_s: float,
    report: Report | None = None,
) -> "StreamingQuery":
    """Start publishing the matches of rules below `out`, going on from its checkpoint if there is one.

    The landing folder must exist; its folder of promises is made if the ingest has not yet done so, for Spark to watch.
    Rules may be others than those of the query before, if that one has no unfinished micro-batch: new ones see what lands
    from now on, the state of those that are gone is forgotten with the next promise.
    """
    (landing / "_frontier").mkdir(exist_ok=True)
    running = rules if isinstance(rules, RunningRules) else RunningRules.of([rules])
    counts = any(rule.count for rule in running.rules.values())
    make = functools.partial(detect_stream, running, spark, str(landing.resolve()), shards)
    return ResultSink(COUNTS if counts else MATCHES, out, report).follow(make, trigger_s)


def detect_stream(running: RunningRules, spark: "SparkSession", landing: str, shards: int, tell: Tell) -> "DataFrame":
    """The streaming frame of the rules' matches and counts, told in the way of a sink, over a landing folder that exists."""
    landed = spark.readStream.option("maxFileAge", ALL_AGES).schema(LANDING).options(**LOOK_UP).parquet(landing)
    promises = spark.readStream.option("maxFileAge", ALL_AGES).schema(FRONTIER).json(f"{landing}/_frontier")
    rules = running.rules
    groups = {number: groups_of(number, rule, shards) for number, rule in rules.items()}
    rows = _filled(packed_each(rules, readings_of_all(list(rules.values()), landed, shards)))
    rows = rows.unionByName(_filled(_promises_of(running, groups, promises, shards)))
    causal = [name for n, rule in rules.items() if rule.pattern.mode == "causal" for name in groups[n]]
    if causal:
        rows = rows.unionByName(_filled(_in_every(views_of(landed), causal)))
    work = functools.partial(_advance_shard, {name: rules[n] for n, names in groups.items() for name in names}, tell)
    grouped = rows.groupBy("group")
    return grouped.applyInPandasWithState(work, PACKED_RESULT, STATE, "append", GroupStateTimeout.NoTimeout)


def _promises_of(
    running: RunningRules, groups: dict[int, list[str]], promises: "DataFrame", shards: int
) -> "DataFrame":
    """For every group the promises about a stream of its rule: rows without events; and one for each group that is gone."""
    gone = [group_name(number, shard) for number in running.gone for shard in range(shards)]

    def spread(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for part in parts:
            rows: list[tuple[str, str, int, int]] = []
            for site, gateway, frontier_us, names in part.itertuples(index=False):
                for number, rule in running.rules.items():
                    for stream, one in enumerate(rule.streams):
                        if any(one.matches(site, name) for name in names):
                            rows += [(group, f"{site}/{gateway}", stream, frontier_us) for group in groups[number]]
            rows += [(group, "", NOTHING, 0) for group in gone] if len(part) else []
            yield pd.DataFrame(rows, columns=["group", "source", "stream", "frontier_us"])

    known = promises.where(
        "site is not null and gateway is not null and frontier_us is not null and streams is not null"
    )
    said = known.select("site", "gateway", "frontier_us", F.array_compact("streams"))
    return said.mapInPandas(spread, "group string, source string, stream int, frontier_us long")


def _in_every(frame: "DataFrame", groups: list[str]) -> "DataFrame":
    """Each row once for every group."""
    return frame.withColumn("group", F.explode(F.array(*map(F.lit, groups))))


def _filled(frame: "DataFrame") -> "DataFrame":
    """Rows for groups, with nothing in the columns of what they are not about."""
    of = {name: F.lit(nothing).cast(kind).alias(name) for name, (nothing, kind) in _ROW.items()}
    return frame.select("group", *(name if name in frame.columns else nothing for name, nothing in of.items()))


def _advance_shard(
    rules: dict[str, CepRule], tell: Tell, key: tuple[str], rows: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Adapter between Spark's state and `CepShard`."""
    rule = rules.get(key[0])
    if rule is None:  # of a rule that is gone
        state.remove()
        return
    shard = CountShard(rule) if rule.count else CepShard(rule)
    if state.exists:
        shard.restore(bytes(state.get[0]))
    blobs, views, promises = [], [], _no_promises(rule)
    for part in rows:
        blobs += part["events"].dropna().tolist()
        views += part["views"].dropna().tolist()
        for stream, own in enumerate(promises):
            some = part[part["stream"] == stream]
            own += zip(some["source"].tolist(), some["frontier_us"].tolist(), strict=True)
    told, late, effects = shard.step(events_in(rule, blobs), promises, views_in(views))
    state.update((shard.snapshot(),))
    aside = (aside_rows(rule, late), late["reason"]), (effects, effects["status"])
    for row in tell(output_of(told, {"shard": key[0], **shard.state()}, *aside)):
        yield pd.DataFrame({"told": [row]})


def _no_promises(rule: CepRule) -> list[list[Promise]]:
    return [[] for _ in rule.streams]
