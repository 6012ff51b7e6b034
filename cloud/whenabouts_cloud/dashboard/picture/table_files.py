"""What a timeline shows as a table, in CSV and Parquet: each reading where they are single, else each count.

A text of CSV that a spreadsheet would take for a formula gets a "'" in front; Parquet has all texts as they are.
"""

import csv
import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

READINGS = ("site", "gateway", "stream", "boot", "seq", "key", "t_min", "t_max", "late", "true_us")
COUNTS = ("site", "gateway", "stream", "key", "from_us", "to_us", "readings")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def view_table(answer: Mapping[str, Any]) -> pa.Table:
    """The readings or the counts of an answer to /api/timeline."""
    bars = answer["bars"]
    if bars is None:
        return pa.Table.from_pylist(_counts(answer), pa.schema([(name, _type(name)) for name in COUNTS]))
    count = len(bars["lane"])
    columns = {**bars, "true_us": bars["true_us"] or [None] * count}
    columns |= {name: [int(x) for x in bars[name]] for name in ("boot", "seq")}
    return pa.table({name: pa.array(columns[name], _type(name)) for name in READINGS})


def as_csv(table: pa.Table) -> bytes:
    """A table as CSV with a line of names."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow([_harmless(value) for value in row])
    return file.getvalue().encode("utf-8", "replace")


def as_parquet(table: pa.Table) -> bytes:
    """A table as Parquet."""
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


def _type(name: str) -> pa.DataType:
    if name in ("site", "gateway", "stream", "key"):
        return pa.string()
    return pa.bool_() if name == "late" else pa.int64()


def _counts(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    column_us = (answer["to_us"] - answer["from_us"]) // answer["px"]
    rows = []
    for lane, cells in zip(answer["lanes"], answer["cells"] or [], strict=False):
        for column, count in zip(cells[::2], cells[1::2], strict=True):
            begin = answer["from_us"] + column * column_us
            named = {name: lane[name] for name in ("site", "gateway", "stream", "key")}
            rows.append({**named, "from_us": begin, "to_us": begin + column_us, "readings": count})
    return rows


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
