"""What callers hand to engines, as whole numbers that machine code can take, or an error that says what was found."""

import operator
from typing import Any

import numpy as np

from whenabouts_cloud.cep.kernel.layout import FOREVER, NEVER
from whenabouts_cloud.jit import Array
from whenabouts_cloud.pattern.plan import TIME_LIMIT


def column(name: str, values: Any, count: int | None) -> Array:
    """A column of `count` whole numbers, any number of them for None.

    Raises:
        ValueError: it is of another shape or kind, or holds a number that 64 bits with a sign do not.
    """
    found = np.asarray(values)
    if found.ndim != 1 or (found.dtype.kind not in "iu" and found.size) or (count is not None and len(found) != count):
        wanted = "whole numbers" if count is None else f"{count} whole numbers"
        raise ValueError(f"{name}: found {found.dtype} of shape {found.shape}, expected {wanted}")
    if found.dtype == np.uint64 and found.size and int(found.max()) >= 1 << 63:
        raise ValueError(f"{name}: found {found.max()}, expected whole numbers below 2^63")
    # Writable: numba compiles once more for columns that are not, as Arrow's are.
    return np.require(found, np.int64, ("C", "W"))


def times(name: str, values: Any, count: int | None) -> Array:
    """A column of ticks.

    Raises:
        ValueError: as `column`, or there is one at or beyond the limit of time.
    """
    found = column(name, values, count)
    if len(found) and not (found.min() > -TIME_LIMIT and found.max() < TIME_LIMIT):
        raise ValueError(f"{name}: found {found.min()} .. {found.max()}, expected -2^60 .. 2^60")
    return found


def codes(values: Any, count: int, known: int) -> Array:
    """A column of type codes, places in a list of so many names.

    Raises:
        ValueError: as `column`, or there is a code without a name.
    """
    found = column("type_code", values, count)
    if count and not (found.min() >= 0 and found.max() < known):
        raise ValueError(f"type_code: found {found.min()} .. {found.max()}, expected 0 .. {known - 1}")
    return found


def whole(name: str, value: Any) -> int:
    """A whole number.

    Raises:
        ValueError: it is none.
    """
    try:
        return operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: found {value!r}, expected a whole number") from None


def moment(name: str, value: Any) -> int:
    """A frontier in ticks; beyond all times it is FOREVER or NEVER.

    Raises:
        ValueError: it is no whole number.
    """
    return max(NEVER, min(whole(name, value), FOREVER))
