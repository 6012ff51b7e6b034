"""A column of texts of any library, as an Arrow column."""

from typing import Any

import narwhals as nw
import pyarrow as pa

from whenabouts.frames.arrow import array_of
from whenabouts.frames.kinds import FrameError, Given


def texts_of(rows: "nw.DataFrame[Any]", name: str, frame: str) -> Any:
    """The hexadecimal digits of EPCs in a column. frame: what errors call the frame.

    Raises:
        FrameError: it holds no texts.
    """
    array = array_of(rows, name, frame)
    if len(array) == array.null_count:
        return pa.nulls(len(array), pa.string())
    is_text = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
    if not any(one(array.type) for one in is_text):
        raise no_texts(str(array.type), name, frame)
    return array


def check_names(frame: Given, name: str, what: str) -> None:
    """Raise FrameError unless a column of names holds texts; one without any value may be of any type."""
    assert frame.rows is not None
    kind = frame.rows.schema[name]
    known = isinstance(kind, nw.String | nw.Categorical | nw.Enum | nw.Unknown | nw.Object)
    if not known and not frame.rows[name].is_null().all():
        raise FrameError(f"{frame.name}: found {kind} in {name}, expected {what} as text")


def no_texts(kind: str, name: str, frame: str) -> FrameError:
    """The error of a column of another kind."""
    return FrameError(f"{frame}: found {kind} in {name}, expected texts, the hexadecimal digits of EPCs")
