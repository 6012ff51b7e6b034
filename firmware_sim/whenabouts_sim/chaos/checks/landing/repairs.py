"""A repair of a landing loses no reading that can be read, names all that are lost, and writes none with other content."""

import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.files import DAMAGED_DIR, data_files
from whenabouts_sim.chaos.checks.landed import COLUMNS, Id

IDENTITY = ("site", "gateway", "boot", "seq")
FOOTER_END = 8  # bytes behind a footer: its length, and PAR1
Rows = dict[Id, dict[str, Any]]


def broken_repairs(parts: Iterable[Path], rotten: Mapping[Path, bytes]) -> Iterator[str]:
    """Every law of repairs that does not hold. rotten: what files held before a bit of them changed."""
    for folder in parts:
        records = {
            path.relative_to(folder / DAMAGED_DIR).with_suffix(""): json.loads(path.read_bytes())
            for path in sorted((folder / DAMAGED_DIR).rglob("*.parquet.json"))
        }
        held = {path: _rows(rotten.get(path) or path.read_bytes()) for path in data_files(folder)} if records else {}
        # What is left of a file may be damaged later: what became of that, its own repair says.
        held |= {folder / name: _rows(rotten[folder / name]) for name in records if folder / name in rotten}
        lost = [one for record in records.values() for one in record["lost"]]
        for name, record in records.items():
            if folder / name in rotten:
                texts = _broken(folder, name, record, rotten[folder / name], held, lost)
                yield from (f"{name.name} was repaired: {text}" for text in texts)


def _broken(
    folder: Path, name: Path, record: Mapping[str, Any], content: bytes, held: Mapping[Path, Rows], lost: Sequence[Any]
) -> Iterator[str]:
    """What is wrong with one repair. content: of the file before its damage. held: readings of each file, before damage."""
    before = _rows(content)
    present = {identity for path, rows in held.items() if path != folder / name for identity in rows}
    if (folder / name).exists():  # merged again, of the files that the damaged one was made of
        present |= _readable((folder / name).read_bytes()).keys()
    moved = folder / DAMAGED_DIR / name
    damaged = moved.read_bytes() if moved.exists() else b""
    is_told = _changed_bits(damaged, content) <= 1
    if is_told:
        for identity in before.keys() - present:
            if not any(_within(identity, one) for one in lost):
                yield f"{identity} is in no file, and is not among the lost"
    readable = _readable(damaged[: len(damaged) - len(_footer(content))] + _footer(content)) if is_told else {}
    for identity in {one for one, row in readable.items() if row == before.get(one)} - present:
        yield f"{identity} can be read in the damaged file, and is in no other"
    for identity, row in held.get(folder / (record["new"] or ""), {}).items():
        if identity not in before or row != before[identity]:
            yield f"{identity} is not what it was"


def _within(identity: Id, lost: Sequence[Any]) -> bool:
    """True if a reading is of these numbers: gateway, boot, first, last."""
    site, gateway, boot, number = identity
    return [f"{site}/{gateway}", boot] == lost[:2] and lost[2] <= number <= lost[3]


def _changed_bits(damaged: bytes, content: bytes) -> float:
    """How many bits of the footer have changed; with more than one nobody knows which readings the file had, or where."""
    footer = _footer(content)
    if len(damaged) != len(content):
        return math.inf
    return sum((one ^ other).bit_count() for one, other in zip(damaged[-len(footer) :], footer, strict=True))


def _footer(data: bytes) -> bytes:
    """The footer of a file."""
    return data[-FOOTER_END - int.from_bytes(data[-FOOTER_END:-4], "little") :]


def _rows(data: bytes) -> Rows:
    return _by_identity(pq.ParquetFile(io.BytesIO(data)).read(COLUMNS))


def _readable(data: bytes) -> Rows:
    """What is in the pages of a damaged file whose checksums are right."""
    rows: Rows = {}
    try:
        file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
    except (OSError, ValueError, pa.ArrowException):
        return rows
    for number in range(file.num_row_groups):
        try:
            rows |= _by_identity(file.read_row_group(number).select(COLUMNS))
        except (OSError, ValueError, KeyError, pa.ArrowException):
            continue
    return rows


def _by_identity(table: pa.Table) -> Rows:
    return {tuple(row[name] for name in IDENTITY): row for row in table.to_pylist()}
