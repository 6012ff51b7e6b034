"""Files that are either complete and durable or absent, even after kill -9 and loss of power.

A file is written under a hidden name in the same folder, synced, renamed, and the folder is synced: on a POSIX file
system the rename is atomic, and the sync of the folder makes the new name durable.
"""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import IO

ANY_RIGHTS = 0o666  # less the umask
MOST_NAMED = 1000  # folders that a process remembers as durable; beyond it forgets them, and syncs each once more


def write_durably(path: Path, data: bytes, mode: int = ANY_RIGHTS) -> None:
    """Write a file, replacing an earlier one. mode: rights of the file, less the umask, from its first moment.

    Raises:
        OSError: the file was not written. It may be there even so, and may be gone after a loss of power, if the folder
            could not be synced.
    """
    with appearing(path, mode) as file:
        file.write(data)


@contextlib.contextmanager
def appearing(path: Path, mode: int = ANY_RIGHTS) -> Iterator[IO[bytes]]:
    """Open a file that appears under its name when the block succeeds; otherwise it is removed and fills no disk.

    If only the folder cannot be synced, the file stays, and OSError is raised.
    """
    temporary = path.with_name(f".{path.name}")
    if mode != ANY_RIGHTS:
        temporary.unlink(missing_ok=True)  # of a run that was killed; it may have other rights
    try:
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(path: Path) -> None:
    """Make durable all that was written to the file system of a folder, by other programs too.

    For folders that another program fills without syncing. Cost: with 30 new small files 1 ms, a tenth of a sync of each;
    more while others write much to this disk.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _SYNCFS is None:
            os.sync()
        elif _SYNCFS(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(path))
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, durably.

    They are made from the top, each durable before the next. So of those that are there only the lowest may not be durable:
    it was made by a run that was killed, or whose sync failed. A process syncs the name of each folder once.
    """
    missing = list(takewhile(lambda one: not one.is_dir(), (path, *path.parents)))
    lowest = missing[-1].parent if missing else path
    if lowest not in _named:
        with contextlib.suppress(PermissionError):  # somebody else has made it, where this program may not look
            sync(lowest.parent)
        _note(lowest)
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        _named.discard(one)
        sync(one.parent)
        _note(one)


def _note(folder: Path) -> None:
    if len(_named) >= MOST_NAMED:
        _named.clear()
    _named.add(folder)


_named = set[Path]()  # folders whose names this process has made durable
_SYNCFS = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)  # of Linux
