"""The mark in a local folder of a program that numbers files: it is there while one runs, and after one that was killed.

A loss of power can remove the newest file although jobs have read it. They would skip another file with that number, and any
file in an earlier hour. So the mark names the hour, and after a program that was killed the next number is used for an empty
file. An object store needs no mark: there a file that is visible is durable.
"""

import contextlib
import re
from pathlib import Path

from whenabouts_cloud.durable import write_durably


class RunningMark:
    """The mark of a folder. interrupted: the last program did not end in order; hour: of its newest file, "" if unknown.

    Raises:
        OSError: the mark is there and cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "_ingest" / "running"
        self._is_written = False
        self.interrupted, self.hour = self._path.exists(), ""
        if self.interrupted:
            text = self._path.read_bytes().decode(errors="replace")
            self.hour = text if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d", text) else ""

    def enter(self, hour: str) -> None:
        """To be called before each file: it is of this hour. Writes only at the first call, and when the hour changes.

        Raises:
            OSError: the mark cannot be written; then no file may be.
        """
        if not self._is_written or hour != self.hour:
            write_durably(self._path, hour.encode())
            self.hour, self._is_written = hour, True

    def remove(self) -> None:
        """The program ends, and all its files are durable. If the mark stays, a number is used for an empty file."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
