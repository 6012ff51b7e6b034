"""Publishes results exactly once for any reader of Parquet folders, through kill -9 at any point.

    OUT/batch=00000012/             the results of one micro-batch as part-00000.parquet and so on; --once has only
                                    batch=00000000
    OUT/_late/batch=00000012/       its side output: late readings (`shard.LATE`). For pairs, `reason` is "late a" or
                                    "late b" if the reading was still joined with the rows kept, else "expired a" or
                                    "expired b"; for matches it is "late", or "beyond time" for a stamp out of range. A
                                    repeat whose original has been evicted is also reported as late
    OUT/_late_effects/batch=00000012/   matches that late readings would have added or removed: see `status`
    .../batch=00000012/_input.json  digest of the offsets of the batch's input
    OUT/.tmp-*                      unfinished files of this process and of tasks (`task_files`)
    OUT/_checkpoint/                Spark's offsets and state
    OUT/_left_out.json              damaged files of the landing (`left_out`)
    OUT/_job.json                   rules and mode that OUT belongs to

Readers of OUT ignore names that begin with "_" or ".". The small files of a batch are merged into one part; each large file
is a part as its task wrote it.

The files of a micro-batch are gathered in a hidden folder, which one rename publishes; the side output is published first.
Spark repeats an uncommitted micro-batch with the same number and the same input; if its folder exists already, the repeated
output is discarded. The repetition is still computed, because computing it commits the state of the batch.

Spark does not sync its checkpoint. The sink does, before results appear, so that after a power cut no folder is newer than
the checkpoint. If the digest of the input differs all the same, the query ends and says what to do (`checkpoint`).

The first batch is published even without results: from then on OUT can be read and has its schema. A complete result
(--once) replaces an earlier one by two renames; a kill between them leaves the earlier one under a hidden name, from which
the next run restores it. The renames are atomic on a local or network POSIX file system; object stores have none. On a
cluster OUT must be a folder that all machines share: the sink checks that the files hold as many rows as workers wrote.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from whenabouts_cloud.durable import make_folder, sync, sync_file_system, write_durably
from whenabouts_cloud.jobs.output.checkpoint import (
    CHECKPOINT,
    Input,
    check_same_input,
    checkpoint_of,
    input_of,
)
from whenabouts_cloud.jobs.output.left_out import UNREADABLE, LeftOut
from whenabouts_cloud.jobs.output.task_files import RESULTS, Make, TaskFiles, TaskRecords
from whenabouts_cloud.landing.history import History, readings_of
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules.model import Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

MARKER = "_job.json"
MARKER_VERSION = 6
INPUT = "_input.json"  # in the folder of a batch
MADE, EARLIER, TASK_FILES = ".tmp-batch", ".tmp-earlier", ".tmp-parts"

OnBatch = Callable[[int, Path | None, list[dict[str, Any]], float], None]
"""Called after a batch: its number, the published folder (None: nothing new), counts of each shard or group, seconds."""

OnFailure = Callable[[Exception], None]
"""Called with the error of a batch that was not published, before it ends the query: Spark wraps it in many lines."""


class BatchFailedError(Exception):
    """A batch was not published; the cause has been reported already."""


class WrongOutputError(ValueError):
    """The output folder belongs to another job; the text names it and what to do."""


class ResultSink:
    """Publishes batches of results of this schema below `out`; `publish` is made for foreachBatch."""

    def __init__(
        self,
        schema: pa.Schema,
        out: Path,
        report: OnBatch | None = None,
        failed: OnFailure | None = None,
        left_out: LeftOut | None = None,
    ) -> None:
        self._left_out = left_out
        self._history = None if left_out is None else History(Store.at(left_out.landing))
        self._schema = schema
        self._out = out
        self._report, self._failed = report, failed
        self._files = TaskFiles(out.resolve() / TASK_FILES)
        make_folder(out)

    def follow(self, make: Make, trigger_s: float) -> "StreamingQuery":
        """Start publishing a streaming frame, from its checkpoint if there is one."""
        writer = make(self._files.write).writeStream.foreachBatch(self.publish).outputMode("append")
        writer = writer.trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds")
        return writer.option("checkpointLocation", str(checkpoint_of(self._out))).start()

    def publish(self, frame: "DataFrame", batch_id: int) -> None:
        """Compute a micro-batch and publish its results, unless they are published already.

        Raises:
            LostCheckpointError: its number was published with the results of another input.
            DamagedInputError: files of its input are damaged.
            BatchFailedError: instead of these and others, where `failed` is told of them.
        """
        try:
            self._publish(frame, batch_id)
        except Exception as error:
            if self._failed is None:
                raise
            self._failed(error)
            # Spark searches the text by a regular expression; one of many lines overflows its stack, and the query hangs.
            raise BatchFailedError(type(error).__name__) from None

    def _publish(self, frame: "DataFrame", batch_id: int) -> None:
        began_s = time.monotonic()
        read = input_of(self._out / CHECKPOINT, batch_id)
        digest = read.digest
        for folder in (self._out, *self._out.glob("_*")):
            made = batch_folder(folder, batch_id)
            if made.exists():
                check_same_input(self._out, made, _digest_in(made), digest)
        records = self._computed(frame, read)
        sync_file_system(self._out)  # also without results: a commit must never outlive the state that it names
        first = not any(self._out.glob("batch=*"))
        results = records.files.pop(RESULTS, {})
        for name, files in records.files.items():
            self._appear(files, batch_folder(self._out / name, batch_id), digest)
        published = None
        if results or first:
            published = self._appear(results, batch_folder(self._out, batch_id), digest)
        self._files.clear()
        if self._report:
            self._report(batch_id, published, records.counts, time.monotonic() - began_s)

    def _computed(self, frame: "DataFrame", read: Input) -> TaskRecords:
        if self._left_out is None or self._history is None:
            return self._files.collect(frame)
        files = [one.path for one in readings_of(self._history.pieces(read.start, read.end))]
        self._left_out.check(files)
        try:
            return self._files.collect(frame)
        except Exception as error:
            if UNREADABLE in str(error):
                self._left_out.check(files, whole=True)
            raise

    def replace(self, make: Make) -> tuple[Path, list[dict[str, Any]]]:
        """Compute a complete result and replace the earlier one; return its folder and the counts."""
        target, earlier = batch_folder(self._out, 0), self._out / EARLIER
        if earlier.exists() and not target.exists():
            earlier.rename(target)
        records = self._files.collect(make(self._files.write))
        made = self._gathered(records.files.get(RESULTS, {}))
        shutil.rmtree(earlier, ignore_errors=True)
        if target.exists():
            target.rename(earlier)
        made.rename(target)
        sync(self._out)
        shutil.rmtree(earlier, ignore_errors=True)
        self._files.clear()
        return target, records.counts

    def _appear(self, files: Mapping[str, int], target: Path, digest: str) -> Path | None:
        """Publish files of tasks as this folder, with the digest of their input; return None if it exists already."""
        if target.exists():
            return None
        made = self._gathered(files)
        write_durably(made / INPUT, json.dumps({"digest": digest}).encode())
        make_folder(target.parent)
        made.rename(target)
        sync(target.parent)
        return target

    def _gathered(self, files: Mapping[str, int]) -> Path:
        """Move files of tasks into a hidden folder and return it."""
        made = self._out / MADE
        shutil.rmtree(made, ignore_errors=True)
        self._files.move(files, made, self._schema)
        return made


def batch_folder(out: Path, batch_id: int) -> Path:
    """Return the folder that publishes the results of a micro-batch."""
    return out / f"batch={batch_id:08d}"


def _digest_in(folder: Path) -> str | None:
    """Digest of the input of a published folder; None without a readable one."""
    try:
        return str(json.loads((folder / INPUT).read_bytes())["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_results(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the results of a published folder, each a dictionary of columns."""
    for file in sorted(folder.glob("*.parquet")):
        for rows in pq.ParquetFile(file).iter_batches():
            yield from rows.to_pylist()


