"""Lists of tables that grow at their ends: small ones are joined, so that there are few; the oldest rows can be dropped.

A table has at most JOINED rows or is as it came, so that dropping rows frees memory soon. Adding n rows copies n log n.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

JOINED = 20_000

Tables = list[pa.Table]


def appended(tables: Sequence[pa.Table], new: pa.Table) -> Tables:
    """The tables and a new one."""
    made = [*tables, new.combine_chunks()]
    while len(made) > 1 and made[-2].num_rows < 2 * made[-1].num_rows and _rows(made[-2:]) <= JOINED:
        made[-2:] = [pa.concat_tables(made[-2:]).combine_chunks()]
    return made


def without(tables: Sequence[pa.Table], column: str, values: pa.Array) -> Tables:
    """The tables without the rows that have one of these values; only tables with such rows are copied."""
    made = []
    for table in tables:
        found = pc.fill_null(pc.is_in(table[column], value_set=values), False)
        made.append(table.filter(pc.invert(found)) if pc.any(found).as_py() else table)
    return made


def drop_oldest(tables: dict[str, Tables], most: int) -> int:
    """Drop the oldest rows of the longest list until at most so many are left in all; return how many were dropped."""
    dropped = 0
    while (total := sum(map(_rows, tables.values()))) > most:
        longest = max(tables.values(), key=_rows)
        first = longest.pop(0)
        keep = max(0, first.num_rows - (total - most))
        dropped += first.num_rows - keep
        if keep:
            longest.insert(0, first.slice(first.num_rows - keep))
    return dropped


def _rows(tables: Sequence[pa.Table]) -> int:
    return sum(table.num_rows for table in tables)
