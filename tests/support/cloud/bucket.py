"""A landing in an object store, written as an ingest writes it, and copies of what a job published there."""

import io
import json
from pathlib import Path

import pyarrow.parquet as pq

from support.cloud.landing import table
from whenabouts_cloud.landing.layout import DATA, FRONTIER, Numbers, path_of
from whenabouts_cloud.landing.store import Store

HOUR = "2026-11-20T18"


class BucketLanding:
    """Files with the numbers 1, 2, 3 ..., each one PUT."""

    def __init__(self, uri: str) -> None:
        self.store, self.number = Store.at(uri), 0

    def land(self, rows) -> None:
        """Readings as one file."""
        file = io.BytesIO()
        pq.write_table(table(rows), file)
        self._write(DATA, file.getvalue())

    def watermark(self, watermarks, streams, site="hall") -> None:
        """One file of watermarks: {gateway: frontier_us}."""
        lines = [
            {"site": site, "gateway": name, "frontier_us": us, "boot": 1} | {"streams": list(streams)}
            for name, us in watermarks.items()
        ]
        self._write(FRONTIER, "".join(json.dumps(line) + "\n" for line in lines).encode())

    def _write(self, kind, data) -> None:
        self.number += 1
        self.store.write(path_of(kind, HOUR, Numbers(self.number, self.number)), data)


def copied(uri: str, into: Path) -> Path:
    """Copy what is published below a URI into a new folder; hidden files come and go while a job runs."""
    store = Store.at(uri)
    into.mkdir(parents=True)
    _copy(store, "", into)
    return into


def _copy(store: Store, folder: str, into: Path) -> None:
    for name in (one.name for one in store.entries(folder) if one.name[:1] not in ("", ".")):
        path = f"{folder}/{name}" if folder else name
        if name.endswith((".parquet", ".json")):
            target = into / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(store.read(path))
        else:
            _copy(store, path, into)
