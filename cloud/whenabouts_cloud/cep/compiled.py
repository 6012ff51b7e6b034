"""Functions as machine code, by numba; the code is kept in `__pycache__` or, failing that, in the user's cache folder.

Where neither can be written, each process compiles anew, which takes about half a minute.
"""

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy.typing as npt

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

_numba = importlib.import_module("numba")


def compiled(function: Function) -> Function:
    """The function compiled; it lets other threads run meanwhile."""
    try:
        found: Function = _numba.njit(cache=True, nogil=True, _nrt=False)(function)
    except RuntimeError:  # numba finds no folder that it can write to
        found = _numba.njit(nogil=True, _nrt=False)(function)
    return found
