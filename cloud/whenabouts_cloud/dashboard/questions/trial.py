"""Tries a rule on what has landed in a time, before it is published: the engines of the jobs on one shard, without Spark.

Results equal those of a batch over a landing that holds only these readings. So at the borders of the time a negation may
count as sure although a reading beyond the border would have forbidden it.
"""

import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.dashboard.questions.plain_values import plain
from whenabouts_cloud.frontier.gateways import latest_watermarks
from whenabouts_cloud.jobs.engines.cep import CEP
from whenabouts_cloud.jobs.engines.correlate import CORRELATION
from whenabouts_cloud.jobs.engines.engine import EngineJob
from whenabouts_cloud.jobs.engines.latwin import LATWIN
from whenabouts_cloud.landing.scan import encoded
from whenabouts_cloud.landing.selection import Selection, overlapping
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import CepRule, CorrelateRule, Rule, parse_rules
from whenabouts_cloud.rules.coverage import may_cover

MAX_READINGS = 200_000
MAX_ROWS = 200  # results that are shown; all are counted


def answer(values: Mapping[str, Any]) -> dict[str, Any]:
    """The results of a rule of a text on the readings of a landing (URI) in a time, at most MAX_ROWS of them as `rows`.

    Raises:
        ValueError: the text has mistakes, or more than MAX_READINGS lie in the time.
        LookupError: there is no such rule.
        OSError: the landing cannot be read.
    """
    begun_s = time.monotonic()
    rule = parse_rules(values["text"]).one(values["rule"])
    landing, engine = Store.at(values["landing"]), engine_of(rule)
    # Before the readings, which then hold all that they cover.
    watermarks = latest_watermarks(landing) if engine.waits else []
    landed, damaged = _landed(landing, engine, rule, values["from_us"], values["to_us"])
    output = engine.whole(rule, _tables(engine, rule, landed), watermarks, None)
    return {
        "readings": landed.num_rows,
        "results": output.results.num_rows,
        "more": output.results.num_rows > MAX_ROWS,
        "rows": plain(output.results.slice(0, MAX_ROWS).to_pylist()),
        "late": output.late.num_rows,
        "damaged": damaged,
        "seconds": round(time.monotonic() - begun_s, 3),
    }


def engine_of(rule: Rule) -> EngineJob[Any]:
    """The engine that runs a rule."""
    if isinstance(rule, CepRule):
        return CEP
    return CORRELATION if isinstance(rule, CorrelateRule) else LATWIN


def _landed(landing: Store, engine: EngineJob[Any], rule: Rule, from_us: int, to_us: int) -> tuple[pa.Table, list[str]]:
    """The readings of the rule's streams that overlap the time, and texts about files that were left out.

    A rule that compares vector clocks needs the states of all gateways, too.
    """
    mine = may_cover(engine.streams(rule))
    if engine.shared(rule):
        mine |= pc.field("kind") == "state"
    schema = encoded(engine.columns)
    selection = Selection(landing, schema, overlapping(from_us, to_us) & mine)
    parts, count = [schema.empty_table()], 0
    for table in selection:
        parts.append(table)
        count += table.num_rows
        if count > MAX_READINGS:
            raise ValueError(
                f"found more than {MAX_READINGS} readings of its streams in this time, expected at most that many; "
                "choose a shorter time"
            )
    return pa.concat_tables(parts).unify_dictionaries().combine_chunks(), selection.named


def _tables(engine: EngineJob[Any], rule: Rule, landed: pa.Table) -> dict[str, pa.Table]:
    """The tables of the one shard that holds all."""
    parts: dict[str, list[pa.Table]] = {name: [schema.empty_table()] for name, schema in engine.tables(rule).items()}
    for routed in engine.routed(rule, engine.readings([rule], landed), 1):
        parts[routed.table].append(routed.rows)
    if engine.shared(rule):
        for name, table in engine.shared_rows(landed):
            parts[name].append(table)
    return {name: pa.concat_tables(some).unify_dictionaries().combine_chunks() for name, some in parts.items()}
