"""One work of a run: its query, its counts, its notices, and its results as lines on stdout."""

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from whenabouts_cloud.delivery.cursor import DamagedCursorError
from whenabouts_cloud.delivery.deliveries import Deliveries
from whenabouts_cloud.delivery.targets import chosen
from whenabouts_cloud.delivery.uri import TargetError
from whenabouts_cloud.jobs.metrics import Tally, total
from whenabouts_cloud.jobs.progress_file import ProgressFile
from whenabouts_cloud.jobs.unmatched import Landed
from whenabouts_cloud.jobs.work import Notice, Options, Work
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import Rule
from whenabouts_protocol.logs import Log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = Log(__name__)

POLL_S = 0.2  # how soon a signal, a failed query, the end of a micro-batch or a new landing is noticed
MOST_LOGGED = 10_000  # notices remembered, so that each is logged once


class Printer:
    """stdout, shared by the threads of several queries; the lines of one call stay together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def print(self, lines: Iterable[str]) -> bool:
        """Print results; False if the reader of stdout has gone, as with `| head`; they stay in the output folder."""
        with self._lock:
            try:
                for line in lines:
                    sys.stdout.write(line + "\n")
                sys.stdout.flush()
            except BrokenPipeError:
                sys.stdout = open(os.devnull, "w")  # noqa: SIM115
                return False
        return True


class RunningWork:
    """One work of a run: its query, its counts, and the notices that it has logged.

    `tally` is immutable; the thread of the query replaces it after each micro-batch.
    """

    def __init__(self, work: Work, options: Options, printer: Printer, unread: Callable[[], None], named: bool) -> None:
        self._work, self._shards, self._printer, self._unread = work, options.shards, printer, unread
        inner = work.out.store.uri.removeprefix(options.out.store.uri).strip("/")
        self.output = inner or work.out.store.uri.rpartition("/")[2]
        self._line: Callable[[dict[str, Any]], str] = json.dumps
        if not options.as_json:
            self._line = (lambda row: f"{row['rule']}  {work.line(row)}") if named else work.line
        self.tally = Tally(self.output, work.unit, work.problem_texts)
        self._logged: set[str] = set()
        self._landed = Landed(options.landing)
        self._query: StreamingQuery | None = None
        self.failure: Exception | None = None
        self._landing_folder, self._left_out = options.landing.uri, list[str]()
        self.unit = work.unit
        self._progress = ProgressFile(work.out.store)
        try:
            into = {rule.name: [x for x in (chosen(uri, kind) for kind, uri in rule.into) if x] for rule in work.rules}
            self.deliveries = Deliveries(work.out.store, work.unit, options.to, into)
        except TargetError as error:
            raise click.UsageError(str(error)) from None

    def claim(self, mode: str) -> None:
        """Bind the output folder to the rules.

        Raises:
            WrongOutputError: it belongs to other rules.
            LostCheckpointError: its checkpoint does not know its newest results.
        """
        from whenabouts_cloud.jobs.output.checkpoint import check_checkpoint
        from whenabouts_cloud.jobs.output.sink import claim

        if self._work.claim and mode == "streaming":
            self._work.claim()
        else:
            claim(self._work.out, self._work.rules, mode, self._shards)
        if mode == "streaming":
            check_checkpoint(self._work.out)
        self._progress.begin()

    def compute(self, spark: "SparkSession") -> tuple[Store, list[dict[str, Any]], float]:
        """Compute and publish the result; return its folder, the counts of each group, and the seconds taken."""
        began_s = time.monotonic()
        folder, counts = self._work.once(spark, self._left_out)
        return folder, counts, time.monotonic() - began_s

    def take(self, folder: Store, counts: list[dict[str, Any]], seconds: float) -> None:
        """Count and print a computed result."""
        self._count(0, counts, seconds)
        self._log_once([notice for one in counts for notice in self._work.notices(one)])
        self._print(folder)

    def deliver(self, complete: bool = False) -> None:
        """Begin to deliver; complete: a result that replaces earlier ones."""
        try:
            self.deliveries.start(complete)
        except DamagedCursorError as error:
            raise click.ClickException(str(error)) from None

    def start(self, spark: "SparkSession") -> None:
        """Start the query."""
        self.failure = None
        self.tally = self.tally.restarted({rule.name for rule in self._rules()})
        self._query = self._work.follow(spark, self._report, self._fail)

    def renew(self, spark: "SparkSession") -> None:
        """Restart the query if its rules have changed."""
        if self._query is not None and self._work.changed():
            self._query.stop()
            self.start(spark)

    def ended(self, spark: "SparkSession", within_s: float) -> bool:
        """Return True if the query ends within this time; after damaged files it is started again without them.

        Raises:
            StreamingQueryException: it has failed.
        """
        from pyspark.errors import StreamingQueryException

        from whenabouts_cloud.jobs.output.left_out import DamagedInputError

        try:
            return self._query is None or bool(self._query.awaitTermination(within_s))  # type: ignore[arg-type]
        except StreamingQueryException:
            if not isinstance(self.failure, DamagedInputError):
                raise
            self._leave_out(self.failure.problems)
            self.start(spark)
            return False

    def leave_out(self, damaged: Mapping[str, str]) -> bool:
        """Let `compute` leave out these files; return True if some were not left out before."""
        new = {name: problem for name, problem in damaged.items() if name not in self._left_out}
        self._leave_out(new)
        return bool(new)

    def _leave_out(self, problems: Mapping[str, str]) -> None:
        self._left_out += problems
        self.tally = replace(self.tally, damaged_files=self.tally.damaged_files + len(problems))
        for name, problem in problems.items():
            cure = f"whenabouts-cloud landing check --landing {self._landing_folder} --repair"
            log.warning("landing.damaged", f"{name}: {problem}; left out. Run: {cure}", output=self.output, file=name)

    def finish(self, deadline_s: float) -> None:
        """Stop the query, after its running micro-batch if that ends before the deadline."""
        query = self._query
        if query is None:
            return
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
        query.stop()

    def summary(self) -> None:
        """Log the totals of all batches, and again the streams without readings."""
        self.write_progress(last=True)
        self._logged.clear()
        self._log_unmatched()
        had, unit = self.tally.total(), self._work.unit
        silent = sorted(set().union(*self.tally.silent().values()))
        names = f"; silent gateways: {', '.join(silent)}" if silent else ""
        log.info(
            "job.summary",
            f"{had['readings']} readings, {had['repeats']} repeats dropped, {had[unit]} {unit}"
            f"{self._problems(had)}{names}",
            output=self.output, readings=had["readings"], repeats=had["repeats"], results=had[unit],
            late=had["late"], batches=self.tally.batches, silent=len(silent), damaged_files=self.tally.damaged_files,
        )  # fmt: skip

    def write_progress(self, last: bool = False) -> None:
        """Write how far the query is, if that has changed; not too often unless it is the `last` time."""
        self._progress.write(self.tally, last)

    def _count(self, number: int, counts: list[dict[str, Any]], seconds: float) -> None:
        # The list of batches first: what has counted a batch also lists it.
        self._progress.note(number, seconds, total(counts), self._work.unit)
        self.tally = self.tally.after(counts, seconds)

    def _fail(self, error: Exception) -> None:
        self.failure = error

    def _report(self, number: int, published: Store | None, counts: list[dict[str, Any]], seconds: float) -> None:
        self._count(number, counts, seconds)
        silent = sorted(set().union(*self.tally.silent().values()))
        text = "Gateway {} is silent: no longer waited for"
        self._log_once([Notice("gateway.silent", text.format(name), "gateway", name) for name in silent])
        self._log_once([notice for one in counts for notice in self._work.notices(one)])
        self._log_unmatched()
        self._log_batch(number, counts, seconds)
        if published is not None:
            self.deliveries.published(number)
            self._print(published)

    def _log_batch(self, number: int, counts: list[dict[str, Any]], seconds: float) -> None:
        """Log a batch that had readings; batches of watermarks only occur several times a second."""
        had, unit = total(counts), self._work.unit
        if not had["readings"]:
            return
        kept = sum(one["rows_kept"] for one in counts)
        log.info(
            "batch.done",
            f"Batch {number}: {had['readings']} readings, {had[unit]} {unit}, {kept} kept{self._problems(had)}",
            output=self.output, batch=number, readings=had["readings"], results=had[unit], kept=kept,
            late=had["late"], seconds=round(seconds, 3),
        )  # fmt: skip

    def _log_once(self, notices: Sequence[Notice]) -> None:
        """Log each notice once, not again with each late heartbeat."""
        if len(self._logged) > MOST_LOGGED:
            self._logged.clear()
        for notice in sorted(set(notices)):
            if notice.text not in self._logged:
                log.warning(notice.event, notice.text, output=self.output, **{notice.name: notice.value})
                self._logged.add(notice.text)

    def _log_unmatched(self) -> None:
        """Log the streams without readings so far, each once."""
        for stream, text in self._landed.unmatched(self._rules()).items():
            name = f"stream {stream}"
            if name not in self._logged:
                self._logged.add(name)
                log.warning("stream.unknown", text, output=self.output, stream=stream)

    def _rules(self) -> Sequence[Rule]:
        return self._work.running() if self._work.running else self._work.rules

    def _problems(self, counts: Counter[str]) -> str:
        return "".join(f", {counts[x]} {text}" for x, text in self._work.problem_texts.items() if counts[x])

    def _print(self, folder: Store) -> None:
        from whenabouts_cloud.jobs.output.sink import read_results

        if not self._printer.print(map(self._line, read_results(folder))):
            log.info("stdout.closed", "The reader of stdout has gone; results stay in the folder", folder=folder.uri)
            self._unread()
