"""Machine code for the numeric functions of event patterns, by numba.

Importing this loads numba (half a second). The code is kept in `__pycache__` or, where that cannot be written, in the user's
cache folder; where neither can be, each process compiles anew. That code is taken for valid as long as its own file has not
changed, so compiled functions call only compiled functions of the same file.
"""

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

_numba = importlib.import_module("numba")


def compiled(function: Function) -> Function:
    """The function as machine code that releases the interpreter's lock."""
    try:
        found: Function = _numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba finds no folder that it can write to
        found = _numba.njit(nogil=True)(function)
    return found
