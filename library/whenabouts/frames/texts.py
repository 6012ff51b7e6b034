"""A column of texts of any library, as an Arrow column."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from whenabouts.frames.kinds import FrameError

if TYPE_CHECKING:
    import narwhals as nw


def texts_of(rows: "nw.DataFrame[Any]", name: str, frame: str) -> Any:
    """The hexadecimal digits of EPCs in a column. frame: what errors call the frame.

    Raises:
        FrameError: it holds no texts.
    """
    try:
        column: Any = rows[name].to_arrow()
    except pa.ArrowException as error:
        raise no_texts(f"values of several types ({error})", name, frame) from None
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    is_text = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null
    if not any(one(kind) for one in is_text):
        raise no_texts(str(kind), name, frame)
    return column


def no_texts(kind: str, name: str, frame: str) -> FrameError:
    """The error of a column of another kind."""
    return FrameError(f"{frame}: found {kind} in {name}, expected texts, the hexadecimal digits of EPCs")
