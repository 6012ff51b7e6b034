"""Checks of the arguments of engines: each returns whole numbers for the machine code or raises a ValueError."""

import operator
from typing import Any

import numpy as np

from whenabouts_cloud.cep.kernel.layout import FOREVER, NEVER
from whenabouts_cloud.jit import Array
from whenabouts_cloud.pattern.plan import TIME_LIMIT


def column(name: str, values: Any, count: int | None) -> Array:
    """A column of `count` whole numbers, any number of them for None.

    Raises:
        ValueError: the column has another shape or kind, or a number that does not fit into 64 bits with a sign.
    """
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size) or (count is not None and len(array) != count):
        wanted = "whole numbers" if count is None else f"{count} whole numbers"
        raise ValueError(f"{name}: found {array.dtype} of shape {array.shape}, expected {wanted}")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
        raise ValueError(f"{name}: found {array.max()}, expected whole numbers below 2^63")
    # Writable: numba compiles again for read-only columns, such as Arrow's.
    return np.require(array, np.int64, ("C", "W"))


def times(name: str, values: Any, count: int | None) -> Array:
    """A column of ticks.

    Raises:
        ValueError: as `column`, or a time is out of range.
    """
    ticks = column(name, values, count)
    if len(ticks) and not (ticks.min() > -TIME_LIMIT and ticks.max() < TIME_LIMIT):
        raise ValueError(f"{name}: found {ticks.min()} .. {ticks.max()}, expected -2^60 .. 2^60")
    return ticks


def codes(values: Any, count: int, known: int) -> Array:
    """A column of type codes, which are places in a list of `known` names.

    Raises:
        ValueError: as `column`, or a code has no name.
    """
    numbers = column("type_code", values, count)
    if count and not (numbers.min() >= 0 and numbers.max() < known):
        raise ValueError(f"type_code: found {numbers.min()} .. {numbers.max()}, expected 0 .. {known - 1}")
    return numbers


def whole(name: str, value: Any) -> int:
    """A whole number.

    Raises:
        ValueError: the value is not a whole number.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: found {value!r}, expected a whole number") from None


def moment(name: str, value: Any) -> int:
    """A frontier in ticks; one beyond all times becomes FOREVER or NEVER.

    Raises:
        ValueError: the value is not a whole number.
    """
    return max(NEVER, min(whole(name, value), FOREVER))
