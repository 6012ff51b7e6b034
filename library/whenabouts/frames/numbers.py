"""Columns of frames as the numbers that conditions of patterns read.

Numbers and truth values are themselves; timestamps and dates are microseconds since 1970 UTC, durations microseconds. Texts
are compared for equality alone: with a text of the pattern as 1 or 0, with another column by a code (`cep.shard.events`).
Nulls are nan, which compares as false.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts.frames.arrow import array_of, check_exact
from whenabouts.frames.kinds import FrameError, Given
from whenabouts.frames.times import microseconds_of
from whenabouts_cloud.cep.shard.events import text_code

Floats = npt.NDArray[np.float64]


def numbers(frame: Given, name: str, word: str | None) -> Floats:
    """A column as numbers; with a word, 1 where it is that text and 0 where it is another value.

    Raises:
        FrameError: it holds neither numbers nor times nor texts, or whole numbers beyond 2^53.
    """
    assert frame.rows is not None
    array = array_of(frame.rows, name, frame.name)
    kind = array.type
    check_exact(array, name, frame.name)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return text_numbers(array.dictionary_encode(), word)
    if word is not None:
        array = pc.if_else(array.is_null(), pa.scalar(None, pa.float64()), 0.0)
    elif pa.types.is_temporal(kind) and not pa.types.is_duration(kind):
        array = microseconds_of(frame, name).cast(pa.float64(), safe=False)
    elif pa.types.is_duration(kind):
        array = array.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.float64(), safe=False)
    elif pa.types.is_boolean(kind):
        array = array.cast(pa.int8()).cast(pa.float64())
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        array = array.cast(pa.float64(), safe=False)
    else:
        raise FrameError(f"{frame.name}: found {kind} in {name}, expected numbers, truth values, times or texts")
    made: Floats = array.to_numpy(zero_copy_only=False).astype(np.float64)
    return made


def text_numbers(texts: pa.DictionaryArray, word: str | None) -> Floats:
    """Texts as `numbers`."""
    values = [text_code(one) if word is None else float(one == word) for one in texts.dictionary.to_pylist()]
    made: Floats = pa.array(values, pa.float64()).take(texts.indices).to_numpy(zero_copy_only=False)
    return made
