"""Writes health records in a thread of its own: a full disk, or a store out of reach, does not hold readings up.

Nothing is synced: after a power cut the last seconds may be missing, and a line may be torn. In a local folder a file for
each hour is appended to every second; in an object store, where nothing can be appended to, an object is written anew every
minute, up to OBJECT_BYTES. Names hold a token of the process, so two ingests never write the same file.
"""

import contextlib
import os
import threading
import uuid
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from whenabouts_cloud.health.recorder import Recorder
from whenabouts_cloud.landing.layout import HEALTH, HOUR
from whenabouts_cloud.landing.store import Store
from whenabouts_protocol.logs import Log

EVERY_S, OBJECT_EVERY_S = 1.0, 60.0
OBJECT_BYTES = 4 << 20
TELL_EVERY = 60  # failures
CLOSE_S = 3.0  # at most, for the last records

log = Log(__name__)


class HealthFiles:
    """The files of one process in a part of a landing."""

    def __init__(self, part: Store) -> None:
        self._part, self._token = part, uuid.uuid4().hex[:8]
        self._hour, self._number = "", 0
        self._size, self._content = 0, b""  # of the present file, as far as it was written

    def append(self, hour: str, lines: bytes) -> None:
        """Add whole lines to the file of an hour.

        Raises:
            OSError: they are not there; the next call takes away what is left of them.
        """
        local = self._part.local
        full = local is None and len(self._content) + len(lines) > OBJECT_BYTES
        if hour != self._hour or (full and self._content):
            self._hour, self._number, self._size, self._content = hour, self._number + 1, 0, b""
        path = f"{HEALTH}/{HOUR}{hour}/part-{self._token}-{self._number:04d}.jsonl"
        if local is None:
            self._part.write(path, self._content + lines)
            self._content += lines
        else:
            self._size = _appended(local / path, self._size, lines)


class HealthWriter:
    """Writes what a recorder keeps, from `start` on until it is closed."""

    def __init__(self, part: Store, recorder: Recorder, every_s: float | None = None) -> None:
        self._recorder, self._uri = recorder, part.uri
        self._files = HealthFiles(part)
        self._every_s = every_s or (OBJECT_EVERY_S if part.local is None else EVERY_S)
        self._unwritten: list[tuple[str, bytes]] = []
        self._failures = 0  # in a row
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def close(self) -> None:
        """Write what is left, for up to CLOSE_S."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(CLOSE_S)

    def write(self) -> None:
        """Write what is there; what cannot be written waits for the next call. Never raises."""
        if not self._unwritten:
            self._unwritten = _by_hour(self._recorder.take())
        try:
            while self._unwritten:
                self._files.append(*self._unwritten[0])
                del self._unwritten[0]
            self._failures = 0
        except Exception as error:  # whatever a store raises: the thread must not end
            self._recorder.counters.health_failed += 1
            if self._failures % TELL_EVERY == 0:
                log.error("health.unwritable", "readings land as before; tries again", landing=self._uri, error=error)
            self._failures += 1

    def _run(self) -> None:
        while not self._closing.wait(self._every_s):
            self.write()
        for _ in range(2):  # what had failed before, and what has come since
            self.write()


def _by_hour(lines: Iterable[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    return [(hour, b"".join(line for _, line in some)) for hour, some in groupby(lines, key=lambda one: one[0])]


def _appended(path: Path, size: int, lines: bytes) -> int:
    """Append to a file whose first `size` bytes are good; its new size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        end = min(size, file.seek(0, os.SEEK_END))
        file.truncate(end)
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[file.write(rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(end)
            raise
    return end + len(lines)
