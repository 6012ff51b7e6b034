"""Files that appear whole and durable, or not at all, through kill -9 and loss of power.

A file is written under a hidden name beside its own, synced, renamed, and its folder synced: on a POSIX file system the
rename is atomic, and the sync of the folder makes the new name durable.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def write_durably(path: Path, data: bytes) -> None:
    """Write a file, or put it in the place of an earlier one.

    Raises:
        OSError: nothing has changed.
    """
    with appearing(path) as file:
        file.write(data)


@contextlib.contextmanager
def appearing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that appears under its name when the block ends well; else nothing is left to fill the disk."""
    temporary = path.with_name(f".{path.name}")
    try:
        with open(temporary, "wb") as file:
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
