"""Pairs of two sets of time-ordered Parquet files: each task reads one slab of both and joins it, without a shuffle.

    correlate_files(spark, a_files, b_files, condition, Columns(carry=("id",)))         a_id, b_id, probability
    correlate_files(spark, a_files, b_files, condition, fold=Fold(count, "n long"))     result of `count` on a slab's pairs

In Spark the shuffle is the cost, not the test. This method pays if files are roughly in the order of time, and most if
a task aggregates or writes its pairs itself: rows that return to the JVM cost more than the join. Unordered files are
refused instead of being read many times.

All machines must reach the files under the paths given. Each task holds a slab and its pairs in memory.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.correlation.batch import api
from whenabouts_cloud.correlation.batch.join import NUMBA_ROWS
from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.spark.file_slabs import FileSlab, Part, middles, parts_of, plan, read_parts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SLAB_ROWS = 250_000  # of a; small enough for the cache and memory of a task, large enough for its fixed cost of 20 ms
MOST_READ = 3.0  # times the rows of the files; beyond, a shuffle is cheaper

Index = npt.NDArray[np.int64]


class Columns(NamedTuple):
    """Columns of the files: the two stamps, the key that must be equal (null equals nothing), and those to carry along."""

    stamps: tuple[str, str] = ("t_min", "t_max")
    key: str | None = None
    carry: tuple[str, ...] = ()


PLAIN_STAMPS = Columns()


class Fold(NamedTuple):
    """Result that a task returns instead of the pairs of a slab.

    `of` is a function from the columns of both sides and the pairs (i, j), in chunks with reused arrays, to a table with the
    columns of `schema`, which Spark parses.
    """

    of: Callable[[pa.Table, pa.Table, Iterator[tuple[Index, Index]]], pa.Table]
    schema: str


class DisorderError(ValueError):
    """The files are not ordered by time; the text gives the rows that would be read."""


def correlate_files(
    spark: "SparkSession",
    a: Iterable[str],
    b: Iterable[str],
    condition: Condition,
    columns: Columns = PLAIN_STAMPS,
    *,
    fold: Fold | None = None,
    slab_rows: int = SLAB_ROWS,
) -> "DataFrame":
    """Return the pairs of rows of a and b, each once: the carried columns of both as a_ and b_, and the probability.

    Stamps are integer columns. With `fold` a task returns the result of `fold.of` on its slab, in a frame of `fold.schema`.

    Raises:
        DisorderError: the rows of the slabs would be read more than MOST_READ times.
        ValueError: a file has no statistics of the stamps.
    """
    sides = parts_of(a, columns.stamps), parts_of(b, columns.stamps)
    rows = sum(part.rows for side in sides for part in side)
    slabs = plan(*sides, condition, sum(part.rows for part in sides[0]) // slab_rows + 1)
    read = sum(slab.rows_read for slab in slabs)
    if read > MOST_READ * rows:
        raise DisorderError(
            f"files: found {rows} rows of which {len(slabs)} slabs would read {read}, expected files ordered by "
            f"{columns.stamps[0]}; sort them, or use a join of two frames (`native`)"
        )
    work = functools.partial(_slab, slabs, condition, columns, fold, _engine(rows))
    numbers = spark.range(0, len(slabs), 1, max(len(slabs), 1))
    return numbers.mapInArrow(work, fold.schema if fold is not None else _schema(spark, sides, columns.carry))


def _engine(rows: int) -> api.Engine:
    """Engine by the rows of all slabs together, as a worker process loads the kernel once."""
    return "numba" if rows >= NUMBA_ROWS and find_spec("numba") is not None else "numpy"


def _schema(spark: "SparkSession", sides: tuple[list[Part], list[Part]], carry: Sequence[str]) -> str:
    columns = []
    for name, parts in zip("ab", sides, strict=True):
        kinds = dict(spark.read.parquet(parts[0].path).dtypes) if parts else {}
        columns += [f"`{name}_{column}` {kinds.get(column, 'string')}" for column in carry]
    return ", ".join([*columns, "probability double"])


def _slab(
    slabs: list[FileSlab],
    condition: Condition,
    columns: Columns,
    fold: Fold | None,
    engine: api.Engine,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    stamps, key, carry = columns
    needed = list(dict.fromkeys((*stamps, *([key] if key else []), *carry)))
    for slab in (slabs[n] for numbered in numbers for n in numbered["id"].to_pylist()):
        a, b = read_parts(slab.a, needed), read_parts(slab.b, needed)
        if slab.low > min(x.low for x in slab.a) or slab.high <= max(x.high for x in slab.a):
            middle = middles(*(a[name].to_numpy() for name in stamps))
            a = a.filter(pa.array((middle >= slab.low) & (middle < slab.high)))
        a_min, a_max, b_min, b_max = (side[name].to_numpy() for side in (a, b) for name in stamps)
        keys: tuple[Any, Any] = _codes(a[key], b[key]) if key else (None, None)
        if fold is not None:
            yield from fold.of(
                a, b, api.correlate_chunks(a_min, a_max, b_min, b_max, condition, *keys, engine=engine)
            ).to_batches()
            continue
        i, j, probability = api.correlate(a_min, a_max, b_min, b_max, condition, *keys, probability=True, engine=engine)
        made = {f"a_{name}": a[name].take(pa.array(i)) for name in carry}
        made |= {f"b_{name}": b[name].take(pa.array(j)) for name in carry}
        yield from pa.table(made | {"probability": probability}).to_batches()


def _codes(a: pa.ChunkedArray, b: pa.ChunkedArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers for equal keys; nulls get a different number on each side, so they equal nothing."""
    both = pa.chunked_array([*a.chunks, *b.chunks]).combine_chunks().dictionary_encode()
    codes = pc.fill_null(both.indices.cast(pa.int64()), -1).to_numpy().copy()
    none = np.flatnonzero(codes < 0)
    codes[none] = -1 - (none >= len(a))
    return codes[: len(a)], codes[len(a) :]
