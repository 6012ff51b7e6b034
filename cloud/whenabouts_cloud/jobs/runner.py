"""Runs the work of commands: one Spark session, signals, waiting, printing.

Results are printed to stdout when they are committed, read from the folder that the sink published; events go to the log.
The folder is the record: a process killed between publishing a batch and printing it loses the printed lines, never the
results. Several works share the session; each has its own query and folder.
"""

import contextlib
import errno
import functools
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from whenabouts_cloud.delivery.deliveries import check_tables
from whenabouts_cloud.delivery.uri import TargetError
from whenabouts_cloud.jobs.metrics import Tally, delivery_metrics, metrics
from whenabouts_cloud.jobs.running_work import POLL_S, Printer, RunningWork
from whenabouts_cloud.jobs.stage_progress import Show, stage_progress
from whenabouts_cloud.jobs.work import Options, Work
from whenabouts_cloud.metrics_file import MetricsFile
from whenabouts_cloud.orderly_end import hear, orderly_end
from whenabouts_cloud.progress import progress, progress_lines
from whenabouts_protocol.logs import Log, write_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = Log(__name__)

NO_SPACE = os.strerror(errno.ENOSPC)  # in errors of Python and of Java
REMOTE_POLL_S = 2.0  # how soon a new landing in an object store is noticed
METRICS_S = 2.0  # the lag changes even while nothing lands
STOP_WAIT_S = (
    30.0  # a micro-batch under way is given this long before it is interrupted (and repeated at the next start)
)
LISTED_AGAIN = 3  # times that --once begins a computation anew because files that it had listed have gone
DELIVERY_WAIT_S = 15.0  # at the end of a job that follows; --once waits as long as targets take results
END_S = STOP_WAIT_S + 30.0  # limit for anything else that hangs, such as a start of Spark


def run(works: Sequence[Work], options: Options, named: bool = False) -> None:
    """Run the works once, or until a signal. named: result lines begin with the name of their rule."""
    job = _Run(works, options, named)
    job.once() if options.once else job.follow()


