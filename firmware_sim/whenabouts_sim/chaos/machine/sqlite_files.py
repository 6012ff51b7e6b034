"""Files that report every write, sync, truncation and deletion of SQLite, and can refuse them: a VFS of sqlite3.

Registered as the default VFS of the library that `sqlite3` itself uses, by ctypes: every file is opened by the real VFS, and
its table of methods is replaced by a copy in which the calls that change the file go through here. `reported` gets
(operation, path, offset, bytes); `refuse` may return an error code of SQLite, which then replaces the call.
"""

import _sqlite3
import ctypes
import os
from collections.abc import Callable

SQLITE_OK, SQLITE_FULL = 0, 13
_METHODS = (
    "xClose", "xRead", "xWrite", "xTruncate", "xSync", "xFileSize", "xLock", "xUnlock", "xCheckReservedLock",
    "xFileControl", "xSectorSize", "xDeviceCharacteristics", "xShmMap", "xShmLock", "xShmBarrier", "xShmUnmap", "xFetch",
    "xUnfetch",
)  # fmt: skip
_CALLS = (
    "xOpen", "xDelete", "xAccess", "xFullPathname", "xDlOpen", "xDlError", "xDlSym", "xDlClose", "xRandomness", "xSleep",
    "xCurrentTime", "xGetLastError", "xCurrentTimeInt64", "xSetSystemCall", "xGetSystemCall", "xNextSystemCall",
)  # fmt: skip


class _IoMethods(ctypes.Structure):
    _fields_ = (("iVersion", ctypes.c_int), *((name, ctypes.c_void_p) for name in _METHODS))


class _File(ctypes.Structure):
    _fields_ = (("pMethods", ctypes.POINTER(_IoMethods)),)


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("iVersion", ctypes.c_int), ("szOsFile", ctypes.c_int), ("mxPathname", ctypes.c_int), ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p), ("pAppData", ctypes.c_void_p), *((name, ctypes.c_void_p) for name in _CALLS),
    )  # fmt: skip


_P, _I, _L = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
_WRITE = ctypes.CFUNCTYPE(_I, _P, _P, _I, _L)
_TRUNCATE = ctypes.CFUNCTYPE(_I, _P, _L)
_SYNC = ctypes.CFUNCTYPE(_I, _P, _I)
_OPEN = ctypes.CFUNCTYPE(_I, _P, _P, _P, _I, _P)  # the name as a pointer: SQLite's files keep it until they are closed
_DELETE = ctypes.CFUNCTYPE(_I, _P, ctypes.c_char_p, _I)


class WatchedFiles:
    """Watches the files for which `watches` says so from now on, until the process ends.

    Raises:
        AttributeError: Python's sqlite3 does not export the functions of its library.
    """

    def __init__(self, watches: Callable[[str], bool], reported: Callable[[str, str, int, bytes], None]) -> None:
        self.watches, self.reported = watches, reported
        self.refuse: Callable[[str, str], int] = lambda operation, path: SQLITE_OK
        self._paths: dict[int, str] = {}  # by the address of the open file
        self._watching: dict[int, _IoMethods] = {}  # by the address of the real methods
        self._kept: list[object] = []  # what the library points at
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        self._real = library.sqlite3_vfs_find(None)
        vfs = _Vfs()
        ctypes.memmove(ctypes.byref(vfs), self._real, ctypes.sizeof(_Vfs))
        vfs.pNext, vfs.zName = None, b"watched"
        self._open, self._delete = _OPEN(vfs.xOpen), _DELETE(vfs.xDelete)
        vfs.xOpen, vfs.xDelete = self._pointer(_OPEN(self._on_open)), self._pointer(_DELETE(self._on_delete))
        self._kept.append(vfs)
        if library.sqlite3_vfs_register(ctypes.byref(vfs), 1) != SQLITE_OK:
            raise OSError("sqlite3: cannot register a VFS")

    def _pointer(self, callback: object) -> int | None:
        self._kept.append(callback)
        return ctypes.cast(callback, _P).value  # type: ignore[arg-type]

    def _on_open(self, _vfs: int, name: int | None, file: int, flags: int, out: int) -> int:
        path = ctypes.string_at(name).decode() if name else ""
        if not self.watches(path):
            return int(self._open(ctypes.cast(self._real, _P), name, file, flags, out))
        new = not os.path.exists(path)
        code = new and self.refuse("create", path)
        code = code or self._open(ctypes.cast(self._real, _P), name, file, flags, out)
        if code == SQLITE_OK:
            opened = ctypes.cast(file, ctypes.POINTER(_File)).contents
            self._paths[file] = path
            if new:
                self.reported("create", path, 0, b"")
            opened.pMethods = ctypes.pointer(self._watched(opened.pMethods.contents))
        return int(code)

    def _watched(self, real: _IoMethods) -> _IoMethods:
        known = self._watching.get(ctypes.addressof(real))
        if known is not None:
            return known
        methods = _IoMethods()
        ctypes.memmove(ctypes.byref(methods), ctypes.byref(real), ctypes.sizeof(_IoMethods))
        write, truncate, sync = _WRITE(real.xWrite), _TRUNCATE(real.xTruncate), _SYNC(real.xSync)

        def on_write(file: int, data: int, size: int, offset: int) -> int:
            code = self.refuse("write", self._paths[file])
            if code == SQLITE_OK:
                self.reported("write", self._paths[file], offset, ctypes.string_at(data, size))
                code = write(file, data, size, offset)
            return code

        def on_truncate(file: int, size: int) -> int:
            code = self.refuse("truncate", self._paths[file])
            if code == SQLITE_OK:
                self.reported("truncate", self._paths[file], size, b"")
                code = truncate(file, size)
            return code

        def on_sync(file: int, flags: int) -> int:
            code = self.refuse("sync", self._paths[file]) or sync(file, flags)
            if code == SQLITE_OK:
                self.reported("sync", self._paths[file], 0, b"")
            return code

        methods.xWrite = self._pointer(_WRITE(on_write))
        methods.xTruncate = self._pointer(_TRUNCATE(on_truncate))
        methods.xSync = self._pointer(_SYNC(on_sync))
        self._watching[ctypes.addressof(real)] = methods
        return methods

    def _on_delete(self, _vfs: int, name: bytes, sync: int) -> int:
        path = name.decode()
        code = self.refuse("delete", path) if self.watches(path) else SQLITE_OK
        code = code or self._delete(ctypes.cast(self._real, _P), name, sync)
        if code == SQLITE_OK and self.watches(path):
            self.reported("delete", path, sync, b"")
        return int(code)
