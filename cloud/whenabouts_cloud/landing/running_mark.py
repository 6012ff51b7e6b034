"""The mark in a local folder of a program that numbers files: it is there while one runs, and after one that was killed.

A loss of power can remove the newest file although jobs have read it. They would skip another file with that number, and any
file in an earlier hour. So the mark names the hour, and after a program that was killed the next number is used for an empty
file. An object store needs no mark: there a file that is visible is durable.
"""

import contextlib
import re
from pathlib import Path

from whenabouts_cloud.durable import sync, write_durably
from whenabouts_cloud.landing.layout import AHEAD, FRONTIER, HOUR


class RunningMark:
    """The mark of a folder, and durable names of what is in it. interrupted: the last program did not end in order; hour: of
    its newest file, "" if unknown.

    Raises:
        OSError: the mark is there and cannot be read, or a folder cannot be synced.
    """

    def __init__(self, folder: Path) -> None:
        _sync_names(folder)
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


def _sync_names(folder: Path) -> None:
    """Make the names in a landing durable: an earlier program may have been killed before it synced a folder.

    The contents of its files are: each was synced before it got its name. Files of earlier hours had names that were durable
    before the first of a later hour.
    """
    with contextlib.suppress(PermissionError):  # others may have made the landing for this user alone
        sync(folder.parent)
    sync(folder / "_ingest")
    for one in (folder, *(folder / kind for kind in (AHEAD, FRONTIER))):
        if one.is_dir():
            sync(one)
            for hour in sorted(one.glob(f"{HOUR}*"))[-1:]:
                with contextlib.suppress(FileNotFoundError):  # old hours may be moved away meanwhile
                    sync(hour)
