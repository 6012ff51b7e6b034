"""Conversion of landed readings to events for the engine, column by column.

A reading is an event of each stream of the rule that covers it; its type is the number of that stream. Stamps are moved by
the stream's OFFSET only for the engine; everywhere else they stay as the readers gave them. Readings of other streams and,
in rules PER key, readings without a key are left out: they are in no match and forbid none.

For a rule in order CAUSAL, a further column has the vector clocks (see `views`).

Columns of conditions are numbers (`expressions` defines the conversion of text). The code of a text is a hash, so it is the
same in every process and after a restart. Two of a million texts share a code with a chance of 1 in 10^4; then a condition
between events may take them for equal. Keys are compared as text (`identities`).

Cost: a few array operations an event; each distinct text is converted once.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.epc.columns import word_column
from whenabouts_cloud.frontier.times import FURTHEST_US
from whenabouts_cloud.landing import schema as landing
from whenabouts_cloud.landing.schema import STAMPED, json_in
from whenabouts_cloud.pattern.expressions import column_kind, split_column
from whenabouts_cloud.pattern.plan import Plan
from whenabouts_cloud.rules.coverage import TEXT, belongings, encode
from whenabouts_cloud.rules.model import CepRule, Count

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CODE_BITS = 53  # bits of a text's code, which a double holds exactly

ENCODED = ("site", "gateway", "stream")  # few distinct texts; the engine itself encodes keys
EVENT = pa.schema(
    [("type", pa.int16()), *(f.with_type(TEXT) if f.name in ENCODED else f for f in landing.of(*STAMPED))]
)
TEXTS = ("kind", "unit", "site", "gateway", "stream", "key")  # the others hold JSON
STAMPS = ("t_min", "t_max")
VCLOCK = "vclock"


class Columns(NamedTuple):
    """Arguments of `engine.feed`, without the keys. t_max is None if all stamps are points."""

    types: Ints
    t: Ints
    t_max: Ints | None
    attributes: dict[str, Floats]


def source_of(column: str) -> str:
    """The column of a reading table from which a condition's column is made: `attrs:x` is the JSON of attribute x."""
    name, _ = split_column(column)
    attribute = f"attrs:{name.removeprefix('attrs.')}"
    return {"field": name, "word": "key", "attribute": attribute}[column_kind(name)]


def sources_of(plan: Plan, count: Count | None = None) -> list[str]:
    """The columns that a reading table needs besides those of STAMPED."""
    clocks = [VCLOCK] if plan.mode == "causal" else []
    return sorted({source_of(name) for name in (*_read(plan), *measured(count))} - set(STAMPED)) + clocks


def measured(count: Count | None) -> list[str]:
    """The columns whose numbers are aggregated."""
    return list(dict.fromkeys(column for _, _, column in count.aggregates)) if count else []


def schema_of(plan: Plan, count: Count | None = None) -> pa.Schema:
    """The schema of events: EVENT, a number "@x" for each column x that the plan's conditions read, a number "#x" for each
    aggregated column x, and the vector clocks for CAUSAL."""
    numbers = [*(f"@{name}" for name in _read(plan)), *(f"#{name}" for name in measured(count))]
    clocks = [pa.field(VCLOCK, pa.list_(pa.int64()))] if plan.mode == "causal" else []
    return pa.schema([*EVENT, *(pa.field(name, pa.float64()) for name in numbers), *clocks])


