"""Publishes results exactly once for any reader of Parquet folders, through kill -9 at any point.

    OUT/batch=00000012/             the results of one micro-batch as part-00000.parquet and so on; --once has only
                                    batch=00000000
    OUT/_late/batch=00000012/       its side output: late readings (`shard.LATE`). For pairs, `reason` is "late a" or
                                    "late b" if the reading was still joined with the rows kept, else "expired a" or
                                    "expired b"; for matches it is "late", "beyond time" for a stamp out of range, or "beyond
                                    length" for one that began more than LENGTH before the frontier. A
                                    repeat whose original has been evicted is also reported as late
    OUT/_late_effects/batch=00000012/   matches that late readings would have added or removed: see `status`
    .../batch=00000012/_input.json  digest of the offsets of the batch's input, and when the batch was published
    OUT/.tmp-*                      unfinished files of this process and of tasks (`task_files`)
    OUT/_checkpoint/                Spark's offsets and state
    OUT/_left_out.json              damaged files of the landing (`left_out`)
    OUT/_watermarks.json            watermarks of the batch that published last (`used_watermarks`)
    OUT/_job.json                   rules and mode that OUT belongs to
    OUT/_progress.json              how far the query is (`delivery.query_progress`)

Readers of OUT ignore names that begin with "_" or ".". The small files of a batch are merged into one part; each large file
is a part as its task wrote it.

The files of a micro-batch appear at once (`publication`); the side output is published first. Spark repeats an uncommitted
micro-batch with the same number and the same input; if its folder exists already, the repeated output is discarded. The
repetition is still computed, because computing it commits the state of the batch.

Spark does not sync its checkpoint. The sink does, before results appear, so that after a power cut no folder is newer than
the checkpoint. If the digest of the input differs all the same, the query ends and says what to do (`checkpoint`).

The first batch is published even without results: from then on OUT can be read and has its schema. On a cluster a folder
must be shared by all machines: the sink checks that the files hold as many rows as workers wrote.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from whenabouts_cloud.delivery.published import FOLDER, folder_of, parquet_in
from whenabouts_cloud.delivery.result_files import opened
from whenabouts_cloud.durable import make_folder, sync_file_system
from whenabouts_cloud.jobs.output.checkpoint import (
    Input,
    check_same_input,
    checkpoint_of,
    input_of,
)
from whenabouts_cloud.jobs.output.left_out import LeftOut
from whenabouts_cloud.jobs.output.output_place import Output, Place
from whenabouts_cloud.jobs.output.publication import digest_in, publication
from whenabouts_cloud.jobs.output.task_files import EFFECTS, LATE, RESULTS, Make, TaskFiles, TaskRecords
from whenabouts_cloud.jobs.output.used_watermarks import keep_watermarks, used_watermarks
from whenabouts_cloud.landing.history import History, Piece, frontiers_of
from whenabouts_cloud.landing.scan import frontiers_in
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules.model import Rule

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

MARKER = "_job.json"
MARKER_VERSION = 6
TASK_FILES = ".tmp-parts"

OnBatch = Callable[[int, Store | None, list[dict[str, Any]], float], None]
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
        out: Place,
        report: OnBatch | None = None,
        failed: OnFailure | None = None,
        left_out: LeftOut | None = None,
    ) -> None:
        self._left_out = left_out
        self._history = None if left_out is None else History(left_out.landing)
        self._output = Output.at(out)
        self._out = self._output.store
        self._report, self._failed = report, failed
        shared = self._out if self._out.local is None else Store.at(self._out.local.resolve())
        self._files = TaskFiles(shared.at_folder(TASK_FILES))
        self._published = publication(self._out, self._files, schema)
        self._begun = False  # something is published
        if self._out.local is not None:
            make_folder(self._out.local)

    def follow(self, make: Make, trigger_s: float) -> "StreamingQuery":
        """Start publishing a streaming frame, from its checkpoint if there is one."""
        checkpoint_of(self._output)
        writer = make(self._files.write).writeStream.foreachBatch(self.publish).outputMode("append")
        writer = writer.trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds")
        return writer.option("checkpointLocation", self._output.spark_checkpoint).start()

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
        read = input_of(self._output.checkpoint, batch_id)
        digest = read.digest
        for folder in (RESULTS, LATE, EFFECTS):
            made = batch_folder(batch_id, folder)
            if self._published.exists(made):
                check_same_input(self._output, made, digest_in(self._out, made), digest)
        records = self._computed(frame, read)
        for place in self._output.folders:
            sync_file_system(place)  # also without results: a commit must never outlive the state that it names
        results = records.files.pop(RESULTS, {})
        for name, files in records.files.items():
            self._published.appear(files, batch_folder(batch_id, name), digest)
        published = None
        if results or not self._has_begun():
            target = batch_folder(batch_id)
            published = self._out.at_folder(target) if self._published.appear(results, target, digest) else None
            self._begun = True
        self._files.clear()
        if self._report:
            self._report(batch_id, published, records.counts, time.monotonic() - began_s)

    def _has_begun(self) -> bool:
        self._begun = self._begun or any(one.name.startswith(FOLDER) for one in self._out.entries())
        return self._begun

    def _computed(self, frame: "DataFrame", read: Input) -> TaskRecords:
        if self._left_out is None or self._history is None:
            return self._files.collect(frame)
        files = self._history.pieces(read.start, read.end)
        self._left_out.check(files)
        try:
            records = self._files.collect(frame)
            if any(records.files.values()):
                self._keep_watermarks(read, files)
        except Exception as error:
            self._left_out.look_again(files, f"{type(error).__name__}: {error}")
            raise
        return records

    def _keep_watermarks(self, read: Input, files: Sequence[Piece]) -> None:
        """Keep the watermarks of a batch that publishes something; the first time counts, if it is repeated."""
        used = used_watermarks(self._out)
        if self._left_out is None or (used is not None and used.end == read.end):
            return
        names = self._left_out.names()
        frontiers = [one for one in frontiers_of(list(files)) if one.path not in names]
        keep_watermarks(self._out, read.end, frontiers_in(self._left_out.landing, frontiers))

    def replace(self, make: Make) -> tuple[Store, list[dict[str, Any]]]:
        """Compute a complete result and replace the earlier one; return its folder and the counts."""
        target = batch_folder(0)
        self._published.mend(target)
        records = self._files.collect(make(self._files.write))
        self._published.replace(records.files.get(RESULTS, {}), target)
        self._files.clear()
        return self._out.at_folder(target), records.counts


def batch_folder(batch_id: int, side_output: str = RESULTS) -> str:
    """Return the folder in an output that publishes the results of a micro-batch, or a side output of it."""
    return f"{side_output}/{folder_of(batch_id)}" if side_output else folder_of(batch_id)


def read_results(folder: Path | Store) -> Iterator[dict[str, Any]]:
    """Yield the results of a published folder, each a dictionary of columns."""
    place = Store.at(folder)
    for name in parquet_in(place):
        with opened(place, name) as file:
            for rows in file.iter_batches():
                yield from rows.to_pylist()


def claim(out: Place, rule: Rule | Sequence[Rule], mode: str, shards: int) -> None:
    """Bind the output to rules and a mode ("once" or "streaming"), or check that it is bound to them already.

    Raises:
        WrongOutputError: it belongs to another rule, mode or number of shards, or holds something else.
    """
    rules = rule if isinstance(rule, Sequence) else [rule]
    mine: dict[str, Any] = {"mode": mode, "rule": "\n".join(one.text() for one in rules)}
    if mode == "streaming":
        mine["shards"] = shards  # the state is divided by it
    claimed(out, mine)


def claimed(out: Place, mine: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    """Bind the output to these values, with others that may change (`rewrite`); return all it is bound to.

    Raises:
        WrongOutputError: it is bound to other values, or holds something else.
    """
    mine = {"version": MARKER_VERSION, **mine}
    place = Output.at(out).store
    try:
        data = place.read(MARKER)
    except FileNotFoundError:
        data = None
    if data is not None:
        try:
            bound = dict(json.loads(data))
        except (ValueError, TypeError) as error:
            raise WrongOutputError(
                f"output {place.uri}: found a damaged {MARKER} ({error}), expected the one an earlier run wrote; "
                f"take another --out, or delete {place.uri} to begin again"
            ) from None
        for name, value in mine.items():
            if bound.get(name) != value:
                raise WrongOutputError(
                    f"output {place.uri}: found results of {name} {bound.get(name)!r}, expected {value!r}; "
                    f"take another --out, or delete {place.uri} to begin again"
                )
        return bound
    if any(one.name and not one.name.startswith(".") for one in place.entries()):
        raise WrongOutputError(
            f"output {place.uri}: found a folder with other content, expected an empty one or one of an earlier run; "
            "take another --out"
        )
    rewrite(place, {**mine, **(more or {})})
    return {**mine, **(more or {})}


def rewrite(out: Place, values: dict[str, Any]) -> None:
    """Replace the values that the output is bound to, durably."""
    Output.at(out).store.write(MARKER, json.dumps(values, indent=1).encode())
