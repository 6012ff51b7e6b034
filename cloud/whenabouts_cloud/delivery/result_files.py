"""Reads files of published results, and says which one is damaged: a changed bit must not become another result.

Pages have checksums, and so has the footer (`landing.sealing`). Object stores have checksums of their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.sealing import check_footer
from whenabouts_cloud.landing.store import Store


class DamagedResultsError(ValueError):
    """A file of published results is not what was written; the text names it and what to do."""


@contextmanager
def opened(place: Store, name: str) -> Iterator[pq.ParquetFile]:
    """A file of results, open for reading; its pages are checked when they are read.

    Raises:
        DamagedResultsError: it is damaged; also for what the body of `with` finds unreadable in it.
        FileNotFoundError: it does not exist.
        OSError, MemoryError: the system cannot read it now, which says nothing about the file.
    """
    with place.open(name) as file, _named(place, name):
        if place.local is not None:
            check_footer(file)
        with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            yield parquet


def batches_of(place: Store, name: str, most: int) -> Iterator[pa.RecordBatch]:
    """Yield the results of a file, at most so many at a time. Errors are those of `opened`."""
    with opened(place, name) as parquet:
        yield from parquet.iter_batches(most)


def table_of(place: Store, name: str) -> pa.Table:
    """All results of a file. Errors are those of `opened`."""
    with opened(place, name) as parquet:
        return parquet.read(use_threads=False).replace_schema_metadata()


@contextmanager
def _named(place: Store, name: str) -> Iterator[None]:
    damage = (OSError, pa.ArrowException, ValueError) if place.local is not None else (pa.ArrowException,)
    try:
        yield
    except (FileNotFoundError, MemoryError, pa.ArrowCancelled):
        raise
    except damage as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the system; Arrow gives none to what it finds
            raise
        said = " ".join(str(error).split())[:150]
        raise DamagedResultsError(
            f"{place.uri}/{name}: found a damaged file ({said}), expected the results as they were published; put the "
            "file back from a copy, or delete its folder and live without its results, or start the job with another "
            "--out, which computes all results again"
        ) from error
