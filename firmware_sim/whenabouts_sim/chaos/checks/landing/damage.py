"""A changed bit in a file at rest is found, or changes nothing that is read.

In the landing by the check of landings, in published results by whoever reads them.
"""

import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.delivery.result_files import DamagedResultsError, table_of
from whenabouts_cloud.landing.damage import check
from whenabouts_cloud.landing.sealing import unsealed
from whenabouts_cloud.landing.store import Store


def broken_damage(parts: Mapping[str, Path], rotten: Mapping[Path, bytes]) -> Iterator[str]:
    """Files whose content has changed and that no check names, and findings in files that nobody has changed.

    parts: folders by name. rotten: content before, by path.
    """
    found = {folder / one.file: one for folder in parts.values() for one in check(folder).found}
    for path, before in rotten.items():
        if (
            path.exists()
            and path not in found
            and content_of(path.suffix, path.read_bytes()) != content_of(path.suffix, before)
        ):
            yield f"a bit of {path.name} has changed, other content is read, and no check tells"
    for path, one in found.items():
        if path not in rotten:
            yield f"the check of a landing tells of {one.file}, which nobody has changed: {one.kind}: {one.problem}"


def broken_results_damage(rotten: Mapping[Path, bytes]) -> Iterator[str]:
    """Files of results from which other results are read than were published. rotten: content before, by path."""
    for path, before in rotten.items():
        try:
            found = table_of(Store.at(path.parent), path.name)
        except DamagedResultsError:
            continue
        if not found.equals(pq.read_table(io.BytesIO(before)).replace_schema_metadata()):
            yield f"a bit of {path.parent.name}/{path.name} has changed, and other results are read"


def content_of(suffix: str, data: bytes) -> object:
    """What readers find in a file with this end of its name."""
    try:
        if suffix == ".json":
            return [{name: row.get(name) for name in ("site", "gateway", "frontier_us", "streams")} for row in
                    map(unsealed, data.splitlines())]  # fmt: skip
        return pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True).read().to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        return str(error)
