"""Functions as machine code, by numba; the code is kept in `__pycache__` or, failing that, in the user's cache folder.

Importing this loads numba (half a second). Where the code cannot be kept, each process compiles anew, which takes half a
minute. numba takes kept code for valid as long as the function's own file has not changed. Here functions call others of
other files, so the code lies in a folder named by a hash of the file and of all that it imports from this package.
"""

import functools
import hashlib
import importlib
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from whenabouts_cloud.arrays import Array as Array

Function = TypeVar("Function", bound=Callable[..., Any])
Row = TypeVar("Row", bound=NamedTuple)
KEPT = 4  # states of a file whose code is kept: other versions may run on this machine
_IMPORT = re.compile(r"^from (whenabouts_cloud[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
_NAME = re.compile(r"\w+")

_numba = importlib.import_module("numba")


def columns(row: type[Row]) -> Row:
    """The place of each column of a table whose rows are of this type: `table[i, columns(Row).name]`.

    Machine code takes it for a constant.
    """
    return row._make(range(len(row._fields)))


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
    """A part of the functions that call it, with no machine code of its own.

    For functions that make arrays, whose references every call would count, and for those with one caller that call much:
    as `woven` they would be compiled once by themselves and once more in the caller, each time with all that they call.
    """
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
    before = _numba.config.CACHE_DIR
    try:
        _numba.config.CACHE_DIR = str(_folder(Path(function.__code__.co_filename), before))
        found: Any = _numba.njit(cache=True, nogil=True, **options)(function)
    except (RuntimeError, OSError):  # no folder that can be written to, or no files to read: the package is in a zip
        found = _numba.njit(nogil=True, **options)(function)
    finally:
        _numba.config.CACHE_DIR = before
    typed: Function = found
    return typed


@functools.cache
def _folder(file: Path, given: str) -> Path:
    """The folder for the code of a file's functions; of the file's earlier states only the newest are left beside it.

    Raises:
        OSError: none can be written to, or a source cannot be read.
    """
    key = hashlib.blake2b(b"".join(_digest(one) for one in sorted(_sources(file))), digest_size=12).hexdigest()
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whenabouts"
    for parent in (Path(given),) if given else (file.parent / "__pycache__", users):
        folder = parent / f"numba-{file.parent.name}-{file.stem}-{key}"
        with suppress(OSError):
            if not folder.is_dir():
                folder.mkdir(parents=True, exist_ok=True)
                earlier = parent.glob(f"numba-{file.parent.name}-{file.stem}-*")
                for old in sorted(earlier, key=lambda one: one.stat().st_mtime)[:-KEPT]:
                    shutil.rmtree(old, ignore_errors=True)
            if os.access(folder, os.W_OK):
                return folder
    raise OSError(f"found no folder that can be written to, for the machine code of {file.name}")


def _sources(file: Path) -> set[Path]:
    """The file, this one, and all files of this package that they import, directly or through others."""
    found, waiting = set(), [file, Path(__file__)]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += _imported(one)
    return found


@functools.cache
def _digest(file: Path) -> bytes:
    return hashlib.blake2b(file.read_bytes(), digest_size=16).digest()


@functools.cache
def _imported(file: Path) -> list[Path]:
    """Modules that a file imports. Read as text: syntax trees would take longer to make than the code to load.

    What a package gives out of its modules is not followed: compiled functions are imported from where they are.
    """
    home = Path(__file__).parent
    found = []
    for module, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
        place = home.joinpath(*module.split(".")[1:])
        inner = [place / f"{name}.py" for name in _NAME.findall(names)]
        found += [one for one in (place.with_suffix(".py"), *inner) if one.is_file()]
    return found
