"""Files of a landing, and how far somebody has read it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from whenabouts_cloud.landing.files import data_files
from whenabouts_cloud.landing.layout import FRONTIER, numbers_of

Ends = Mapping[str, int]
"""The number of the last file that was read of each part of a landing."""


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


def written_between(landing: Path, start: Ends, end: Ends) -> dict[FileId, int]:
    """When each file of readings was written that follows the first end and not the second, and is not merged: ns."""
    found = dict[FileId, int]()
    for part, last in end.items():
        for path in data_files(landing / part):
            numbers = numbers_of(path.name)
            if numbers is not None and start.get(part, 0) < numbers.last <= last and numbers.first == numbers.last:
                found[FileId(0, numbers.last, part)] = path.stat().st_mtime_ns
    return found


def files_of(part: Path) -> list[Path]:
    """The files of a part of a landing: of readings, then of frontiers."""
    return [*data_files(part), *frontier_files(part)]


def frontier_files(part: Path) -> list[Path]:
    """The files of frontiers of a part of a landing."""
    return sorted((part / FRONTIER).glob("*/part-*.json"))
