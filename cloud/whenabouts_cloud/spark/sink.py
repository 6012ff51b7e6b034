"""Publishes results exactly once for any reader of Parquet folders, through kill -9 at any point.

    OUT/batch=00000012/pairs.parquet   the pairs of one micro-batch; --once has one folder, batch=00000000
    OUT/.tmp-12/                       being written; readers skip names that begin with a dot
    OUT/_checkpoint/                   Spark's offsets and state
    OUT/_job.json                      which rule and mode OUT belongs to

A micro-batch is written to a folder of its own and appears by one rename. Spark repeats a micro-batch that was not
committed with the same number and the same input; when its folder is there already the repetition is thrown away. It is
computed all the same, because the state of the batch is committed by computing it. Results are merged into one file a batch
by this process, row group by row group, so that many shards do not make many small files.

The first batch is published even without pairs: from then on OUT can be read and has its schema. The renames are atomic on
a local or network POSIX file system; object stores have none.
"""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from whenabouts_cloud.correlation.pairs import RESULT
from whenabouts_cloud.rules.model import CorrelateRule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAIRS_FILE = "pairs.parquet"
MARKER = "_job.json"
CHECKPOINT = "_checkpoint"
MARKER_VERSION = 1

Report = Callable[[int, Path | None, list[dict[str, Any]]], None]
"""Called after a batch: its number, the published file (None: nothing new) and what each shard or group counted."""


class WrongOutputError(ValueError):
    """The output folder belongs to another job; the text says which and what to do."""


class PairSink:
    """Writes batches of OUTPUT frames (`streaming`) below `out`; `publish` is made for foreachBatch."""

    def __init__(self, out: Path, report: Report | None = None) -> None:
        self._out = out
        self._report = report
        out.mkdir(parents=True, exist_ok=True)

    def publish(self, frame: "DataFrame", batch_id: int) -> None:
        """Compute a micro-batch and let its pairs appear, unless they are there already."""
        made, counts = self._write(frame, f".tmp-{batch_id}")
        target = batch_folder(self._out, batch_id)
        first = not any(self._out.glob("batch=*"))
        published = None
        if not target.exists() and (pq.read_metadata(made / PAIRS_FILE).num_rows or first):
            made.rename(target)
            _sync_folder(self._out)
            published = target / PAIRS_FILE
        shutil.rmtree(made.parent, ignore_errors=True)
        if self._report:
            self._report(batch_id, published, counts)

    def replace(self, frame: "DataFrame") -> tuple[Path, list[dict[str, Any]]]:
        """Compute a complete result and put it in the place of an earlier one by one rename."""
        made, counts = self._write(frame, ".tmp-once")
        target = batch_folder(self._out, 0)
        target.mkdir(exist_ok=True)
        os.replace(made / PAIRS_FILE, target / PAIRS_FILE)
        _sync_folder(target)
        shutil.rmtree(made.parent, ignore_errors=True)
        return target / PAIRS_FILE, counts

    def _write(self, frame: "DataFrame", name: str) -> tuple[Path, list[dict[str, Any]]]:
        """The frame as a folder with one file of pairs, not visible yet, and the rows that counted."""
        work = self._out / name
        shutil.rmtree(work, ignore_errors=True)
        frame.write.parquet(str(work / "parts"))
        made = work / "made"
        made.mkdir()
        counts: list[dict[str, Any]] = []
        with (made / PAIRS_FILE).open("wb") as file:
            with pq.ParquetWriter(file, RESULT, compression="zstd") as writer:
                for part in sorted((work / "parts").glob("*.parquet")):
                    for rows in pq.ParquetFile(part).iter_batches():
                        pairs = _pairs_of(rows, counts)
                        if pairs.num_rows:
                            writer.write_table(pairs)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(made)
        return made, counts


def batch_folder(out: Path, batch_id: int) -> Path:
    """Where the pairs of a micro-batch are published."""
    return out / f"batch={batch_id:08d}"


def read_pairs(file: Path) -> Iterator[dict[str, Any]]:
    """The pairs of a published file, a dictionary of RESULT columns each."""
    for rows in pq.ParquetFile(file).iter_batches():
        yield from rows.to_pylist()


def total(counts: list[dict[str, Any]]) -> Counter[str]:
    """Sum of the plain numbers that shards or groups counted."""
    summed: Counter[str] = Counter()
    for one in counts:
        summed.update({name: x for name, x in one.items() if isinstance(x, int) and name != "shard"})
    return summed


def claim(out: Path, rule: CorrelateRule, mode: str, shards: int) -> None:
    """Bind the output folder to a rule and a mode ("once" or "streaming"), or find that it is bound to them already.

    Raises:
        WrongOutputError: it belongs to another rule, mode or number of shards, or holds something else.
    """
    mine = {"version": MARKER_VERSION, "mode": mode, "rule": rule.text()}
    if mode == "streaming":
        mine["shards"] = shards  # the state is divided by it
    marker = out / MARKER
    if marker.exists():
        found = json.loads(marker.read_text(encoding="utf-8"))
        for name, value in mine.items():
            if found.get(name) != value:
                raise WrongOutputError(
                    f"output {out}: found results of {name} {found.get(name)!r}, expected {value!r}; "
                    f"take another --out, or delete {out} to begin again"
                )
        return
    if out.exists() and any(x for x in out.iterdir() if not x.name.startswith(".")):
        raise WrongOutputError(
            f"output {out}: found a folder with other content, expected an empty one or one of an earlier run; "
            "take another --out"
        )
    out.mkdir(parents=True, exist_ok=True)
    made = out / f".{MARKER}"
    with made.open("w", encoding="utf-8") as file:
        json.dump(mine, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    made.rename(marker)
    _sync_folder(out)


def _pairs_of(rows: pa.RecordBatch, counts: list[dict[str, Any]]) -> pa.Table:
    """The pairs among the rows; what the others counted is appended to `counts`."""
    table = pa.Table.from_batches([rows])
    told = table["counts"].drop_null().to_pylist()
    counts += [json.loads(text) for text in told]
    pairs = table.filter(pc.is_null(table["counts"])) if told else table
    return pairs.select(RESULT.names).cast(RESULT)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, not only its files' content."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
