"""The matches of a pattern among the rows of an eager frame, as a frame."""

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts.frames.arrow import array_of, codes_of
from whenabouts.frames.kinds import FrameError, Given
from whenabouts.frames.numbers import numbers, text_numbers
from whenabouts.frames.rows import PROBABILITY, named_rows, once_each, suffix
from whenabouts.frames.taking import beside
from whenabouts.frames.texts import check_names, texts_of
from whenabouts.frames.times import BEGIN, END
from whenabouts_cloud.epc.columns import encoded_texts, word_column
from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.pattern.expressions import column_kind, split_column
from whenabouts_cloud.pattern.plan import TIME_LIMIT

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Layout(NamedTuple):
    """Which columns of the events are what. names: for each place of a match the new name of each of its columns."""

    stream: str
    key: str | None
    types: tuple[str, ...]
    names: tuple[dict[str, str], ...]

    @property
    def columns(self) -> list[str]:
        """The columns of the result."""
        return [*([self.key] if self.key else []), *(new for one in self.names for new in one.values()), PROBABILITY]


def layout_of(side: Given, pattern: Pattern, stream: str) -> Layout:
    """Where the frame has what the pattern asks for.

    Raises:
        FrameError: a column is missing, two of the result would have one name, or the pattern needs vector clocks.
    """
    if pattern.mode == "causal":
        raise FrameError(
            "pattern: found CAUSAL, expected CERTAIN, POSSIBLE or OVER: a frame of events has no vector clocks"
        )
    key = pattern.key if pattern.per_key else None
    for name, what in ((stream, "stream"), (key, "PER")):
        if name is not None and name not in side.columns:
            raise FrameError(f"{what}: found {name!r}, expected a column of events: {', '.join(side.columns[:20])}")
    own = [name for name in side.columns if name != key]
    names = tuple({name: f"{name}_{suffix(place)}" for name in own} for place in pattern.names)
    layout = Layout(stream, key, pattern.types, names)
    once_each(layout.columns, "events", "name the events of the pattern otherwise, or rename one of them")
    for column in pattern.plan(pattern.types).attributes:
        _source(side, key, column)
    return layout


def relevant(side: Given, layout: Layout) -> Given:
    """The events whose type the pattern names, and that have a key."""
    assert side.rows is not None
    check_names(side, layout.stream, "the names of types")
    wanted = nw.col(layout.stream).cast(nw.String).is_in(list(layout.types))
    if layout.key is not None:
        wanted = wanted & ~nw.col(layout.key).is_null()
    return side._replace(rows=nw.maybe_reset_index(side.rows.filter(wanted)))


def matched(side: Given, pattern: Pattern, layout: Layout, t_min: Ints, t_max: Ints) -> "nw.DataFrame[Any]":
    """The matches among relevant events as a frame with the columns of the layout."""
    from whenabouts_cloud.cep.methods import detected

    rows = side.rows
    assert rows is not None
    if len(rows) and (int(t_min.min()) <= -TIME_LIMIT or int(t_max.max()) >= TIME_LIMIT):
        raise FrameError(
            f"events: found times from {t_min.min()} to {t_max.max()} us, expected less than 2^60 from 1970"
        )
    types = _codes_of(rows[layout.stream].cast(nw.String), layout.types)
    keys = np.zeros(len(rows), np.int64) if layout.key is None else _key_codes(side, layout.key)
    plan = pattern.plan(layout.types)
    attributes = {name: _condition_numbers(side, layout.key, name, t_min, t_max) for name in plan.attributes}
    found, probability = detected(plan, layout.types, types, keys, t_min, t_max, attributes)
    order = np.lexsort(found.T[::-1])
    return _frame(rows, layout, found[order], probability[order])


def _frame(rows: "nw.DataFrame[Any]", layout: Layout, found: Ints, probability: Floats) -> "nw.DataFrame[Any]":
    parts = []
    if layout.key is not None:
        parts.append(named_rows(rows, found.max(axis=1, initial=-1), {layout.key: layout.key}))
    parts += [named_rows(rows, found[:, place], names) for place, names in enumerate(layout.names)]
    values = (
        [None if np.isnan(one) else one for one in probability.tolist()] if np.isnan(probability).any() else probability
    )
    series = nw.new_series(PROBABILITY, values, nw.Float64(), backend=rows.implementation)
    return beside([*parts, series.to_frame()])


def _codes_of(column: "nw.Series[Any]", names: tuple[str, ...]) -> Ints:
    found = pc.index_in(column.to_arrow().cast(pa.string()), value_set=pa.array(names, pa.string()))
    codes: Ints = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _key_codes(side: Given, key: str) -> Ints:
    assert side.rows is not None
    [codes] = codes_of([array_of(side.rows, key, side.name)], key, side.name)
    return codes


def _source(side: Given, key: str | None, column: str) -> tuple[str, str | None]:
    """The column of the frame that a condition reads, and a word of the names in it, as `gtin`, if it holds tags."""
    name, _ = split_column(column)
    for own in (name, name.removeprefix("attrs.")):
        if own in side.columns or own in (BEGIN, END):
            return own, None
    tags = key or "key"
    if column_kind(name) == "word" and tags in side.columns:
        return tags, name
    raise FrameError(f"WHERE: found {name!r}, expected a column of events: {', '.join(side.columns[:20])}")


def _condition_numbers(side: Given, key: str | None, column: str, t_min: Ints, t_max: Ints) -> Floats:
    (source, of_name), text = _source(side, key, column), split_column(column)[1]
    if source in (BEGIN, END):
        return (t_min if source == BEGIN else t_max).astype(np.float64)
    if of_name is None or side.rows is None:
        return numbers(side, source, text)
    keys = encoded_texts(texts_of(side.rows, source, side.name))
    return text_numbers(word_column(keys, of_name), text)