def claim(out: Path, rule: Rule | Sequence[Rule], mode: str, shards: int) -> None:
    """Bind the output folder to rules and a mode ("once" or "streaming"), or check that it is bound to them already.

    Raises:
        WrongOutputError: it belongs to another rule, mode or number of shards, or holds something else.
    """
    rules = rule if isinstance(rule, Sequence) else [rule]
    mine: dict[str, Any] = {"mode": mode, "rule": "\n".join(one.text() for one in rules)}
    if mode == "streaming":
        mine["shards"] = shards  # the state is divided by it
    claimed(out, mine)


def claimed(out: Path, mine: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    """Bind the output folder to these values, with others that may change (`rewrite`); return all it is bound to.

    Raises:
        WrongOutputError: it is bound to other values, or holds something else.
    """
    mine = {"version": MARKER_VERSION, **mine}
    marker = out / MARKER
    if marker.exists():
        try:
            bound = dict(json.loads(marker.read_bytes()))
        except (ValueError, TypeError) as error:
            raise WrongOutputError(
                f"output {out}: found a damaged {MARKER} ({error}), expected the one an earlier run wrote; "
                f"take another --out, or delete {out} to begin again"
            ) from None
        for name, value in mine.items():
            if bound.get(name) != value:
                raise WrongOutputError(
                    f"output {out}: found results of {name} {bound.get(name)!r}, expected {value!r}; "
                    f"take another --out, or delete {out} to begin again"
                )
        return bound
    if out.exists() and any(x for x in out.iterdir() if not x.name.startswith(".")):
        raise WrongOutputError(
            f"output {out}: found a folder with other content, expected an empty one or one of an earlier run; "
            "take another --out"
        )
    make_folder(out)
    rewrite(out, {**mine, **(more or {})})
    return {**mine, **(more or {})}


def rewrite(out: Path, values: dict[str, Any]) -> None:
    """Replace the values that the folder is bound to, durably."""
    write_durably(out / MARKER, json.dumps(values, indent=1).encode())
