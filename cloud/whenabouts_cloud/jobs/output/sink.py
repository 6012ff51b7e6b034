"""Publishes results exactly once for any reader of Parquet folders, through kill -9 at any point.

    OUT/batch=00000012/             the results of one micro-batch as part-00000.parquet and so on; --once has only
                                    batch=00000000
    OUT/_late/batch=00000012/       its side output: readings that came too late (`shard.LATE`). Of pairs, `reason` is
                                    "late a" or "late b" for one that was still joined with what was left, "expired a" or
                                    "expired b" for one that was not; of matches it is "late", or "beyond time" for a stamp
                                    that is no time. A repeat of what is forgotten looks like one
    OUT/_late_effects/batch=00000012/   the matches that they would have added or removed: see `status`
    OUT/.tmp-*                      being written, by this process and by tasks (`task_files`)
    OUT/_checkpoint/                Spark's offsets and state
    OUT/_job.json                   which rules and mode OUT belongs to

Readers of OUT pass over names that begin with "_" or ".". Of a batch there is one part with all that was little, and one for
each shard that told much, as its task wrote it.

A micro-batch is gathered in a folder of its own, which appears by one rename; its side output by one before that. Spark
repeats a micro-batch that was not committed with the same number and the same input; when its folder is there already the
repetition is thrown away. It is computed all the same, because the state of the batch is committed by computing it.

The first batch is published even without results: from then on OUT can be read and has its schema. A complete result
(--once) takes the place of an earlier one by two renames; a kill between them leaves the earlier one under a hidden name,
from which the next run puts it back. The renames are atomic on a local or network POSIX file system; object stores have
none. On a cluster OUT must be a folder that all machines share: the rows that workers wrote are counted and compared with
those there.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.durable import sync, write_durably
from whenabouts_cloud.jobs.output.task_files import RESULTS, Make, TaskFiles
from whenabouts_cloud.rules.model import Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

MARKER = "_job.json"
CHECKPOINT = "_checkpoint"
MARKER_VERSION = 5
MADE, EARLIER, TASK_FILES = ".tmp-batch", ".tmp-earlier", ".tmp-parts"

Report = Callable[[int, Path | None, list[dict[str, Any]], float], None]
"""Called after a batch: its number, the published folder (None: nothing new), what each shard or group counted, seconds."""


class WrongOutputError(ValueError):
    """The output folder belongs to another job; the text says which and what to do."""


class ResultSink:
    """Publishes batches of results of this schema below `out`; `publish` is made for foreachBatch."""

    def __init__(self, schema: pa.Schema, out: Path, report: Report | None = None) -> None:
        self._schema = schema
        self._out = out
        self._report = report
        self._files = TaskFiles(out.resolve() / TASK_FILES)
        out.mkdir(parents=True, exist_ok=True)

    def follow(self, make: Make, trigger_s: float) -> "StreamingQuery":
        """Start publishing a streaming frame, going on from its checkpoint if there is one."""
        writer = make(self._files.write).writeStream.foreachBatch(self.publish).outputMode("append")
        writer = writer.trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds")
        return writer.option("checkpointLocation", str(checkpoint_of(self._out))).start()

    def publish(self, frame: "DataFrame", batch_id: int) -> None:
        """Compute a micro-batch and let its results appear, unless they are there already."""
        began_s = time.monotonic()
        words = self._files.collect(frame)
        first = not any(self._out.glob("batch=*"))
        results = words.files.pop(RESULTS, {})
        for folder, files in words.files.items():
            self._appear(files, batch_folder(self._out / folder, batch_id))
        published = None
        if results or first:
            published = self._appear(results, batch_folder(self._out, batch_id))
        self._files.clear()
        if self._report:
            self._report(batch_id, published, words.counts, time.monotonic() - began_s)

    def replace(self, make: Make) -> tuple[Path, list[dict[str, Any]]]:
        """Compute a complete result and put it in the place of an earlier one."""
        target, earlier = batch_folder(self._out, 0), self._out / EARLIER
        if earlier.exists() and not target.exists():
            earlier.rename(target)
        words = self._files.collect(make(self._files.write))
        made = self._gathered(words.files.get(RESULTS, {}))
        shutil.rmtree(earlier, ignore_errors=True)
        if target.exists():
            target.rename(earlier)
        made.rename(target)
        sync(self._out)
        shutil.rmtree(earlier, ignore_errors=True)
        self._files.clear()
        return target, words.counts

    def _appear(self, files: Mapping[str, int], target: Path) -> Path | None:
        """Publish files of tasks as this folder; None if it is there already."""
        if target.exists():
            return None
        made = self._gathered(files)
        target.parent.mkdir(exist_ok=True)
        made.rename(target)
        sync(target.parent)
        return target

    def _gathered(self, files: Mapping[str, int]) -> Path:
        """Files of tasks in a folder that is not visible yet."""
        made = self._out / MADE
        shutil.rmtree(made, ignore_errors=True)
        self._files.move(files, made, self._schema)
        return made


def checkpoint_of(out: Path) -> Path:
    """Where Spark keeps offsets and state; what was left there by a process killed before its first batch began is removed.

    Spark refuses to begin where an unfinished file of offsets lies; before the first one is whole, nothing was computed.
    """
    folder = out.resolve() / CHECKPOINT
    begun = any(file.name.isdigit() for file in (folder / "offsets").glob("*"))
    if folder.exists() and not begun:
        shutil.rmtree(folder)
    return folder


def batch_folder(out: Path, batch_id: int) -> Path:
    """Where the results of a micro-batch are published."""
    return out / f"batch={batch_id:08d}"


def read_results(folder: Path) -> Iterator[dict[str, Any]]:
    """The results of a published folder, a dictionary of columns each."""
    for file in sorted(folder.glob("*.parquet")):
        for rows in pq.ParquetFile(file).iter_batches():
            yield from rows.to_pylist()


def claim(out: Path, rule: Rule | Sequence[Rule], mode: str, shards: int) -> None:
    """Bind the output folder to rules and a mode ("once" or "streaming"), or find that it is bound to them already.

    Raises:
        WrongOutputError: it belongs to another rule, mode or number of shards, or holds something else.
    """
    rules = rule if isinstance(rule, Sequence) else [rule]
    mine: dict[str, Any] = {"mode": mode, "rule": "\n".join(one.text() for one in rules)}
    if mode == "streaming":
        mine["shards"] = shards  # the state is divided by it
    claimed(out, mine)


def claimed(out: Path, mine: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    """Bind the output folder to these values, with others that may change (`rewrite`); what it is bound to.

    Raises:
        WrongOutputError: it is bound to other values, or holds something else.
    """
    mine = {"version": MARKER_VERSION, **mine}
    marker = out / MARKER
    if marker.exists():
        try:
            found = dict(json.loads(marker.read_bytes()))
        except (ValueError, TypeError) as error:
            raise WrongOutputError(
                f"output {out}: found a damaged {MARKER} ({error}), expected what an earlier run wrote; "
                f"take another --out, or delete {out} to begin again"
            ) from None
        for name, value in mine.items():
            if found.get(name) != value:
                raise WrongOutputError(
                    f"output {out}: found results of {name} {found.get(name)!r}, expected {value!r}; "
                    f"take another --out, or delete {out} to begin again"
                )
        return found
    if out.exists() and any(x for x in out.iterdir() if not x.name.startswith(".")):
        raise WrongOutputError(
            f"output {out}: found a folder with other content, expected an empty one or one of an earlier run; "
            "take another --out"
        )
    out.mkdir(parents=True, exist_ok=True)
    rewrite(out, {**mine, **(more or {})})
    return {**mine, **(more or {})}


def rewrite(out: Path, values: dict[str, Any]) -> None:
    """Put other values in the place of those that the folder is bound to, durably."""
    write_durably(out / MARKER, json.dumps(values, indent=1).encode())


def unfinished(out: Path) -> bool:
    """Whether a micro-batch has begun that is not committed: Spark repeats it first."""

    def last(folder: str) -> int:
        names = [file.name for file in (out / CHECKPOINT / folder).glob("*")]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    return last("offsets") > last("commits")
