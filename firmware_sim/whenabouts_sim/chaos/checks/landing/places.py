"""Where a landing puts what it gets: each number once, and only what begins in the future beside the rest."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.layout import AHEAD, numbers_of
from whenabouts_sim.chaos.network import lying_gateway as liar
from whenabouts_sim.chaos.parts.landing_files import files_of


def broken_places(parts: Iterable[Path]) -> Iterator[str]:
    """Numbers of two files, and readings of honest gateways, which begin in no future, in the output for such."""
    for folder in parts:
        paths = [path for path in files_of(folder) if (one := numbers_of(path.name)) and one.first == one.last]
        numbers = Counter(numbers_of(path.name) for path in paths)
        for number, count in numbers.items():
            if number is not None and count > 1:
                names = sorted(path.relative_to(folder).as_posix() for path in paths if numbers_of(path.name) == number)
                yield f"{count} files have the number {number.first}: {names}"
        for path in sorted((folder / AHEAD).rglob("*.parquet")):
            yield from _not_ahead(path)


def _not_ahead(path: Path) -> Iterator[str]:
    try:
        gateways = pq.read_table(path, columns=["gateway"])["gateway"].to_pylist()
    except (OSError, pa.ArrowException):  # its damage has a law of its own
        return
    honest = sorted({one for one in gateways if one != liar.NAME})
    if honest:
        yield f"{AHEAD}/{path.name} holds readings of {honest}, which have begun"
