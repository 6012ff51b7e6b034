"""Runs rules over a growing landing: readings and watermarks -> state per rule and shard -> results.

Readings are read and packed once for all rules of an engine, by the tasks that read the files (`source`). Readings go to
their shard, watermarks of gateways to every shard, so a result that becomes final by time is emitted even if no further
reading of its key arrives. A shard is one row of Spark's state, the snapshot of a `shard.Shard`. Shards are few and coarse,
because the operator costs per key and per state access, hardly per reading.

Each rule has its own shards, so its frontier and its state do not depend on other rules, and rules can be added and removed
between two queries over the same checkpoint.

A long history is taken in pieces that end with watermarks, so that the state stays small, if its frontiers have numbers.

A watermark that one step of a shard reads counts from its next step on (`frontier`). A micro-batch holds all readings that
its watermarks cover (`landing.history`), so a second step, without readings, follows at once. Only in a landing of several
ingests, or with frontiers of older versions, which have no numbers, it is left to the next micro-batch.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from whenabouts_cloud.jobs.engines.engine import AnyRule, EngineJob
from whenabouts_cloud.jobs.output.left_out import LeftOut
from whenabouts_cloud.jobs.output.output_place import Output
from whenabouts_cloud.jobs.output.sink import OnBatch, OnFailure, ResultSink
from whenabouts_cloud.jobs.output.task_files import WRITTEN, Write
from whenabouts_cloud.jobs.output.used_watermarks import used_watermarks
from whenabouts_cloud.jobs.reading.packing import COMPLETE, Packing, group_of, rule_of, tables_of
from whenabouts_cloud.jobs.reading.source import Reading, growing_frame
from whenabouts_cloud.jobs.work import QueryOptions
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.shard import together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STATE = "snapshot binary"
MAX_BYTES = 16 << 20  # of the files of a micro-batch, about: a million readings


def start_query(
    engine: EngineJob[AnyRule],
    rules: Mapping[int, AnyRule],
    spark: "SparkSession",
    options: QueryOptions,
    report: OnBatch | None = None,
    gone: Sequence[int] = (),
    failed: OnFailure | None = None,
) -> "StreamingQuery":
    """Start publishing the results of rules below `options.out`, from its checkpoint if there is one.

    A damaged file ends the query with a DamagedInputError, given to `failed`; the next query leaves the file out.
    Rules may differ from those of the previous query, if that has no unfinished micro-batch: rules with new numbers see
    readings that land from now on, the state of rules in `gone` is removed with the next watermark.
    """
    landing, out, shards, trigger_s = (
        Store.at(options.landing),
        Output.at(options.out),
        options.shards,
        options.trigger_s,
    )
    left_out = LeftOut(landing, out.store)
    shared = [n for n, rule in rules.items() if engine.shared(rule)]
    sharing = [group_of(n, shard) for n in shared for shard in range(engine.shards(rules[n], shards))]
    packing = Packing(engine, dict(rules), shards, sharing=sharing, gone=gone)
    used = used_watermarks(out.store)
    reading = Reading(landing, engine.columns, frozenset(left_out.names()), packing, MAX_BYTES, used)
    sink = ResultSink(engine.results(next(iter(rules.values()))), out, report, failed, left_out)
    return sink.follow(functools.partial(_results, engine, dict(rules), spark, reading), trigger_s)


def _results(
    engine: EngineJob[AnyRule], rules: dict[int, AnyRule], spark: "SparkSession", reading: Reading, write: Write
) -> "DataFrame":
    """Return the streaming frame of records about written files (`task_files`)."""
    rows = growing_frame(spark, reading)
    work = functools.partial(_step, engine, rules, write)
    return rows.groupBy("group").applyInPandasWithState(work, WRITTEN, STATE, "append", GroupStateTimeout.NoTimeout)


def _step(
    engine: EngineJob[AnyRule],
    rules: dict[int, AnyRule],
    write: Write,
    key: tuple[int],
    rows: Iterator[pd.DataFrame],
    state: GroupState,
) -> Iterator[pd.DataFrame]:
    """Adapt Spark's state to `shard.Shard`."""
    rule = rules.get(rule_of(int(key[0])))
    if rule is None:  # gone
        state.remove()
        return
    shard = engine.shard(rule)
    if state.exists:
        shard.restore(bytes(state.get[0]))
    blobs = [row for part in rows for row in zip(part["table"], part["rows"], strict=True)]
    output = shard.step(*tables_of(engine, rule, blobs))
    if any(name == COMPLETE for name, _ in blobs):
        output = together(output, shard.step(*tables_of(engine, rule, [])))
    state.update((shard.snapshot(),))
    counts = {"shard": int(key[0]), "rule": rule.name, "side_output": output.late.num_rows, **output.counts}
    yield pd.DataFrame({"written": [write(output._replace(counts=counts))]})