class _Run:
    """One run of a command."""

    def __init__(self, works: Sequence[Work], options: Options, named: bool) -> None:
        write_logs(options.log_format, "warning" if options.quiet else "info")
        _set_java_log_level(logging.WARNING)
        self._options, printer = options, Printer()
        self._stopping, self._interrupted = threading.Event(), threading.Event()
        self._spark: SparkSession | None = None
        self._parts = [RunningWork(work, options, printer, self._stopping.set, named) for work in works]
        self._check_targets()
        self._metrics = None if options.metrics_file is None else MetricsFile(options.metrics_file)
        self._written: tuple[float, list[Tally]] = (0.0, [])
        names = ", ".join(rule.name for work in works for rule in work.rules)
        self._name = f"rules {names}" if "," in names else f"rule {names}"

    def once(self) -> None:
        from whenabouts_cloud.jobs.output.left_out import damaged_in

        landing = self._options.landing
        if not self._exists():
            raise click.UsageError(f"--landing: found no folder {landing.uri}, expected what the ingest writes")
        self._claim("once")
        with orderly_end(self._interrupt, END_S), self._session() as self._spark:
            hear()  # Spark has replaced the signal handlers
            damaged = damaged_in(landing)
            for part in self._parts:
                part.leave_out(damaged)
                self._compute(part, self._spark)
            for part in self._parts:
                part.deliver(complete=True)
            problems = self._delivered(None)
        self._end(problems)

    def _compute(self, part: "RunningWork", spark: "SparkSession", again: int = LISTED_AGAIN) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        from whenabouts_cloud.jobs.output.task_files import LostRowsError
        from whenabouts_cloud.jobs.reading.gone import names_gone

        if self._interrupted.is_set():
            raise click.Abort
        try:
            with self._progress(spark):
                result = part.compute(spark)
        except Exception as error:
            if not self._interrupted.is_set():
                gone = again > 0 and names_gone(self._options.landing, str(error))
                if gone or self._mended(part, error):
                    self._compute(part, spark, again - gone)
                    return
            if self._interrupted.is_set():
                raise click.Abort from None
            if not isinstance(error, PySparkException | Py4JError | OSError | LostRowsError):
                raise
            raise click.ClickException(
                self._no_space(error)
                or f"output {part.output}: not computed, the earlier result stays. Spark reports: {error}"
            ) from None
        part.take(*result)

    def _mended(self, part: "RunningWork", error: Exception) -> bool:
        """True if Spark could not read files, which are known and left out now."""
        from whenabouts_cloud.jobs.output.left_out import UNREADABLE, damaged_in

        return UNREADABLE in str(error) and part.leave_out(damaged_in(self._options.landing, whole=True))

    def _progress(self, spark: "SparkSession") -> contextlib.AbstractContextManager[None]:
        """A bar on a terminal; otherwise, or with a log for programs, an event now and then."""
        show: Show = progress
        from whenabouts_cloud.jobs.session.session import is_connect

        if self._options.quiet:
            return contextlib.nullcontext()
        if self._options.log_format != "text" or not sys.stderr.isatty():
            show = functools.partial(progress_lines, say=functools.partial(log.info, "stage.progress"))
        if is_connect(self._options.master):
            return contextlib.nullcontext()  # it does not tell the progress of stages
        return stage_progress(spark, show)

    def follow(self) -> None:
        from whenabouts_cloud.jobs.session.session import is_connect

        if is_connect(self._options.master):
            raise click.UsageError(
                f"--master {self._options.master}: found Spark Connect without --once; there the server would publish "
                "results, not this program, so jobs that follow a landing need another master: local, spark://, yarn or k8s://"
            )
        self._claim("streaming")
        self._warn_of_checkpoint()
        with orderly_end(self._stop, END_S):
            if self._landing_is_there():
                self._follow()

    def _warn_of_checkpoint(self) -> None:
        """The workers of a cluster write the checkpoint too; beside results in a folder they reach it like those."""
        out, master = self._options.out, self._options.master
        if out.store.local is None and out.named is None and not master.startswith("local"):
            log.warning(
                "checkpoint.local", "Spark's state is in a folder that all its machines must share; name one: --checkpoint",
                folder=out.checkpoint.uri, master=master,
            )  # fmt: skip

    def _follow(self) -> None:
        from py4j.protocol import Py4JError

        with self._session() as spark:
            hear()  # Spark has replaced the signal handlers
            try:
                for part in self._parts:
                    part.deliver()
                    part.start(spark)
                watching = f"Watching {self._options.landing.uri} for {self._name}; stop with Ctrl-C"
                log.info("query.started", watching, queries=len(self._parts))
                self._wait(spark)
            except (Py4JError, ConnectionError) as error:
                # Java ended first: a signal to the process group stops it too.
                if not self._stopping.is_set():
                    ended = f"Spark's Java process has ended; start again with --out {self._options.out} to continue"
                    raise click.ClickException(self._no_space(error) or ended) from None
            problems = self._delivered(DELIVERY_WAIT_S)
        self._end(problems)

    def _wait(self, spark: "SparkSession") -> None:
        """Wait for a signal, or the failure or end of a query; lets running micro-batches finish."""
        from pyspark.errors import StreamingQueryException

        try:
            while not self._stopping.is_set():
                if any(part.ended(spark, POLL_S / len(self._parts)) for part in self._parts):
                    break
                for part in self._parts:
                    part.renew(spark)
                    part.write_progress()
                self._write_metrics()
            deadline = time.monotonic() + STOP_WAIT_S
            for part in self._parts:
                part.finish(deadline)
        except StreamingQueryException as error:
            raise click.ClickException(self._reason(error)) from None

    def _reason(self, error: Exception) -> str:
        """Text for the end of a query, in one line where the cause is known."""
        from whenabouts_cloud.jobs.output.checkpoint import LostCheckpointError

        cause = next((part.failure for part in self._parts if part.failure is not None), error)
        if isinstance(cause, LostCheckpointError):
            return str(cause)
        return self._no_space(cause) or (
            f"the streaming query failed; start it again to continue. Spark reports: {cause}"
        )

    def _no_space(self, error: Exception) -> str | None:
        """Text in one line if a disk is full."""
        if NO_SPACE not in str(error):
            return None
        return (
            f"output {self._options.out}: found no space left on its disk or on that of Spark's files in "
            f"{tempfile.gettempdir()}; free some and start again with the same --out: nothing is lost or published twice"
        )

    def _claim(self, mode: str) -> None:
        from whenabouts_cloud.jobs.output.checkpoint import LostCheckpointError
        from whenabouts_cloud.jobs.output.sink import WrongOutputError

        try:
            for part in self._parts:
                part.claim(mode)
        except LostCheckpointError as error:
            raise click.ClickException(str(error)) from None
        except OSError as error:
            text = f"output {self._options.out}: cannot be written ({error}); start again when it can"
            raise click.ClickException(self._no_space(error) or text) from None
        except WrongOutputError as error:
            raise click.UsageError(str(error)) from None

    @contextlib.contextmanager
    def _session(self) -> Iterator["SparkSession"]:
        """A Spark session, stopped after the work unless it ran before."""
        from py4j.protocol import Py4JError
        from pyspark.sql import SparkSession

        from whenabouts_cloud.jobs.session.java import NoJavaError
        from whenabouts_cloud.jobs.session.session import NoConnectError, start_session

        ours = SparkSession.getActiveSession() is None
        log.info("spark.starting", "Starting Spark ...", master=self._options.master)
        began = time.monotonic()
        try:
            chosen = self._options
            spark = start_session(chosen.master, f"whenabouts {self._name}", chosen.shards, chosen.environment)
        except (NoJavaError, NoConnectError) as error:
            raise click.ClickException(str(error)) from None
        seconds = round(time.monotonic() - began, 1)
        log.info("spark.started", f"Spark is up after {seconds} s", seconds=seconds)
        try:
            yield spark
        finally:
            if ours:
                with contextlib.suppress(Py4JError, ConnectionError):
                    spark.stop()

    def _landing_is_there(self) -> bool:
        """Wait for the landing folder; False if stopped before it exists."""
        landing = self._options.landing
        wait_s = POLL_S if landing.local else REMOTE_POLL_S
        if not self._exists():
            text = f"Waiting for {landing.uri}, where the ingest lands readings"
            log.info("landing.waiting", text, landing=landing.uri)
        while not self._exists():
            if self._stopping.wait(wait_s):
                return False
        return True

    def _exists(self) -> bool:
        """True if the landing is there."""
        landing = self._options.landing
        try:
            return landing.exists()
        except OSError as error:
            reason = " ".join(str(error).split())[:300]
            raise click.ClickException(
                f"landing {landing.uri}: cannot be reached ({reason}); start again when it can"
            ) from None

    def _stop(self) -> None:
        self._stopping.set()
        _set_java_log_level(logging.CRITICAL + 1)  # Java stopped together with this process is no fault

    def _interrupt(self) -> None:
        """Stop at once: a job over a whole landing publishes nothing before all is computed."""
        from py4j.protocol import Py4JError

        from whenabouts_cloud.jobs.session.session import is_connect

        self._stop()
        self._interrupted.set()
        if self._spark is not None:
            with contextlib.suppress(Py4JError, OSError):
                if is_connect(self._options.master):
                    self._spark.interruptAll()
                else:
                    self._spark.sparkContext.setLogLevel("OFF")  # silences tasks that lose Spark
                self._spark.stop()

    def _end(self, undelivered: Sequence[str]) -> None:
        for part in self._parts:
            part.summary()
        self._write_metrics(last=True)
        if undelivered:
            raise click.ClickException("\n".join(undelivered))

    def _check_targets(self) -> None:
        try:
            check_tables((part.unit, part.deliveries) for part in self._parts)
        except TargetError as error:
            raise click.UsageError(str(error)) from None

    def _delivered(self, within_s: float | None) -> list[str]:
        """Wait for the deliveries, and end them; return a sentence for each that is not complete."""
        deadline_s = None if within_s is None else time.monotonic() + within_s
        return [text for part in self._parts for text in part.deliveries.finish(deadline_s, self._interrupted.is_set)]

    def _write_metrics(self, last: bool = False) -> None:
        """Write metrics after each micro-batch, and at least every METRICS_S."""
        if self._metrics is None:
            return
        tallies, now_s = [part.tally for part in self._parts], time.monotonic()
        before_s, before = self._written
        if last or tallies != before or now_s - before_s >= METRICS_S:
            now_us = time.time_ns() // 1000
            delivered = {part.output: part.deliveries.progress() for part in self._parts}
            self._metrics.write([*metrics(tallies, now_us), *delivery_metrics(delivered, now_us)])
            self._written = now_s, tallies


def _set_java_log_level(level: int) -> None:
    """Log messages of the bridge to Java from this level on; below, it reports each of its connections."""
    logging.getLogger("py4j").setLevel(level)
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL + 1)  # errors of `publish`, which end the query
