"""The landing as a data source of Spark, in batches and as a stream, in any place that `pyarrow.fs` reads.

    from whenabouts_cloud.spark import LandingSource
    spark.dataSource.register(LandingSource)
    spark.read.format("whenabouts").load("s3://bucket/landing")
    spark.readStream.format("whenabouts").schema("site string, stream string, t_min long, t_max long").load("landing")

The columns are those of the landing (`landing.schema`); `.schema(...)` chooses some, and only these are read. Options:

    streams    names or patterns as in rules, separated by commas: "dock/tags,shelf/#"
    sites      names, separated by commas
    hours      of arrival, first and last: "2026-01-31T00..2026-01-31T23"; batches only; other files are not opened
    filterPushdown       "true": conditions of the query are applied while files are read; batches only, and
                         spark.sql.python.filterPushdown.enabled must be true, which is not Spark's default
    maxBytesPerTrigger   of the files of a micro-batch, about; without it a micro-batch reads all that there is

Row groups whose statistics exclude a condition on a name or a number are not read; merged files are sorted by stream and
time. A stream's offset is the last number of each ingest (`landing.history`), so nothing is listed twice and a restart lists
no history.

Rows pass from pyarrow to Spark as Arrow batches. That costs more than Spark's own reader of Parquet, which reads a landing
too, as a folder (`spark.read.parquet`), but lists it whole and does not know which files a merged one has replaced.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from whenabouts_cloud.landing.history import History, Piece, readings_of
from whenabouts_cloud.landing.scan import read_piece
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules.coverage import streams_in

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

TASK_FILES = 1000  # files that a task reads, at most
TASK_BYTES = 64 << 20  # and their bytes, about
BATCH_ROWS = 1 << 16  # rows that Spark is given at a time
_COMPARED: dict[type, Callable[[Any, Any], pc.Expression]] = {
    EqualTo: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
}
HOUR = re.compile(r"\d{4}-\d\d-\d\dT\d\d")


@dataclass
class Pieces(InputPartition):
    """What one task reads."""

    pieces: list[Piece]


class LandingSource(DataSource):
    """The data source `whenabouts`."""

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "whenabouts"

    def schema(self) -> "StructType":
        """The columns of the landing."""
        return from_arrow_schema(SCHEMA)

    def reader(self, schema: "StructType") -> DataSourceReader:
        """Reads all readings in the landing."""
        kind = FilteringReader if self.options.get("filterPushdown", "").lower() == "true" else LandingReader
        return kind(self._landing(), schema, self.options)

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        """Reads readings as they land."""
        return LandingStreamReader(self._landing(), schema, self.options)

    def _landing(self) -> Store:
        if "path" not in self.options:
            raise ValueError("format whenabouts: found no path, expected that of a landing: .load(URI)")
        return Store.at(self.options["path"])


def tasks(landing: Store, pieces: Sequence[Piece], task_bytes: int = TASK_BYTES) -> list[Pieces]:
    """Divide files among tasks, in their order."""
    shared: list[Pieces] = []
    left = 0
    for piece, size in zip(pieces, landing.sizes(one.path for one in pieces), strict=True):
        if not shared or left <= 0 or len(shared[-1].pieces) >= TASK_FILES:
            shared.append(Pieces([]))
            left = task_bytes
        shared[-1].pieces.append(piece)
        left -= size or 0
    return shared


def _batches(
    landing: Store, pieces: Sequence[Piece], schema: pa.Schema, where: pc.Expression | None
) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        yield from read_piece(landing, piece, schema, where).to_batches(max_chunksize=BATCH_ROWS)


class LandingReader(DataSourceReader):
    """Reads what is in the landing when the job is planned."""

    def __init__(self, landing: Store, schema: "StructType", options: Mapping[str, str]) -> None:
        self._landing, self._schema = landing, to_arrow_schema(schema)
        self._where, self._hours = _chosen(options), _hours(options.get("hours"))

    def partitions(self) -> Sequence[InputPartition]:
        """List the landing and divide its files among tasks."""
        history = History(self._landing)
        pieces, start = list[Piece](), dict[str, Any]()
        while (end := history.latest(start)) != start:
            first, last = self._hours
            pieces += (one for one in readings_of(history.pieces(start, end)) if first <= (one.hour or first) <= last)
            history.forget(start := end)
        return tasks(self._landing, pieces)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the files of a task."""
        pieces = partition.pieces if isinstance(partition, Pieces) else []
        return _batches(self._landing, pieces, self._schema, self._where)


