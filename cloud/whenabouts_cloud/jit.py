"""Compiles functions to machine code with numba and caches it in `__pycache__` or else in the user's cache folder.

Importing this loads numba (half a second). Without a writable cache, each process compiles again, which takes half a
minute.

    decorator         machine code of its own   in its callers          for
    compiled          yes, cached               called                  functions that create arrays
    compiled_noref    yes, cached               called                  functions that receive all their arrays
    compiled_inline   yes, cached               inlined by LLVM         the same, small and called for every event
    inlined           none                      inlined before typing   functions with one caller, or that create arrays

numba considers cached code valid while the function's own file is unchanged. Here functions call functions of other
files, so the cache folder is named by a hash of the file and of all files that it imports from this package.
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

import numpy as np

from whenabouts_cloud.arrays import Array as Array

Function = TypeVar("Function", bound=Callable[..., Any])
Row = TypeVar("Row", bound=NamedTuple)
KEPT = 4  # cache folders kept for a file: other versions may run on this machine
_IMPORT = re.compile(r"^from (whenabouts_cloud[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
_NAME = re.compile(r"\w+")

_numba = importlib.import_module("numba")
_numbers = importlib.import_module("numba.cpython.unsafe.numbers")
trailing_zeros = _numbers.trailing_zeros  # an instruction, for compiled functions; of 0 it is undefined
u = np.uint64  # as an index in compiled functions: a signed one may count from the end, which costs three instructions


def columns(row: type[Row]) -> Row:
    """The column indices of a table whose rows have this type: `table[i, columns(Row).name]`.

    Machine code treats them as constants.
    """
    return row._make(range(len(row._fields)))


def compiled(function: Function) -> Function:
    """Compile the function; it releases the GIL while it runs."""
    return _kept(function, {})


def compiled_noref(function: Function) -> Function:
    """Compile like `compiled`, for functions that receive all their arrays and create none: no reference counting.

    Counting costs thirty times the rest in small functions with many arrays.
    """
    return _kept(function, {"_nrt": False, "forceinline": False})


def compiled_inline(function: Function) -> Function:
    """Compile like `compiled_noref` and inline the code into each caller, for small functions called for every event.

    A call passes seven to nine numbers for each array, one by one: many more than the arrays' shapes need here.
    """
    return _kept(function, {"_nrt": False, "forceinline": True})


def inlined(function: Function) -> Function:
    """Make the function a part of its callers, without machine code for itself.

    For functions that create arrays, whose references every call would count, and for functions with one caller that
    call many others: as `compiled_inline` they would be compiled once by themselves and once more in the caller, each
    time with all that they call.
    """
    inline: Function = _numba.njit(inline="always")(function)
    return inline


def entry(function: Callable[..., Any], *like: Any) -> Callable[..., Any]:
    """Return a compiled function for arguments of exactly these types; calls do not check the types again.

    numba's own call takes 0.2 us longer for each array. Arrays of another type or layout would be misread, so use this
    only for arrays that the caller made; integers that do not fit are refused, fractions are truncated.
    """
    dispatcher: Any = function
    signature = tuple(_numba.typeof(one) for one in like)
    dispatcher.compile(signature)
    call: Callable[..., Any] = dispatcher.overloads[signature].entry_point
    return call


def _kept(function: Function, options: dict[str, bool]) -> Function:
    before = _numba.config.CACHE_DIR
    try:
        _numba.config.CACHE_DIR = str(_folder(Path(function.__code__.co_filename), before))
        dispatcher: Any = _numba.njit(cache=True, nogil=True, **options)(function)
    except (RuntimeError, OSError):  # no writable folder, or no sources to read: the package is in a zip
        dispatcher = _numba.njit(nogil=True, **options)(function)
    finally:
        _numba.config.CACHE_DIR = before
    typed: Function = dispatcher
    return typed


@functools.cache
def _folder(file: Path, given: str) -> Path:
    """Return the folder for the machine code of a file; of the file's folders only the newest KEPT are left.

    Raises:
        OSError: no folder is writable, or a source cannot be read.
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
    raise OSError(f"found no writable folder for the machine code of {file.name}")


def _sources(file: Path) -> set[Path]:
    """Return the file, this one, and all files of this package that they import, directly or indirectly."""
    files, waiting = set(), [file, Path(__file__)]
    while waiting:
        one = waiting.pop()
        if one not in files:
            files.add(one)
            waiting += _imported(one)
    return files


@functools.cache
def _digest(file: Path) -> bytes:
    return hashlib.blake2b(file.read_bytes(), digest_size=16).digest()


@functools.cache
def _imported(file: Path) -> list[Path]:
    """Return the modules that a file imports. It is read as text: parsing it would take longer than loading the code.

    Names that a package re-exports from its modules are not followed: compiled functions are imported from their own
    modules.
    """
    home = Path(__file__).parent
    files = []
    for module, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
        place = home.joinpath(*module.split(".")[1:])
        inner = [place / f"{name}.py" for name in _NAME.findall(names)]
        files += [one for one in (place.with_suffix(".py"), *inner) if one.is_file()]
    return files
