"""A changed bit in a file of the landing is found by the check of landings, or changes nothing that is read."""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.damage import check
from whenabouts_cloud.landing.sealing import unsealed


def broken_damage(parts: Mapping[str, Path], rotten: Mapping[Path, bytes]) -> Iterator[str]:
    """Files whose content has changed and that no check names. parts: folders by name. rotten: content before, by path."""
    found = {folder / one.file for folder in parts.values() for one in check(folder).found} if rotten else set()
    for path, before in rotten.items():
        if (
            path.exists()
            and path not in found
            and _content(path.suffix, path.read_bytes()) != _content(path.suffix, before)
        ):
            yield f"a bit of {path.name} has changed, other content is read, and no check tells"


def _content(suffix: str, data: bytes) -> object:
    """What readers find in a file."""
    try:
        if suffix == ".json":
            return [{name: row.get(name) for name in ("site", "gateway", "frontier_us", "streams")} for row in
                    map(unsealed, data.splitlines())]  # fmt: skip
        return pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True).read().to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        return str(error)
