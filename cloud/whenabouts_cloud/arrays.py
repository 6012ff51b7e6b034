"""The type of numpy arrays of any content, which `jit` re-exports, and large arrays. Does not load numba."""

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

HUGE_BYTES = 1 << 22  # numpy asks for huge pages from here on


def fresh(count: int, dtype: Any) -> Array:
    """Return an array without content that returns to the system at once when it is released, in pages of normal size.

    A guest that gives free memory back to its host, as virtual machines do, takes most huge pages from memory that the
    host must find first: filling them took four times as long as normal pages there, and a third where they were at hand.
    """
    size = count * np.dtype(dtype).itemsize
    if size < HUGE_BYTES or not hasattr(mmap, "MAP_PRIVATE"):
        return np.empty(count, dtype)
    return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), dtype)
