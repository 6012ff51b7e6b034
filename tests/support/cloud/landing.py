"""Landing folders for tests: readings as rows, written as the ingest writes them."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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


def land(folder: Path, rows, number: int, hour: str = "2026-11-20T18") -> Path:
    """Write a landing file, which appears complete by its rename."""
    target = folder / f"hour={hour}" / f"part-test-{number}.parquet"
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}")
    pq.write_table(table(rows), made)
    os.rename(made, target)
    return target


def watermark(folder: Path, watermarks, number: int, streams=("dock/tags", "shelf/1"), site="hall") -> Path:
    """Write a file of watermarks: {gateway: frontier_us}."""
    target = folder / "_frontier" / f"part-test-{number}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    made = target.with_name(f".{target.name}")
    lines = [
        {"site": site, "gateway": name, "frontier_us": us, "streams": list(streams), "landed_us": us}
        for name, us in watermarks.items()
    ]
    made.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    os.rename(made, target)
    return target
