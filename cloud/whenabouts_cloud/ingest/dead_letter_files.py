"""The files of dead letters, `letters-0001.jsonl` and so on, to which lines are added.

Objects cannot be appended to. In an object store a writer keeps its last object in memory and writes it anew with each
addition, so it is small; its name ends with that of the writer, which alone writes it.
"""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from whenabouts_cloud.durable import sync
from whenabouts_cloud.ingest.holding import Holding
from whenabouts_cloud.landing.store import Store

DEAD = "_dead"
MAX_FILE_BYTES = 16 << 20
MAX_FILES = 16
MAX_OBJECT_BYTES = 256 << 10
MAX_OBJECTS = 1000
MAX_LINE_BYTES = 128 << 10  # a letter with all fields at their limit, escaped
RELIST_S = 60.0  # between two listings of an object store, which show what was moved away
_NAME = re.compile(r"letters-([0-9]{4})(?:-[0-9a-f]{8})?\.jsonl")


class Place(NamedTuple):
    """A file to add to, and how many bytes fit."""

    name: str
    room: int


class LetterFiles(Protocol):
    """The files of one landing. Each method raises OSError if they cannot be reached; nothing is added then."""

    def names(self) -> list[str]:
        """All files, sorted."""

    def lines(self, name: str) -> list[bytes]:
        """The lines of a file, with their ends."""

    def place(self) -> Place | None:
        """The file that has room for a letter of any size; None when all are full."""

    def append(self, name: str, lines: bytes) -> None:
        """Add whole lines to the file that `place` has named; durable when this returns."""


class LettersInFolder:
    """In a local folder, which must exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._named = set[str]()  # files whose names are durable: an earlier ingest may have been killed before

    def names(self) -> list[str]:
        return sorted(filter(_NAME.fullmatch, os.listdir(self._folder)))

    def lines(self, name: str) -> list[bytes]:
        with (self._folder / name).open("rb") as file:
            return list(file)

    def place(self) -> Place | None:
        names = self.names()
        if names:
            room = MAX_FILE_BYTES - (self._folder / names[-1]).stat().st_size
            if room >= MAX_LINE_BYTES:
                return Place(names[-1], room)
        name = _after(names, MAX_FILES, "")
        return None if name is None else Place(name, MAX_FILE_BYTES)

    def append(self, name: str, lines: bytes) -> None:
        """Cuts off a line that a crash left incomplete: it was never acknowledged."""
        with open(self._folder / name, "a+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(max(0, end - MAX_LINE_BYTES))
                tail = file.read()
                end -= len(tail) - (tail.rfind(b"\n") + 1)
                file.truncate(end)
            try:
                rest = memoryview(lines)
                while rest:
                    rest = rest[file.write(rest) :]
                os.fsync(file.fileno())
                if not end or name not in self._named:  # a file of this name may have been moved away
                    sync(self._folder)
                    self._named.add(name)
            except OSError:
                file.truncate(end)
                raise


class LettersInStore:
    """In an object store. monotonic_s: a clock that never goes back."""

    def __init__(self, part: Store, holding: Holding, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._part, self._holding, self._monotonic_s = part, holding, monotonic_s
        self._names: list[str] = []
        self._listed_s = -RELIST_S
        self._own, self._content = "", b""  # the object that this process adds to

    def names(self) -> list[str]:
        if self._monotonic_s() - self._listed_s >= RELIST_S:
            self._names = sorted(one.name for one in self._part.entries(DEAD) if _NAME.fullmatch(one.name))
            self._listed_s = self._monotonic_s()
        return self._names

    def lines(self, name: str) -> list[bytes]:
        return self._part.read(f"{DEAD}/{name}").splitlines(keepends=True)

    def place(self) -> Place | None:
        room = MAX_OBJECT_BYTES - len(self._content)
        if self._own in self.names() and room >= MAX_LINE_BYTES:
            return Place(self._own, room)
        name = _after(self.names(), MAX_OBJECTS, f"-{self._holding.holder[:8]}")
        return None if name is None else Place(name, MAX_OBJECT_BYTES)

    def append(self, name: str, lines: bytes) -> None:
        content = self._content + lines if name == self._own else lines
        self._holding.confirm()
        self._part.write(f"{DEAD}/{name}", content)
        if name != self._own:
            self._names = [*self._names, name]
        self._own, self._content = name, content


def _after(names: list[str], most: int, suffix: str) -> str | None:
    """The name of a new file; None if there are enough."""
    last = max((int(found[1]) for name in names if (found := _NAME.fullmatch(name))), default=0)
    return f"letters-{last + 1:04d}{suffix}.jsonl" if len(names) < most and last < 9999 else None
