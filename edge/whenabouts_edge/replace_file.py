"""Replaces a file whole: a program that reads it sees the old or the new text, never half of one."""

import os
from pathlib import Path


def replace_file(path: Path, text: str, mode: int | None = None, *, durable: bool) -> None:
    """Write a text to a new file beside `path`, then rename it over `path`; after a failure neither is changed.

    mode: permission bits, whatever the umask; None: those that the umask gives. At no time can the text be read by
    others than `mode` lets. durable: the new text survives a power cut from the return on; waits for the disk twice.

    Raises:
        OSError: the folder is missing or cannot be written, or the disk is full.
    """
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)  # of a program that was killed here
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(temporary, flags, 0o666 if mode is None else 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable and hasattr(os, "O_DIRECTORY"):  # Windows cannot open a folder, and needs no more
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)  # the rename
        finally:
            os.close(folder)
