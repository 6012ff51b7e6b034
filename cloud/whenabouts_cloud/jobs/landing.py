"""Reads the landing with Spark: readings, watermarks of gateways, and the readings of a stream."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from whenabouts_cloud.frontier.gateways import Watermark
from whenabouts_cloud.landing import schema
from whenabouts_cloud.rules.model import Stream, name_regex

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

# Folders are searched, not read as partitions: a landing that is empty when a query starts has no `hour=` folder yet, and
# Spark ends the query when that column appears later.
LOOK_UP = {"recursiveFileLookup": "true", "parquet.page.verify-checksum.enabled": "true"}
ALL_AGES = "36500d"  # by default the file source ignores files more than a week older than the newest
_FRONTIER = from_arrow_schema(schema.FRONTIER)


def read_readings(
    spark: "SparkSession", landing: str, columns: Iterable[str], left_out: Sequence[str] = ()
) -> "DataFrame":
    """These columns of all readings in a landing folder, without those in some files, by their paths below it."""
    reader = spark.read.schema(from_arrow_schema(schema.of(*columns))).options(**LOOK_UP)
    return _without(reader.parquet(landing), landing, left_out)


def follow_readings(
    spark: "SparkSession", landing: str, columns: Iterable[str], left_out: Sequence[str] = ()
) -> "DataFrame":
    """These columns of the readings of a landing folder, as a stream, without those in some files."""
    reader = _stream(spark).schema(from_arrow_schema(schema.of(*columns))).options(**LOOK_UP)
    return _without(reader.parquet(landing), landing, left_out)


def follow_watermarks(spark: "SparkSession", landing: str) -> "DataFrame":
    """site, gateway, frontier_us and streams of the gateways' watermarks, as a stream; no column is null."""
    known = _known(_stream(spark).schema(_FRONTIER).json(f"{landing}/{schema.FRONTIER_DIR}"))
    streams = F.coalesce(F.array_compact("streams"), F.array().cast("array<string>"))
    return known.select("site", "gateway", "frontier_us", streams.alias("streams"))


def latest_watermarks(spark: "SparkSession", landing: str) -> list[Watermark]:
    """The latest watermark of each gateway in a landing folder."""
    try:
        lines = spark.read.schema(_FRONTIER).json(f"{landing}/{schema.FRONTIER_DIR}")
    except AnalysisException:  # the ingest has not yet made the folder
        return []
    latest = _known(lines).groupBy("site", "gateway").agg(F.max("frontier_us")).collect()
    return [(f"{site}/{gateway}", us) for site, gateway, us in latest]


def belongs_to(stream: Stream) -> "Column":
    """Condition that `site`, `gateway` and `stream` of a row belong to the stream."""
    if set(stream.pattern) & {"+", "#"}:
        named = F.col("stream").rlike(f"^(?:{name_regex(stream.pattern)})\\z")
    else:
        named = F.col("stream") == stream.pattern  # Parquet can skip data by this comparison
    for column, name in (("site", stream.site), ("gateway", stream.gateway)):
        named = named if name is None else named & (F.col(column) == name)
    return named


def belongs_to_any(streams: Iterable[Stream]) -> "Column":
    """Condition that a row belongs to at least one of the streams."""
    return reduce(lambda x, y: x | y, map(belongs_to, streams), F.lit(False))


def shard_of_key(shards: int) -> "Column":
    """Shard of a row by its key, in 0..shards-1."""
    return F.pmod(F.xxhash64("key"), F.lit(shards)).cast("int")


def _stream(spark: "SparkSession") -> "DataStreamReader":
    return spark.readStream.option("maxFileAge", ALL_AGES)


def _without(readings: "DataFrame", landing: str, left_out: Sequence[str]) -> "DataFrame":
    """Leave files out: Spark applies a condition on their paths before it opens any."""
    if not left_out:
        return readings
    path = F.url_decode(F.replace(F.col("_metadata.file_path"), F.lit("+"), F.lit("%2B")))
    local = F.regexp_replace(path, "^file:/+", "/")
    return readings.where(~local.isin(*(f"{landing}/{name}" for name in left_out)))


def _known(lines: "DataFrame") -> "DataFrame":
    return lines.where("site is not null and gateway is not null and frontier_us is not null")
