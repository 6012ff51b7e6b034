"""Files of a landing, and how far somebody has read it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from whenabouts_cloud.landing.files import data_files
from whenabouts_cloud.landing.layout import FRONTIER

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


def files_of(part: Path) -> list[Path]:
    """The files of a part of a landing: of readings, then of frontiers."""
    return [*data_files(part), *frontier_files(part)]


def frontier_files(part: Path) -> list[Path]:
    """The files of frontiers of a part of a landing."""
    return sorted((part / FRONTIER).glob("*/part-*.json"))