def events_of(rule: CepRule, plan: Plan, readings: pa.Table) -> tuple[pa.Table, Ints]:
    """The events (`schema_of`) of a reading table (STAMPED and `sources_of`), and the row of each event's reading."""
    encoded = {name: encode(readings[name]) for name in ENCODED}
    row, types = belongings(rule.streams, readings)
    if rule.pattern.per_key:
        keyed = readings["key"].is_valid().to_numpy()[row]
        row, types = row[keyed], types[keyed]
    at = None if len(row) == readings.num_rows and bool((np.diff(row) == 1).all()) else pa.array(row)
    columns: dict[str, Any] = {"type": pa.array(types, pa.int16())}
    for name in STAMPED:
        column = encoded.get(name, readings[name])
        columns[name] = column if at is None else column.take(at)
    for name in _read(plan):
        numbers = _numbers(name, readings[source_of(name)])
        columns[f"@{name}"] = pa.array(numbers if at is None else numbers[row])
    for name in measured(rule.count):
        numbers = _numbers(name, readings[source_of(name)], texts=False)
        columns[f"#{name}"] = pa.array(numbers if at is None else numbers[row])
    schema = schema_of(plan, rule.count)
    if plan.mode == "causal":
        clocks = readings[VCLOCK].cast(schema.field(VCLOCK).type)
        columns[VCLOCK] = clocks if at is None else clocks.take(at)
    return pa.table([columns[name] for name in schema.names], schema=schema), row


def columns_of(rule: CepRule, plan: Plan, events: pa.Table) -> Columns:
    """Types, moved stamps and columns of conditions of an event table."""
    types = events["type"].to_numpy().astype(np.int64)
    t, t_max = moved(rule, types, events["t_min"].to_numpy()), moved(rule, types, events["t_max"].to_numpy())
    attributes = {name: events[f"@{name}"].to_numpy() for name in _read(plan)}
    attributes |= {
        name: x.astype(np.float64) for name, x in zip(STAMPS, (t, t_max), strict=True) if name in plan.attributes
    }
    return Columns(types, t, None if np.array_equal(t, t_max) else t_max, attributes)


def moved(rule: CepRule, types: Ints, stamps: Ints) -> Ints:
    """Stamps on the common clock: each stamp plus the OFFSET of its stream."""
    offsets = np.array([stream.offset_us for stream in rule.streams], np.int64)
    return stamps + offsets[types] if offsets.any() else stamps


def beyond_time(events: pa.Table) -> npt.NDArray[np.bool_]:
    """True for events whose stamps are not valid times: those of an unbounded clock span all time."""
    t_min, t_max = events["t_min"].to_numpy(), events["t_max"].to_numpy()
    beyond: npt.NDArray[np.bool_] = (t_min < -FURTHEST_US) | (t_max > FURTHEST_US) | (t_max < t_min)
    return beyond


def text_code(text: str) -> float:
    """The number of a text in conditions between events."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") >> (64 - CODE_BITS))


def _read(plan: Plan) -> list[str]:
    """Columns of conditions besides the stamps, which are always present."""
    return [name for name in plan.attributes if name not in STAMPS]


def _numbers(name: str, column: pa.ChunkedArray, texts: bool = True) -> Floats:
    """The numbers of a condition's column from its source column; without `texts`, texts become nan, as they have no sum."""
    encoded = encode(column)
    of, word = split_column(name)
    if column_kind(of) == "word":
        encoded = word_column(encoded, of)
    plain = source_of(name) in TEXTS
    values = encoded.dictionary.to_pylist() if plain else _scalars(encoded.dictionary)
    meant = [_number(x if texts or not isinstance(x, str) else None, word) for x in values]
    numbers = np.array([*meant, np.nan])
    at = encoded.indices.fill_null(len(meant)).to_numpy(zero_copy_only=False)
    expanded: Floats = numbers[at]
    return expanded


def _number(value: Any, word: str | None) -> float:
    if value is None:
        return float("nan")
    if word is not None:
        return float(value == word)
    return text_code(value) if isinstance(value, str) else float(value)


def _scalars(texts: pa.StringArray) -> Iterator[Any]:
    """Values of JSON texts; None for those that are not a number, a text or a truth value."""
    numeric = pc.match_substring_regex(texts, r"^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$")
    numbers = pc.cast(pc.if_else(numeric, texts, pa.scalar(None, pa.string())), pa.float64()).to_pylist()
    for number, text in zip(numbers, texts.to_pylist(), strict=True):
        if number is not None:
            yield number
            continue
        value = json_in(text)
        yield value if isinstance(value, str | bool) else None
