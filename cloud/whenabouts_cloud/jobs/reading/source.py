"""Reading for jobs: tasks read files of the landing and hand packed rows (`packing`) to Spark.

Offsets of a stream are those of `spark.landing_source`. Readings of several small files are packed together. The watermarks
of a micro-batch are packed by one task.
"""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from whenabouts_cloud.jobs.output.used_watermarks import UsedWatermarks
from whenabouts_cloud.jobs.reading.packing import PACKED
from whenabouts_cloud.landing.history import History, Piece, everything, frontiers_of, readings_of
from whenabouts_cloud.landing.scan import encoded, frontiers_in, read_piece
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.spark.landing_source import Pieces, tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

TASK_BYTES = 4 << 20  # of files, about: a task costs some 10 ms
PACKED_ROWS = 1 << 18  # readings that are packed together: bounds the memory of a task


class Work(Protocol):
    """What a task does with what it has read."""

    def readings(self, landed: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows of PACKED from landed readings."""
        ...

    def watermarks(self, said: Iterable[Mapping[str, Any]], complete: bool) -> Iterator[pa.RecordBatch]:
        """Rows of PACKED from watermarks; complete: all that they cover has been read."""
        ...


@dataclass
class Frontiers(InputPartition):
    """Files of frontiers that one task reads. said: the watermarks that are used instead."""

    pieces: list[Piece]
    complete: bool
    said: list[dict[str, Any]] | None = None


@dataclass(frozen=True)
class Reading:
    """What a job reads: the landing, the columns, the files that it leaves out (paths below the landing), the work.

    used: the watermarks of the micro-batch that published last.
    """

    landing: Store
    columns: Sequence[str]
    left_out: frozenset[str]
    work: Work
    max_bytes: int | None = None  # of the files of a micro-batch, about
    used: UsedWatermarks | None = None

    def partitions(self, pieces: Sequence[Piece]) -> list[InputPartition]:
        """Divide files of readings among tasks."""
        wanted = [one for one in readings_of(list(pieces)) if one.path not in self.left_out]
        return list(tasks(self.landing, wanted, TASK_BYTES))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Do the work of a task."""
        if isinstance(partition, Frontiers):
            said = frontiers_in(self.landing, partition.pieces) if partition.said is None else iter(partition.said)
            yield from self.work.watermarks(said, partition.complete)
            return
        schema, read, count = encoded(self.columns), list[pa.Table](), 0
        for piece in partition.pieces if isinstance(partition, Pieces) else ():
            table = read_piece(self.landing, piece, schema)
            read, count = [*read, table], count + table.num_rows
            if count >= PACKED_ROWS:
                yield from self.work.readings(pa.concat_tables(read))
                read, count = [], 0
        if count:
            yield from self.work.readings(pa.concat_tables(read))


class _Growing(DataSourceStreamReader):
    """What lands, with the watermarks of gateways."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._history: History | None = None  # of the process that plans; tasks have none

    @property
    def history(self) -> History:
        if self._history is None:
            self._history = History(self._reading.landing)
        return self._history

    def initialOffset(self) -> dict[str, Any]:
        return {}

    def getDefaultReadLimit(self) -> Any:
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes

        most = self._reading.max_bytes
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        return {**start, **self.history.latest(start, getattr(limit, "max_bytes", None), upto_frontier=True)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        pieces = self.history.pieces(start, end)
        frontiers, used = frontiers_of(pieces), self._reading.used
        # Those of older versions have no number, which would say what they cover; those of another ingest may cover more.
        complete = len(end) == 1 and all(one.hour for one in frontiers)
        if used is not None and used.end == end:  # repeated
            read = [Frontiers([], complete, used.said)] if used.said else []
        else:
            frontiers = [one for one in frontiers if one.path not in self._reading.left_out]
            read = [Frontiers(frontiers, complete)] if frontiers else []
        return [*self._reading.partitions(pieces), *read]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._reading.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        self.history.forget(end)


class _Source(DataSource):
    """A data source of one frame."""

    reading: ClassVar[Reading]
    label: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.label

    def schema(self) -> str:
        return PACKED

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        return _Growing(self.reading)


def whole_frame(spark: "SparkSession", reading: Reading) -> "DataFrame":
    """The frame of PACKED rows of what is in a landing now.

    Tasks get their files from here: a data source would be made and asked in Python processes of its own, which take 3 s.
    """
    # Pickled one by one, as each task needs only its own; nobody else could have changed them.
    parts = [pickle.dumps(part) for part in reading.partitions(everything(reading.landing))]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from reading.read(pickle.loads(parts[number]))  # noqa: S301

    return spark.range(0, len(parts), 1, max(1, len(parts))).mapInArrow(read, PACKED)


def growing_frame(spark: "SparkSession", reading: Reading) -> "DataFrame":
    """The streaming frame of PACKED rows of a landing."""
    label = f"whenabouts_{uuid4().hex}"
    spark.dataSource.register(
        type("Source", (_Source,), {"reading": reading, "label": label, "__module__": "__main__"})
    )
    return spark.readStream.format(label).load()
