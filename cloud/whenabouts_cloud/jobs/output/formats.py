"""The kinds of results that jobs publish: the names of their files, their columns, and what is set aside of them.

An operator makes rows of a result, where `note` is null; readings to set aside, whose note is the reason; and rows that tell
in JSON what was counted. `divided` takes them apart.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.cep.shard.results import COUNT
from whenabouts_cloud.cep.shard.results import RESULT as MATCH
from whenabouts_cloud.correlation.pairs import READING, SIDE_COLUMNS
from whenabouts_cloud.correlation.pairs import RESULT as PAIR
from whenabouts_cloud.latwin.shard.results import RESULT as VERDICT

LATE = pa.schema([("rule", pa.string()), ("reason", pa.string()), *READING])
# What is set aside: folders, the file in each and its columns.
ASIDE = {"_late": ("readings.parquet", LATE), "_late_effects": ("matches.parquet", MATCH)}


@dataclass(frozen=True)
class Format:
    """The rows of one kind of result: the name of its files, their columns, and the rows of each folder of ASIDE made of
    rows that are set aside."""

    file: str
    schema: pa.Schema
    late: Callable[[pa.Table], dict[str, pa.Table]]


class Divided(NamedTuple):
    """What an operator told: rows of the result, rows for folders of ASIDE, and what was counted."""

    results: pa.Table
    aside: dict[str, pa.Table]
    counts: list[dict[str, Any]]


def divided(kind: Format, told: pa.Table) -> Divided:
    """The parts of rows with a note, in their order. Batches without notes, nearly all there is, are not copied."""
    batches = told.to_batches()
    mixed = [batch["note"].null_count < batch.num_rows for batch in batches]
    of_results = [
        batch.filter(pc.is_null(batch["note"])) if some else batch for batch, some in zip(batches, mixed, strict=True)
    ]
    results = pa.Table.from_batches(of_results, told.schema)
    noted = pa.Table.from_batches([batch for batch, some in zip(batches, mixed, strict=True) if some], told.schema)
    noted = noted.filter(pc.is_valid(noted["note"]))
    is_counts = pc.starts_with(noted["note"], "{")
    counts = [json.loads(text) for text in noted.filter(is_counts)["note"].to_pylist()]
    aside = noted.filter(pc.invert(is_counts))
    late = kind.late(aside) if aside.num_rows else {}
    return Divided(results.select(kind.schema.names).cast(kind.schema), late, counts)


def _late_of_pairs(aside: pa.Table) -> dict[str, pa.Table]:
    """Readings that stand in the columns of a."""
    columns = {"reason": "note"} | {name: f"a_{name}" for name in SIDE_COLUMNS}
    return {"_late": pa.table([aside[columns.get(name, name)] for name in LATE.names], schema=LATE)}


def _late_of_matches(aside: pa.Table) -> dict[str, pa.Table]:
    """Readings, which stand alone in `events` of rows without a status; and the matches that they would have changed."""
    changed = pc.is_valid(aside["status"])
    matches, readings = aside.filter(changed), aside.filter(pc.invert(changed))
    alone = pc.list_flatten(readings["events"])
    columns = {"reason": readings["note"], "rule": readings["rule"], "key": readings["key"]}
    late = [columns[name] if name in columns else pc.struct_field(alone, name) for name in LATE.names]
    folders = {"_late": pa.table(late, schema=LATE), "_late_effects": matches.select(MATCH.names).cast(MATCH)}
    return {name: table for name, table in folders.items() if table.num_rows}


def _no_late(_: pa.Table) -> dict[str, pa.Table]:
    """What is late is counted, none set aside."""
    return {}


PAIRS = Format("pairs.parquet", PAIR, _late_of_pairs)
MATCHES = Format("matches.parquet", MATCH, _late_of_matches)
VERDICTS = Format("verdicts.parquet", VERDICT, _no_late)
COUNTS = Format("counts.parquet", COUNT, _late_of_matches)
