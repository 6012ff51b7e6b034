"""Files of a landing, and how far somebody has read it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from whenabouts_cloud.landing.files import data_files
from whenabouts_cloud.landing.history import Piece
from whenabouts_cloud.landing.layout import FRONTIER, HOUR, Numbers, numbers_of

Ends = Mapping[str, int]
"""The number of the last file that was read of each part of a landing."""

NONE = Numbers(0, -1)  # that a file holds which no ingest has written


class FileId(NamedTuple):
    """A file of a landing: when it appeared, its number, and the part of the landing that it is in."""

    at_us: int
    number: int
    part: str = ""

    def within(self, ends: Ends) -> bool:
        """True if it was read by somebody who has read each part so far."""
        return self.number <= ends.get(self.part, 0)


def ends_of(offset: Mapping[str, Any]) -> Ends:
    """How far an offset of Spark has read the landing."""
    return {part.removeprefix("."): place["number"] for part, place in offset.items()}


def written(landing: Path, pieces: Iterable[Piece]) -> dict[FileId, int]:
    """When each of these files of readings was written, ns; of a merged one those that it holds and that are still there."""
    found = dict[FileId, int]()
    for piece in pieces:
        path = landing / piece.path
        held = numbers_of(path.name) or NONE
        for one in path.parent.glob("part-*.parquet" if piece.merged else path.name):
            numbers = numbers_of(one.name)
            if numbers and numbers.first == numbers.last and held.first <= numbers.last <= held.last:
                part = path.parents[1].relative_to(landing).as_posix().removeprefix(".")
                found[FileId(0, numbers.last, part)] = one.stat().st_mtime_ns
    return found


def files_of(part: Path) -> list[Path]:
    """The files of a part of a landing: of readings, then of frontiers."""
    return [*data_files(part), *frontier_files(part)]


def frontier_files(part: Path) -> list[Path]:
    """The files of frontiers of a part of a landing."""
    return sorted((part / FRONTIER).glob(f"{HOUR}*/part-*.json"))
