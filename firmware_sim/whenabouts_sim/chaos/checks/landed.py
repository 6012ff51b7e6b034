"""What is in a landing, read anew from its files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from whenabouts_cloud.landing.files import data_files
from whenabouts_cloud.landing.layout import FRONTIER, numbers_of

COLUMNS = ["site", "gateway", "boot", "seq", "stream", "kind", "key", "t_min", "t_max", "value"]


class LandedReading(NamedTuple):
    """A reading, and the number of the file that it is in."""

    file: int
    site: str
    gateway: str
    boot: int
    seq: int
    stream: str
    kind: str
    key: str | None
    t_min: int
    t_max: int
    value: str | None


class LandedFrontier(NamedTuple):
    """How far the readings of a gateway are said to be complete, and in which file."""

    file: int
    site: str
    gateway: str
    frontier_us: int
    streams: tuple[str, ...]


@dataclass(frozen=True)
class Landed:
    """All of it, in the order of files."""

    readings: list[LandedReading]
    frontiers: list[LandedFrontier]


def read_landing(folder: Path) -> Landed:
    """Read a landing in a folder."""
    readings, frontiers = list[LandedReading](), list[LandedFrontier]()
    for path in data_files(folder):
        numbers = numbers_of(path.name)
        assert numbers is not None
        table = pq.ParquetFile(path).read(COLUMNS)
        columns = (column.to_pylist() for column in table.columns)
        readings += [LandedReading(numbers.last, *row) for row in zip(*columns, strict=True)]
    for path in sorted((folder / FRONTIER).glob("*/part-*.json")):
        numbers = numbers_of(path.name)
        assert numbers is not None
        for line in path.read_text().splitlines():
            row = json.loads(line)
            frontiers.append(
                LandedFrontier(numbers.last, row["site"], row["gateway"], row["frontier_us"], tuple(row["streams"]))
            )
    return Landed(sorted(readings), sorted(frontiers))


def latest(frontiers: list[LandedFrontier]) -> list[LandedFrontier]:
    """The last frontier of each gateway."""
    return list({(one.site, one.gateway): one for one in frontiers}.values())


def newest_number(folder: Path) -> int:
    """The highest number of a file in a landing, 0 without any."""
    names = (path.name for path in (*folder.glob("hour=*/part-*"), *folder.glob(f"{FRONTIER}/hour=*/part-*")))
    return max((numbers.last for numbers in map(numbers_of, names) if numbers), default=0)
