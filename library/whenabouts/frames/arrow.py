"""Columns of any library as one Arrow array."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from whenabouts.frames.kinds import FrameError

if TYPE_CHECKING:
    import narwhals as nw

EXACT = 1 << 53  # whole numbers up to it are floating ones


def array_of(rows: "nw.DataFrame[Any]", name: str, frame: str) -> Any:
    """A column without chunks and dictionaries. frame: what errors call the frame.

    Raises:
        FrameError: its values are of several types.
    """
    try:
        column: Any = rows[name].to_arrow()
    except (pa.ArrowException, TypeError, OverflowError) as error:
        said = " ".join(str(error).split())[:150]
        raise FrameError(f"{frame}: found values of several types in {name} ({said}), expected one type") from None
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # Arrow leaves what is too large in several
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def encoded_of(array: Any, name: str, frame: str) -> pa.DictionaryArray:
    """The array with a code for each distinct value; of fractions, nan is a null, and -0.0 is 0.0.

    Raises:
        FrameError: its values are lists or structures.
    """
    if pa.types.is_floating(array.type):
        array = pa.array(array.to_numpy(zero_copy_only=False) + 0.0, from_pandas=True)  # one zero
    try:
        return array.dictionary_encode()
    except pa.ArrowNotImplementedError:
        raise FrameError(f"{frame}: found {array.type} in {name}, expected values that can be equal") from None


def check_exact(array: Any, name: str, frame: str) -> None:
    """Raise FrameError if whole numbers are too large to compare as floating ones, as conditions do."""
    if not pa.types.is_integer(array.type) or array.type.bit_width < 64:
        return
    values = array.drop_null().to_numpy(zero_copy_only=False)
    if len(values) and (int(values.max()) > EXACT or int(values.min()) < -EXACT):
        raise FrameError(
            f"{frame}: found whole numbers beyond 2^53 in {name}, which conditions cannot tell apart; expected smaller "
            "ones, or give them as texts"
        )