class FilteringReader(LandingReader):
    """Reads only rows that fulfil conditions of the query. Spark refuses such a reader where it hands none over."""

    def pushFilters(self, filters: "list[Filter]") -> "Iterator[Filter]":
        """Take conditions that compare a column with values; return the others to Spark."""
        for one in filters:
            condition = _condition(one)
            if condition is None:
                yield one
                continue
            self._where = _both(self._where, condition)


class LandingStreamReader(DataSourceStreamReader):
    """Reads what lands from one offset to the next."""

    def __init__(self, landing: Store, schema: "StructType", options: Mapping[str, str]) -> None:
        self._landing, self._schema = landing, to_arrow_schema(schema)
        self._where, self._max_bytes = _chosen(options), _positive(options.get("maxBytesPerTrigger"))
        self._history: History | None = None

    @property
    def history(self) -> History:
        """The history as far as this process has seen it; tasks have none."""
        if self._history is None:
            self._history = History(self._landing)
        return self._history

    def initialOffset(self) -> dict[str, Any]:
        """The begin of the landing."""
        return {}

    def getDefaultReadLimit(self) -> Any:
        """The limit that the options name."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

        return ReadAllAvailable() if self._max_bytes is None else ReadMaxBytes(self._max_bytes)

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        """How far the landing can be read now."""
        return {**start, **self.history.latest(start, getattr(limit, "max_bytes", None))}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The files between two offsets, divided among tasks."""
        return tasks(self._landing, readings_of(self.history.pieces(start, end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the files of a task."""
        pieces = partition.pieces if isinstance(partition, Pieces) else []
        return _batches(self._landing, pieces, self._schema, self._where)

    def commit(self, end: dict[str, Any]) -> None:
        """Forget files that will not be read again."""
        self.history.forget(end)


def _chosen(options: Mapping[str, str]) -> pc.Expression | None:
    """The condition that the options `streams` and `sites` state."""
    where: pc.Expression | None = None
    if "sites" in options:
        where = pc.field("site").isin(_names(options["sites"]))
    if "streams" in options:
        where = _both(where, streams_in(_names(options["streams"])))
    return where


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _both(one: pc.Expression | None, other: pc.Expression) -> pc.Expression:
    return other if one is None else one & other


def _condition(one: "Filter") -> pc.Expression | None:
    """A condition of Spark on one column of the landing as one of pyarrow."""
    name, *inner = getattr(one, "attribute", None) or ("",)
    if inner or name not in SCHEMA.names or pa.types.is_list(SCHEMA.field(name).type):
        return None
    column, kind = pc.field(name), SCHEMA.field(name).type
    if isinstance(one, In):
        return column.isin(pa.array([x for x in one.value if x is not None], kind))
    compared, value = _COMPARED.get(type(one)), getattr(one, "value", None)
    return None if compared is None or value is None else compared(column, pa.scalar(value, kind))


def _hours(text: str | None) -> tuple[str, str]:
    """First and last hour of the option `hours`."""
    if text is None:
        return "", "~"
    first, dots, last = text.partition("..")
    if not dots:
        last = first
    if not (HOUR.fullmatch(first) and HOUR.fullmatch(last)):
        raise ValueError(f"hours: found {text!r}, expected hours of arrival as in 2026-01-31T00..2026-01-31T23")
    return first, last


def _positive(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise ValueError(f"maxBytesPerTrigger: found {text!r}, expected a number of bytes")
    return int(text)
