"""Files that are durable when a write returns: the flash of a board, or a folder where there is none.

littlefs, the file system of boards, commits a file when it is flushed or closed. Elsewhere CPython makes the operating
system commit it. MicroPython on a PC cannot; its files survive the end of the process only.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Flash:
    """The files of one folder, with the methods that `flash_log` needs. The folder must exist."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Up to size bytes from offset on; b"" beyond the end or when there is no such file."""
        try:
            with open(self._folder + "/" + name, "rb") as file:
                file.seek(offset)
                data: bytes = file.read(size)
                return data
        except OSError as error:
            if error.errno == 2:  # no such file, on every system
                return b""
            raise

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Write data from offset on, 0 for a new file; durable when it returns. Raises OSError when it cannot."""
        with open(self._folder + "/" + name, "r+b" if offset else "wb") as file:
            file.seek(offset)
            file.write(data)
            file.flush()
            if hasattr(os, "fsync"):
                os.fsync(file.fileno())
        if not offset and hasattr(os, "fsync"):
            self._sync_folder()

    def _sync_folder(self) -> None:
        system: Any = os  # no board has these
        folder = system.open(self._folder, system.O_RDONLY)
        try:
            system.fsync(folder)
        finally:
            system.close(folder)
