"""Where a landing puts what it gets: each number once, and only what begins in the future beside the rest."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.files import data_files
from whenabouts_cloud.landing.layout import AHEAD, numbers_of
from whenabouts_sim.chaos.checks.landed import parts_of, visible
from whenabouts_sim.chaos.network import lying_gateway as liar
from whenabouts_sim.chaos.parts.landing_files import FileId, files_of


def broken_places(parts: Iterable[Path], rotten: Container[Path] = ()) -> Iterator[str]:
    """Numbers of two files, and readings of honest gateways, which begin in no future, in the output for such. rotten: files
    of which a bit has changed: it may be one of a name.
    """
    for folder in parts:
        paths = [path for path in files_of(folder) if (one := numbers_of(path.name)) and one.first == one.last]
        numbers = Counter(numbers_of(path.name) for path in paths)
        for number, count in numbers.items():
            if number is not None and count > 1:
                names = sorted(path.relative_to(folder).as_posix() for path in paths if numbers_of(path.name) == number)
                yield f"{count} files have the number {number.first}: {names}"
        for path in sorted((folder / AHEAD).rglob("*.parquet")):
            yield from () if path in rotten else _not_ahead(path)


def passed_over(landing: Path, read: Mapping[FileId, int], rotten: Container[Path]) -> Iterator[str]:
    """Files with readings that a job will not read: it has read another one with the number, or a later one. read: when
    each file that it has read was written, ns. rotten: files of which a bit has changed.
    """
    for part in parts_of(landing):
        last = max((file.number for file in read if file.part == part), default=0)
        for path in visible(data_files(landing / part)):  # a power cut may bring back what was merged and deleted
            numbers = numbers_of(path.name)
            if (
                numbers is None
                or numbers.first < numbers.last
                or numbers.last > last
                or path in rotten
                or AHEAD in path.parts
            ):
                continue
            written_ns = read.get(FileId(0, numbers.last, part))
            if written_ns != path.stat().st_mtime_ns and pq.read_metadata(path).num_rows:
                name = path.relative_to(landing).as_posix()
                yield f"it passed over {name}" + (", and had read another file with its number" if written_ns else "")


def _not_ahead(path: Path) -> Iterator[str]:
    try:
        gateways = pq.read_table(path, columns=["gateway"])["gateway"].to_pylist()
    except (OSError, pa.ArrowException):  # its damage has a law of its own
        return
    honest = sorted({one for one in gateways if one != liar.NAME})
    if honest:
        yield f"{AHEAD}/{path.name} holds readings of {honest}, which have begun"
