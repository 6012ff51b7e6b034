"""Functions as machine code, by numba; the code is kept in `__pycache__` or, failing that, in the user's cache folder.

Importing this loads numba (half a second). Where the code cannot be kept, each process compiles anew, which takes half a
minute. numba takes kept code for valid as long as the function's own file has not changed; here functions call others of
other files, so it is valid as long as no file of this package has changed.
"""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

_numba = importlib.import_module("numba")
_STAMP = tuple((f.name, (s := f.stat()).st_mtime_ns, s.st_size) for f in sorted(Path(__file__).parent.glob("*.py")))


def compiled(function: Function) -> Function:
    """The function compiled; it lets other threads run meanwhile."""
    return _kept(function, {})


def bare(function: Function) -> Function:
    """As `compiled`, for functions that get all their arrays handed in and make none: references to arrays are not counted.

    The counting costs thirty times the rest in small functions on many arrays.
    """
    return _kept(function, {"_nrt": False})


def _kept(function: Function, options: dict[str, bool]) -> Function:
    try:
        found: Any = _numba.njit(cache=True, nogil=True, **options)(function)
        found._cache._cache_file._source_stamp = _STAMP
    except RuntimeError:  # numba finds no folder that it can write to
        found = _numba.njit(nogil=True, **options)(function)
    typed: Function = found
    return typed
