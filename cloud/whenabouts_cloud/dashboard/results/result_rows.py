"""Results of every kind in one form: an id, a rule, a time, a probability, and the readings that it is made of."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

READING = pa.struct(
    [("stream", pa.string()), ("site", pa.string()), ("gateway", pa.string()), ("boot", pa.int64()), ("seq", pa.int64()),
     ("t_min", pa.int64()), ("t_max", pa.int64())]
)  # fmt: skip
ROWS = pa.schema(
    [("id", pa.string()), ("rule", pa.string()), ("kind", pa.string()), ("key", pa.string()), ("status", pa.string()),
     ("probability", pa.float64()), ("t_min", pa.int64()), ("t_max", pa.int64()), ("published_us", pa.int64()),
     ("readings", pa.list_(READING))]
)  # fmt: skip
KINDS = {"pairs": "pair", "matches": "match", "counts": "count", "verdicts": "verdict"}
RETRACTED = "retracted"


def rows_of(table: pa.Table, kind: str, published_us: int | None) -> pa.Table:
    """Rows of ROWS for results as a job publishes them. kind: a value of KINDS.

    Raises:
        KeyError, pyarrow.ArrowException: the table has other columns than results of this kind.
    """
    readings = (
        _pair_readings(table) if kind == "pair" else _listed(table, {"match": "events", "verdict": "states"}.get(kind))
    )
    if kind == "pair":
        t_min, t_max = (_each(function, table[f"a_{name}"], table[f"b_{name}"]) for function, name in _ENDS)
    else:
        t_min, t_max = table["t_min"], table["t_max"]
    count, names = table.num_rows, table.column_names
    return pa.table(
        [
            table["result_id"], table["rule"].cast(pa.string()), pa.repeat(kind, count),
            table["key"].cast(pa.string()) if "key" in names else pa.nulls(count, pa.string()),
            table["status"].cast(pa.string()) if "status" in names else pa.repeat("emitted", count),
            table["probability"] if "probability" in names else pa.nulls(count, pa.float64()), t_min, t_max,
            pa.nulls(count, pa.int64()) if published_us is None else pa.repeat(pa.scalar(published_us, pa.int64()), count),
            readings,
        ],
        schema=ROWS,
    )  # fmt: skip


_ENDS = ((pc.min_element_wise, "t_min"), (pc.max_element_wise, "t_max"))


def _each(function: Any, a: pa.ChunkedArray, b: pa.ChunkedArray) -> Any:
    """The lesser or greater one of a reading with a partner, or its own without."""
    return function(a, b, skip_nulls=True)


def _pair_readings(table: pa.Table) -> pa.Array:
    """One or two readings of each pair."""
    sides = [
        pa.StructArray.from_arrays(
            [_plain(table[f"{side}_{field.name}"]).cast(field.type) for field in READING], fields=list(READING)
        )
        for side in "ab"
    ]
    count = table.num_rows
    both = pa.concat_arrays(sides)
    alone = pc.is_null(_plain(table["b_seq"])).to_pylist()
    order, offsets = [], [0]
    for row, single in enumerate(alone):
        order += [row] if single else [row, count + row]
        offsets.append(len(order))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), both.take(pa.array(order, pa.int64())))


def _listed(table: pa.Table, column: str | None) -> pa.Array:
    if column is None or column not in table.column_names:
        return pa.array([[]] * table.num_rows, pa.list_(READING))
    lists = _plain(table[column])
    flat = lists.flatten()
    fields = [
        pc.struct_field(flat, field.name).cast(field.type)
        if _has(flat, field.name)
        else pa.nulls(len(flat), field.type)
        for field in READING
    ]
    offsets = pa.array([0, *pc.cumulative_sum(pc.fill_null(pc.list_value_length(lists), 0)).to_pylist()], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, fields=list(READING)))


def _has(array: pa.StructArray, name: str) -> bool:
    return bool(array.type.get_field_index(name) >= 0)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
