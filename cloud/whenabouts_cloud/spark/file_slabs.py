"""Cuts time-ordered Parquet into slabs that each task reads directly: no shuffle, no listing by Spark.

A part is one row group of one file; the footers give its number of rows and the range of their stamps. Time is cut at
quantiles of the parts into slabs of about equally many rows. A slab owns the rows of a whose middle is in it, and reads
every part of b with rows that its rows can match, so each pair comes from one slab only. A part that crosses a border is
read by both neighbours; `rows_read` counts this. With unordered files it grows with the number of slabs, which shows a
caller that this method does not pay.

Middles are floor((t_min + t_max) / 2), computed without overflow.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.frontier.times import INT64_MAX, INT64_MIN
from whenabouts_cloud.pattern.condition import Condition


@dataclass(frozen=True)
class Part:
    """A row group: its rows have stamps within [low, high]."""

    path: str
    row_group: int
    rows: int
    low: int
    high: int


@dataclass(frozen=True)
class FileSlab:
    """Range [low, high) of middles of a, and the parts of both sides to read for it."""

    low: int
    high: int
    a: tuple[Part, ...]
    b: tuple[Part, ...]

    @property
    def rows_read(self) -> int:
        """Rows in these parts."""
        return sum(part.rows for part in (*self.a, *self.b))


def parts_of(paths: Iterable[str], stamps: tuple[str, str]) -> list[Part]:
    """Return the row groups of Parquet files with their statistics, without empty groups.

    Raises:
        ValueError: a file lacks a column of `stamps` or its statistics.
    """
    parts = []
    for path in paths:
        footer = pq.read_metadata(path)
        columns = (
            {footer.row_group(0).column(n).path_in_schema: n for n in range(footer.num_columns)}
            if footer.num_row_groups
            else {}
        )
        for group in range(footer.num_row_groups):
            about = footer.row_group(group)
            if not about.num_rows:
                continue
            ends = []
            for name, end in zip(stamps, ("min", "max"), strict=True):
                statistics = about.column(columns[name]).statistics if name in columns else None
                if statistics is None or not statistics.has_min_max:
                    raise ValueError(
                        f"{path}: found no statistics of column {name}, expected those every writer gives by default"
                    )
                ends.append(getattr(statistics, end))
            parts.append(Part(path, group, about.num_rows, *ends))
    return parts


def reach_of(condition: Condition) -> tuple[int, int]:
    """Return the range of b's middle minus a's in a pair, with a margin for the rounding of both."""
    band, centre = condition.band(2 * condition.longest_us), condition.doubled_centre
    return (centre - band) // 2 - 2, (centre + band) // 2 + 2


def plan(a: Sequence[Part], b: Sequence[Part], condition: Condition, slabs: int) -> list[FileSlab]:
    """Return at most `slabs` slabs with about equally many rows of a that cover all of time; none if a side has no rows."""
    if not a or not b:
        return []
    lowest, highest = reach_of(condition)
    borders = [INT64_MIN, *_borders(a, slabs), INT64_MAX]
    planned = []
    for low, high in itertools.pairwise(borders):
        mine = tuple(part for part in a if part.high >= low and part.low < high)
        if not mine:
            continue
        from_us, to_us = max(low, min(x.low for x in mine)) + lowest, min(high, max(x.high for x in mine)) + highest
        planned.append(
            FileSlab(low, high, mine, tuple(part for part in b if part.high >= from_us and part.low <= to_us))
        )
    return planned


def read_parts(parts: Sequence[Part], columns: Sequence[str]) -> pa.Table:
    """Read these columns of the parts, in order."""
    files: dict[str, list[int]] = {}
    for part in parts:
        files.setdefault(part.path, []).append(part.row_group)
    tables = [
        pq.ParquetFile(path).read_row_groups(groups, list(columns), use_threads=False) for path, groups in files.items()
    ]
    return pa.concat_tables(tables)


def middles(t_min: npt.NDArray[np.int64], t_max: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """floor((t_min + t_max) / 2) for any two int64."""
    halves: npt.NDArray[np.int64] = (t_min >> 1) + (t_max >> 1) + (t_min & t_max & 1)
    return halves


def _borders(parts: Sequence[Part], slabs: int) -> list[int]:
    """Ascending cuts; the rows of each part count as spread evenly over its span."""
    edges = np.unique([x for part in parts for x in (part.low, part.high)])
    filled = np.zeros(len(edges))
    for part in parts:
        first, last = np.searchsorted(edges, [part.low, part.high])
        if first == last:
            filled[first:] += part.rows
        else:
            share = (edges[first:].astype(float) - part.low) / (float(part.high) - part.low)
            filled[first:] += part.rows * np.minimum(share, 1.0)
    wanted = filled[-1] * np.arange(1, slabs) / slabs
    cuts = np.interp(wanted, filled, edges.astype(float))
    return sorted({int(cut) for cut in cuts if INT64_MIN < cut < INT64_MAX})
