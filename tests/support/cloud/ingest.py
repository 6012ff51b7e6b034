"""Helpers of the ingest's tests: readings, batches, and the content of a landing as its readers see it."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from whenabouts_cloud.landing.sealing import unsealed
from whenabouts_protocol import Birth, Heartbeat, Reading, encode_batch, encode_birth, encode_heartbeat, topic

SITE = "hall"
NOW_US = 1_790_000_000_000_000

Identity = tuple[str, int, int]


def reading(gateway: str, boot: int, seq: int, t_min: int | None = None, value: object = 1.5) -> Reading:
    """A reading whose stamp is 1000 us long."""
    t_min = NOW_US + seq * 1000 if t_min is None else t_min
    return Reading(site=SITE, gateway=gateway, boot=boot, seq=seq, stream="dock/tags", kind="tag", key=f"{seq:024X}",
                   value=value, unit="dB", attrs={"antenna": 2}, t_min=t_min, t_max=t_min + 1000, vclock=(1, 2))  # fmt: skip


def batch(gateway: str, boot: int, first: int, count: int) -> bytes:
    """A message of `count` readings, numbered from `first` on."""
    return encode_batch([reading(gateway, boot, seq) for seq in range(first, first + count)])


def birth(gateway: str, boot: int = 0) -> bytes:
    """A birth with one stream."""
    return encode_birth(Birth(SITE, gateway, boot, [("dock/tags", "tag", None, 2_000_000, 300_000)]))


def heartbeat(gateway: str, boot: int, frontier_us: int | None, published: dict[int, tuple[int, int]]) -> bytes:
    """A heartbeat."""
    return encode_heartbeat(Heartbeat(SITE, gateway, boot, frontier_us, published, "bounded", 5000))


def at(gateway: str, leaf: str = "obs") -> str:
    """Topic of a gateway of this site."""
    return topic(SITE, gateway, leaf)


def files(folder: Path) -> list[Path]:
    """Data files that readers see."""
    return sorted(folder.glob("hour=*/part-*.parquet"))


def identities(folder: Path) -> list[Identity]:
    """Every row that readers see, repeats included."""
    rows: list[Identity] = []
    for path in files(folder):
        table = pq.ParquetFile(path).read(["gateway", "boot", "seq"])
        rows.extend(zip(*(table[name].to_pylist() for name in ("gateway", "boot", "seq")), strict=True))
    return rows


def frontiers(folder: Path) -> list[dict]:
    """Every row of the frontier files, oldest file first."""
    return [
        unsealed(line.encode())
        for path in sorted((folder / "_frontier").glob("hour=*/part-*.json"), key=lambda path: path.name)
        for line in path.open()
    ]


def letters(folder: Path) -> list[dict]:
    """Every dead letter."""
    return [json.loads(line) for path in sorted((folder / "_dead").glob("letters-*.jsonl")) for line in path.open()]


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory, if the system has one: fsync costs milliseconds and these tests make thousands."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
