"""The times of a frame's rows as whole microseconds since 1970 UTC: columns t_min and t_max, or ts.

    whole numbers    microseconds, as they are
    timestamps       without a zone they count as UTC; of nanoseconds t_min is rounded down and t_max up, so that the true
                     time stays between them
    dates            their midnight, UTC

A row without t_max, or with a null there, happened at one moment, t_min.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whenabouts.frames.arrow import array_of
from whenabouts.frames.kinds import FrameError, Given

BEGIN, END, MOMENT = "t_min", "t_max", "ts"
UNITS_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}
DAY_US = 86_400_000_000
Times = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def columns_of(names: list[str], name: str) -> tuple[str, str]:
    """The columns with the begin and the end of each row's time; the same one twice for moments.

    Raises:
        FrameError: there are none.
    """
    if BEGIN in names:
        return BEGIN, END if END in names else BEGIN
    if MOMENT in names and END not in names:
        return MOMENT, MOMENT
    shown = ", ".join(names[:20]) or "none"
    raise FrameError(f"{name}: found the columns {shown}; expected t_min and t_max, or t_min, or ts")


def times(frame: Given) -> Times:
    """The begin and the end of each row's time, us since 1970 UTC.

    Raises:
        FrameError: the columns are missing, are no times, have nulls, or a row ends before it begins.
    """
    assert frame.rows is not None
    begin, end = columns_of(frame.columns, frame.name)
    low = microseconds_of(frame, begin, up=False)
    if low.null_count:
        raise FrameError(
            f"{frame.name}: found {low.null_count} nulls in {begin}, expected a time in each row; leave those rows out"
        )
    t_min = low.to_numpy(zero_copy_only=False)
    if end == begin:
        t_max = microseconds_of(frame, end, up=True).to_numpy(zero_copy_only=False) if _is_fine(frame, begin) else t_min
        return t_min, t_max
    high = microseconds_of(frame, end, up=True)
    t_max = (pc.coalesce(high, low) if high.null_count else high).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(t_max < t_min)
    if len(wrong):
        raise FrameError(
            f"{frame.name}: found {len(wrong)} rows whose {end} is before their {begin}, the first is row {wrong[0]}; "
            "expected each to end at its begin or later"
        )
    return t_min, t_max


def _is_fine(frame: Given, name: str) -> bool:
    """True if moments have nanoseconds, which lie between two microseconds."""
    assert frame.rows is not None
    kind = array_of(frame.rows, name, frame.name).type
    return bool(pa.types.is_timestamp(kind)) and kind.unit == "ns"


def microseconds_of(frame: Given, name: str, up: bool = False) -> pa.Array:
    """A column of an eager frame as int64 of microseconds, nulls as they are; see `as_microseconds`."""
    assert frame.rows is not None
    return as_microseconds(array_of(frame.rows, name, frame.name), frame.name, f" in {name}", up)


def as_microseconds(column: Any, name: str, where: str, up: bool) -> pa.Array:
    """A column of Arrow as int64 of microseconds, nulls as they are; up: rounds nanoseconds up, else down.

    Raises:
        FrameError: it holds no times; the text begins with `name` and says `where`.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    try:
        if pa.types.is_null(kind):
            return pa.nulls(len(array), pa.int64())
        if pa.types.is_integer(kind):
            return array.cast(pa.int64())
        if pa.types.is_date32(kind):
            return pc.multiply_checked(array.cast(pa.int32()).cast(pa.int64()), DAY_US)
        if pa.types.is_date64(kind):
            return pc.multiply_checked(array.cast(pa.int64()), 1000)
        if pa.types.is_timestamp(kind):
            return _of_unit(array.cast(pa.int64()), UNITS_NS[kind.unit], up)
    except pa.ArrowInvalid as error:
        raise FrameError(f"{name}: found a time{where} that is beyond all microseconds ({error})") from None
    hint = "; are there nulls, which make whole numbers fractions in pandas?" if pa.types.is_floating(kind) else ""
    raise FrameError(f"{name}: found {kind}{where}, expected timestamps, dates or whole numbers of microseconds{hint}")


def _of_unit(values: pa.Array, unit_ns: int, up: bool) -> pa.Array:
    if unit_ns >= 1000:
        return values if unit_ns == 1000 else pc.multiply_checked(values, unit_ns // 1000)
    whole = values.to_numpy(zero_copy_only=False) if not values.null_count else values.fill_null(0).to_numpy()
    parted = -(-whole // 1000) if up else whole // 1000
    return pa.array(
        parted, pa.int64(), mask=None if not values.null_count else values.is_null().to_numpy(zero_copy_only=False)
    )
