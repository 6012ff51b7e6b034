"""Columns of any library as one Arrow array."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
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
    array = column
    if isinstance(column, pa.ChunkedArray):  # combining copies even a single one
        array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # Arrow leaves what is too large in several
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def codes_of(arrays: list[Any], name: str, frame: str) -> list[npt.NDArray[np.int64]]:
    """Numbers from 0 on for the values of arrays of one type, equal where they are, -1 for nulls and for nan.

    Raises:
        FrameError: the values are lists or structures.
    """
    kind = arrays[0].type
    if pa.types.is_floating(kind):  # one zero
        arrays = [pa.array(one.to_numpy(zero_copy_only=False) + 0.0, from_pandas=True) for one in arrays]
    try:
        encoded = pa.chunked_array(arrays).dictionary_encode()  # one dictionary, without a copy of the values
    except pa.ArrowNotImplementedError:
        raise FrameError(f"{frame}: found {kind} in {name}, expected values that can be equal") from None
    chunks = iter(encoded.chunks)  # Arrow leaves out empty ones
    indices = [next(chunks).indices if len(one) else pa.array([], pa.int32()) for one in arrays]
    return [(one.fill_null(-1) if one.null_count else one).to_numpy().astype(np.int64) for one in indices]


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
