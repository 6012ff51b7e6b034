"""The law of merging: what an undamaged file held before, one holds afterwards."""

from collections.abc import Mapping
from pathlib import Path

from whenabouts_cloud.landing.layout import numbers_of
from whenabouts_sim.chaos.checks.landing.damage import content_of
from whenabouts_sim.chaos.parts.landing_files import files_of

Place = tuple[Path, int]
"""Folder and number of a file as it landed."""


def undamaged(part: Path, rotten: Mapping[Path, bytes]) -> set[Place]:
    """The files that landed in a part and read as they were written, by themselves or in a merged one. rotten: what files
    held before a bit of them changed.
    """
    found = set[Place]()
    for path in files_of(part):
        numbers = numbers_of(path.name)
        if numbers is not None and not _differs(path, rotten):
            found |= {(path.parent, number) for number in range(numbers.first, numbers.last + 1)}
    return found


def _differs(path: Path, rotten: Mapping[Path, bytes]) -> bool:
    if path not in rotten or (now := path.read_bytes()) == rotten[path]:
        return False
    return content_of(path.suffix, now) != content_of(path.suffix, rotten[path])
