"""The landing as Spark sees it, and the step from it to the readings of a rule. Every job starts here.

A reading table of a job has `side`: 0 for a, 1 for b. A reading that belongs to both streams of a rule is there twice.
"""

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from whenabouts_cloud.correlation.pairs import RESULT as PAIRS
from whenabouts_cloud.correlation.pairs import SIDE_COLUMNS
from whenabouts_cloud.frontier.times import INT64_MAX
from whenabouts_cloud.landing import schema
from whenabouts_cloud.rules.model import CorrelateRule, Stream, name_regex
from whenabouts_protocol.reading import NO_EVENT_KINDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FRONTIER = from_arrow_schema(schema.FRONTIER)
_OUTPUT = PAIRS.append(pa.field("note", pa.string()))

# Folders are only looked through, not taken for partitions: a landing that is empty when a query starts has no `hour=`
# folder yet, and Spark ends the query when that column turns up later.
LOOK_UP = {"recursiveFileLookup": "true"}
RESULT = StructType(
    [StructField("result_id", StringType()), StructField("rule", StringType()), StructField("key", StringType())]
    + [
        StructField(f"{side}_{name}", kind)
        for side in "ab"
        for name, kind in (
            ("site", StringType()),
            ("gateway", StringType()),
            ("boot", LongType()),
            ("seq", LongType()),
            ("stream", StringType()),
            ("t_min", LongType()),
            ("t_max", LongType()),
        )
    ]
    + [StructField("probability", DoubleType())]
)

# What jobs hand to the sink: rows of the result, where `note` is null; readings to set aside, in the columns of a, whose
# note is their reason; and rows that only tell in JSON what was counted.
OUTPUT = StructType([*RESULT.fields, StructField("note", StringType())])


def columns(*names: str) -> StructType:
    """Columns of the landing, for Spark to read no others."""
    return from_arrow_schema(schema.of(*names))


LANDING = columns("site", "gateway", "boot", "seq", "stream", "kind", "key", "t_min", "t_max")


def readings_of(rule: CorrelateRule, landing: "DataFrame") -> "DataFrame":
    """The readings of both streams with `side`, less those that are in no row of the result whatever else happened.

    Left out are kinds that are no event and, unless such readings of a are told as unmatched, stamps longer than
    (hi - lo)/ct and readings without a key when keys are compared.
    """
    read = landing.select("site", "gateway", "boot", "seq", "stream", "kind", "key", "t_min", "t_max")
    useful = _short_enough(rule)
    if rule.key_equal:
        useful &= F.col("key").isNotNull()
    if rule.kind != "inner":
        useful |= F.col("side") == 0
    events = read.where(~F.col("kind").isin(*NO_EVENT_KINDS)).drop("kind")
    return events.withColumn("side", F.explode(sides_of(rule))).where(useful)


def sides_of(rule: CorrelateRule, first: int = 0) -> "Column":
    """Sides of the rule that `site` and `stream` of a row belong to: an array of `first` and `first` + 1, maybe empty."""
    return F.array_compact(F.array(*(F.when(belongs_to(s), F.lit(n)) for n, s in enumerate((rule.a, rule.b), first))))


def belongs_to(stream: Stream) -> "Column":
    """Whether `site` and `stream` of a row make it part of the stream."""
    if set(stream.pattern) & {"+", "#"}:
        named = F.col("stream").rlike(f"^(?:{name_regex(stream.pattern)})\\z")
    else:
        named = F.col("stream") == stream.pattern  # which Parquet's statistics and dictionaries can decide
    return named if stream.site is None else named & (F.col("site") == stream.site)


def _short_enough(rule: CorrelateRule) -> "Column":
    longest = rule.condition.longest_us
    if longest > INT64_MAX:
        return F.lit(True)
    # An overflow gives null: a stamp of more than 2^63 us.
    return F.coalesce(F.try_subtract("t_max", "t_min") <= longest, F.lit(False))


def shard_of(rule: CorrelateRule, shards: int) -> "Column":
    """The shard a reading is worked on in. Keys that are not compared cannot tell readings apart: one shard for all."""
    return F.pmod(F.xxhash64("key"), F.lit(shards)).cast("int") if rule.key_equal else F.lit(0)


def result_rows(rows: pa.Table) -> pa.Table:
    """Rows of a result as rows of OUTPUT."""
    return rows.append_column("note", pa.nulls(rows.num_rows, pa.string()))


def counts_row(counts: dict[str, Any], output: pa.Schema = _OUTPUT) -> pa.Table:
    """The row of OUTPUT, or of another schema with a note, that tells these counts."""
    return pa.Table.from_pylist([{"note": json.dumps(counts)}], schema=output)


def late_rows(rule: CorrelateRule, late: pa.Table) -> pa.Table:
    """Readings to set aside (`online.LATE`) as rows of OUTPUT."""
    told = {"rule": pa.repeat(pa.scalar(rule.name), late.num_rows), "key": late["key"], "note": late["reason"]}
    told |= {f"a_{name}": late[name] for name in SIDE_COLUMNS}
    return pa.table([told.get(x.name, pa.nulls(late.num_rows, x.type)) for x in _OUTPUT], schema=_OUTPUT)
