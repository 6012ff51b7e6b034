"""What is in a landing, read anew from its files."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.damage import record_of
from whenabouts_cloud.landing.files import data_files
from whenabouts_cloud.landing.layout import DATA, FRONTIER, NUMBER, PART, Numbers, numbers_of, path_of
from whenabouts_protocol.messages.compiled_rule import DERIVED_PREFIX
from whenabouts_sim.chaos.parts.landing_files import FileId, frontier_files

COLUMNS = ["site", "gateway", "boot", "seq", "stream", "kind", "key", "t_min", "t_max", "value", "attrs", "vclock",
           "clock_state", "unit"]  # fmt: skip
ENTER = '"enter"'  # value of a visit's begin
Id = tuple[str, str, int, int]
"""Identity of a reading: site, gateway, boot, number."""


class LandedReading(NamedTuple):
    """A reading, and the file that it is in."""

    file: FileId
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
    attrs: str | None
    vclock: Sequence[int] | None
    clock_state: str = "bounded"
    unit: str | None = None

    @property
    def identity(self) -> Id:
        """What distinguishes it from all others."""
        return self.site, self.gateway, self.boot, self.seq

    @property
    def is_seen(self) -> bool:
        """True if a reader has told it: it is no gap, state, visit, or pair of a gateway's own rule."""
        is_measured = self.kind == "measure" and not self.stream.startswith(DERIVED_PREFIX)
        return is_measured or (self.kind == "tag" and self.value != ENTER)


class LandedFrontier(NamedTuple):
    """How far the readings of a gateway are said to be complete, and in which file."""

    file: FileId
    site: str
    gateway: str
    frontier_us: int
    streams: tuple[str, ...]


@dataclass(frozen=True)
class Landed:
    """All of it, in the order of files; of a reading that several parts hold, which readers drop, the first.

    twice: readings that one part holds twice. again: those that several parts hold. copies: all but the first of each.
    damaged: keys of readings in files of which a bit has changed, or that a power cut took; readers may have them or not.
    """

    readings: list[LandedReading]
    frontiers: list[LandedFrontier]
    twice: list[Id] = field(default_factory=list)
    again: frozenset[Id] = frozenset()
    damaged: frozenset[str | None] = frozenset()
    copies: Sequence[LandedReading] = ()

    def without(self, keys: frozenset[str | None]) -> "Landed":
        """Without the readings of some keys."""
        return replace(self, readings=[one for one in self.readings if one.key not in keys])


def read_landing(
    folder: Path,
    appeared_us: Callable[[Path], int] = lambda _: 0,
    rotten: Mapping[Path, bytes] = {},
    vanished: Iterable[bytes] = (),
) -> Landed:
    """Read a landing in a folder. appeared_us: when a file appeared. rotten: what files held before a bit of them changed;
    watermarks of such are left out. vanished: the same of files of readings that a power cut took.
    """
    found, frontiers = list[LandedReading](), list[LandedFrontier]()
    ids = set[Id]()
    for part in parts_of(folder):
        before = {
            path: data for path, data in rotten.items() if path.suffix == ".parquet" and _part(folder, path) == part
        }
        root = folder / part
        moved = {path for path in before if record_of(root, path.relative_to(root).as_posix()).exists()}  # by a repair
        for path in sorted({*visible({*data_files(root), *before}), *moved}):
            source = io.BytesIO(before[path]) if path in before else path
            numbers, table = _read(path, source)
            columns = (column.to_pylist() for column in table.columns)
            files = {number: FileId(appeared_us(_single(path, number)), number, part) for number in {*numbers}}
            rows = [
                LandedReading(files[number], *row)
                for number, row in zip(numbers, zip(*columns, strict=True), strict=True)
            ]
            found += rows
            ids |= {one.identity for one in rows} if path in before else set()
        for path in visible(frontier_files(root)):
            for row in map(json.loads, path.read_text().splitlines()) if path not in rotten else ():
                number = row.get(NUMBER, _number(path))
                file = FileId(appeared_us(_single(path, number)), number, part)
                said = row["site"], row["gateway"], row["frontier_us"], tuple(row["streams"])
                frontiers.append(LandedFrontier(file, *said))
    found.sort()
    vanished_keys = (
        key for data in vanished for key in pq.read_table(io.BytesIO(data), columns=["key"])["key"].to_pylist()
    )
    first = {one.identity: one for one in reversed(found)}
    counts = Counter((one.file.part, one.identity) for one in found)
    times = Counter(identity for _, identity in counts)
    return Landed(
        [one for one in found if first[one.identity] is one],
        sorted(frontiers),
        [identity for (_, identity), count in counts.items() if count > 1 and identity not in ids],
        frozenset(identity for identity, count in times.items() if count > 1),
        frozenset([one.key for one in found if one.identity in ids]).union(vanished_keys),
        [one for one in found if first[one.identity] is not one],
    )


def _read(path: Path, source: Any) -> tuple[list[int], pa.Table]:
    """The number of the file in which each reading landed, and the readings; a merged file holds those of several."""
    file = pq.ParquetFile(source)
    numbers = numbers_of(path.name)
    if numbers is None or numbers.first == numbers.last:
        return [_number(path)] * file.metadata.num_rows, file.read(COLUMNS)
    return file.read([NUMBER])[NUMBER].to_pylist(), file.read(COLUMNS)


def visible(paths: Iterable[Path]) -> list[Path]:
    """The files that no merged one hides, sorted."""
    known = {path: numbers_of(path.name) for path in paths}
    merged = [(path.parent, one) for path, one in known.items() if one is not None and one.first < one.last]
    return sorted(
        path
        for path, one in known.items()
        if one is None
        or not any(
            folder == path.parent and by.first <= one.first and one.last <= by.last and by != one
            for folder, by in merged
        )
    )


def _single(path: Path, number: int) -> Path:
    """The file of a number, which may be merged into this one."""
    return path.with_name(path_of(DATA, "", Numbers(number, number)).rpartition("/")[2]).with_suffix(path.suffix)


def _part(folder: Path, path: Path) -> str:
    """The part of a landing that a file is in."""
    first = path.relative_to(folder).parts[0]
    return first if first.startswith(PART) else ""


def parts_of(folder: Path) -> list[str]:
    """The parts of a landing; the first is the landing itself."""
    return ["", *sorted(path.name for path in folder.glob(f"{PART}*"))]


def latest(frontiers: list[LandedFrontier]) -> list[LandedFrontier]:
    """The highest frontier of each gateway."""
    return list({(one.site, one.gateway): one for one in sorted(frontiers, key=lambda one: one.frontier_us)}.values())


def newest_numbers(folder: Path) -> dict[str, int]:
    """The highest number of a file in each part of a landing."""
    return {
        part: max(map(_number, (*place.glob("hour=*/part-*"), *place.glob(f"{FRONTIER}/hour=*/part-*"))), default=0)
        for part, place in ((part, folder / part) for part in parts_of(folder))
    }


def _number(path: Path) -> int:
    numbers = numbers_of(path.name)
    return 0 if numbers is None else numbers.last
