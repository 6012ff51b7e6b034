"""Landing folders for tests: readings as rows, written as the ingest writes them."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.landing.layout import numbers_of
from whenabouts_cloud.landing.schema import SCHEMA

EPOCH_US = 1_795_000_000_000_000


def reading(gateway, seq, stream, key, t_min, t_max, *, site="hall", boot=1, kind="tag"):
    """One row of the landing."""
    return {
        "site": site, "gateway": gateway, "boot": boot, "seq": seq, "stream": stream, "kind": kind, "key": key,
        "value": None, "unit": None, "attrs": None, "t_min": t_min, "t_max": t_max, "clock_state": "bounded",
        "vclock": [], "landed_us": t_max,
    }  # fmt: skip


def table(rows):
    """Rows as a table with the landing's schema."""
    return pa.Table.from_pylist(list(rows), schema=SCHEMA)


def land(folder: Path, rows, number: int | None = None, hour: str = "2026-11-20T18") -> Path:
    """Write a landing file, which appears complete by its rename, with the next number."""
    place = folder / f"hour={hour}"
    place.mkdir(parents=True, exist_ok=True)
    numbers = [numbers_of(file.name).last for file in folder.glob("hour=*/part-*.parquet")]
    target = place / f"part-{max(numbers, default=0) + 1:08d}.parquet"
    made = target.with_name(f".{target.name}")
    pq.write_table(table(rows), made)
    os.rename(made, target)
    return target


def watermark(
    folder: Path, watermarks, number: int | None = None, streams=("dock/tags", "shelf/1"), site="hall"
) -> Path:
    """Write a file of watermarks: {gateway: frontier_us}, as older ingests wrote them."""
    place = folder / "_frontier"
    place.mkdir(parents=True, exist_ok=True)
    target = place / f"part-{len(list(place.glob('part-*'))) + 1:017d}.json"
    made = target.with_name(f".{target.name}")
    lines = [
        {"site": site, "gateway": name, "frontier_us": us, "boot": 1} | {"streams": list(streams)}
        for name, us in watermarks.items()
    ]
    made.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    os.rename(made, target)
    return target
