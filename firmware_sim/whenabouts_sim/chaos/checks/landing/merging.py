"""The law of merging: what an undamaged file held before, one holds afterwards."""

from collections.abc import Mapping
from pathlib import Path

from whenabouts_cloud.landing.layout import numbers_of
from whenabouts_sim.chaos.parts.landing_files import files_of

Place = tuple[Path, int]
"""Folder and number of a file as it landed."""


def undamaged(part: Path, damaged: Mapping[Path, bytes]) -> set[Place]:
    """The files that landed in a part and can be read, by themselves or in a merged one. damaged: files with a changed bit,
    and what they held then; one that was written again is no longer damaged.
    """
    found = set[Place]()
    for path in files_of(part):
        numbers = numbers_of(path.name)
        if numbers is not None and not (path in damaged and path.read_bytes() == damaged[path]):
            found |= {(path.parent, number) for number in range(numbers.first, numbers.last + 1)}
    return found
