"""Functions as machine code, by numba; the code is kept in `__pycache__` or, failing that, in the user's cache folder.

Importing this loads numba (half a second). Where the code cannot be kept, each process compiles anew, which takes half a
minute. numba takes kept code for valid as long as the function's own file has not changed; here functions call others of
other files, so it is valid as long as neither a file of the function's folder nor this one has changed.
"""

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy.typing as npt

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])
Stamp = tuple[tuple[str, int, int], ...]

_numba = importlib.import_module("numba")


def compiled(function: Function) -> Function:
    """The function compiled; it lets other threads run meanwhile."""
    return _kept(function, {})


def bare(function: Function) -> Function:
    """As `compiled`, for functions that get all their arrays handed in and make none: references to arrays are not counted.

    The counting costs thirty times the rest in small functions on many arrays.
    """
    return _kept(function, {"_nrt": False, "forceinline": False})


def woven(function: Function) -> Function:
    """As `bare`, put into the code of each function that calls it, for small functions that are called for every event.

    A call hands over seven to nine numbers for each array, one by one: many more than the arrays' shapes need here.
    """
    return _kept(function, {"_nrt": False, "forceinline": True})


def inlined(function: Function) -> Function:
    """A part of compiled functions: handing arrays to a function of its own would count references at every call."""
    found: Function = _numba.njit(inline="always")(function)
    return found


def entry(function: Callable[..., Any], *like: Any) -> Callable[..., Any]:
    """A compiled function for arguments of the very types of these, called without looking at them again.

    numba's own call takes 0.2 us longer for each array. Arrays of another type or layout would be misread, so this is for
    arrays of one's own; whole numbers that do not fit are refused, fractions are cut off.
    """
    dispatcher: Any = function
    signature = tuple(_numba.typeof(one) for one in like)
    dispatcher.compile(signature)
    found: Callable[..., Any] = dispatcher.overloads[signature].entry_point
    return found


def _kept(function: Function, options: dict[str, bool]) -> Function:
    try:
        found: Any = _numba.njit(cache=True, nogil=True, **options)(function)
        found._cache._cache_file._source_stamp = _stamp(Path(function.__code__.co_filename).parent)
    except (RuntimeError, OSError):  # no folder that numba can write to, or no files to date: the package is in a zip
        found = _numba.njit(nogil=True, **options)(function)
    typed: Function = found
    return typed


@functools.cache
def _stamp(folder: Path) -> Stamp:
    files = [Path(__file__), *sorted(folder.glob("*.py"))]
    return tuple((file.name, (found := file.stat()).st_mtime_ns, found.st_size) for file in files)
