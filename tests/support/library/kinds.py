"""The same rows as frames of every kind, and back as lists of dictionaries."""

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

CONNECTION = duckdb.connect()  # not the default one: a result must stay in the connection of what was given


def _relation(table):
    CONNECTION.register("whenabouts_rows", table)
    made = CONNECTION.sql("SELECT * FROM whenabouts_rows")
    kept = made.to_arrow_table()
    CONNECTION.unregister("whenabouts_rows")
    return CONNECTION.from_arrow(kept)


KINDS = {
    "pyarrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "pandas, Arrow-backed": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars, lazy": lambda table: pl.from_arrow(table).lazy(),
    "duckdb": _relation,
}


def rows(frame):
    """Rows of a frame of any kind, as dictionaries."""
    if isinstance(frame, duckdb.DuckDBPyRelation):
        return frame.to_arrow_table().to_pylist()
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame.to_arrow().to_pylist()
    if isinstance(frame, pd.DataFrame):
        return pa.Table.from_pandas(frame, preserve_index=False).to_pylist()
    return frame.to_pylist()
