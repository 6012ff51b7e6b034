"""Runs what commands do with their rules: one Spark session, signals, waiting, printing.

Results go to stdout as they are committed, read back from what the sink published; talk goes to stderr. The folder is the
record: a process killed between publishing a batch and printing it leaves those lines unprinted, never the results
unwritten. Several works share the session, each with a query and a folder of its own.
"""

import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whenabouts_cloud.jobs.work import Options, Work
from whenabouts_cloud.landing.unmatched import Landed
from whenabouts_cloud.orderly_end import hear, orderly_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.2  # how soon a signal, a failed query or a new landing is noticed
STOP_WAIT_S = (
    30.0  # a micro-batch under way is given this long before it is interrupted (and repeated at the next start)
)
END_S = STOP_WAIT_S + 30.0  # nor is anything else that hangs, such as a start of Spark, waited for longer than this


def run(works: Sequence[Work], options: Options, named: bool = False) -> None:
    """Run the works once, or until a signal. named: lines of results begin with the name of their rule."""
    job = _Run(works, options, named)
    job.once() if options.once else job.follow()


class _Voice:
    """stdout and stderr, which the threads of several queries share, a line at a time."""

    def __init__(self, quiet: bool) -> None:
        self._quiet, self._lock = quiet, threading.Lock()

    def say(self, text: str) -> None:
        """Talk."""
        if not self._quiet:
            with self._lock:
                click.echo(text, err=True)

    def tell(self, lines: Iterable[str]) -> bool:
        """Results; False when nobody reads on, as with `| head`: they stay in the output folder."""
        with self._lock:
            try:
                for line in lines:
                    sys.stdout.write(line + "\n")
                sys.stdout.flush()
            except BrokenPipeError:
                sys.stdout = open(os.devnull, "w")  # noqa: SIM115
                return False
        return True


class _Run:
    """One run of a command."""

    def __init__(self, works: Sequence[Work], options: Options, named: bool) -> None:
        self._options, self._voice = options, _Voice(options.quiet)
        self._stopping = threading.Event()
        self._parts = [_Part(work, options, self._voice, self._stopping.set, named) for work in works]
        names = ", ".join(rule.name for work in works for rule in work.rules)
        self._name = f"rules {names}" if "," in names else f"rule {names}"

    def once(self) -> None:
        landing = self._options.landing
        if not landing.is_dir():
            raise click.UsageError(f"--landing: found no folder {landing}, expected what the ingest writes")
        self._claim("once")
        with self._session() as spark:
            for part in self._parts:
                part.once(spark)
        self._summary()

    def follow(self) -> None:
        self._claim("streaming")
        with orderly_end(self._stop, END_S):
            if self._landing_is_there():
                self._follow()

    def _follow(self) -> None:
        from py4j.protocol import Py4JError

        with self._session() as spark:
            hear()  # Spark has put its own handler in place
            try:
                for part in self._parts:
                    part.start(spark)
                self._voice.say(f"Watching {self._options.landing} for {self._name}; stop with Ctrl-C")
                self._wait(spark)
            except (Py4JError, ConnectionError):  # Java has ended before us: whoever stopped us stopped its process too
                if not self._stopping.is_set():
                    raise click.ClickException(
                        f"Spark's Java process has ended; start again with --out {self._options.out} to go on where it was"
                    ) from None
        self._summary()

    def _wait(self, spark: "SparkSession") -> None:
        """Until a signal or a query's failure or end; micro-batches under way are let finish."""
        from pyspark.errors import StreamingQueryException

        try:
            while not self._stopping.is_set():
                if any(part.ended(POLL_S / len(self._parts)) for part in self._parts):
                    break
                for part in self._parts:
                    part.renew(spark)
            deadline = time.monotonic() + STOP_WAIT_S
            for part in self._parts:
                part.finish(deadline)
        except StreamingQueryException as error:
            raise click.ClickException(
                f"the streaming query failed; start it again to go on. Spark says: {error}"
            ) from None

    def _claim(self, mode: str) -> None:
        from whenabouts_cloud.jobs.output.sink import WrongOutputError

        try:
            for part in self._parts:
                part.claim(mode)
        except WrongOutputError as error:
            raise click.UsageError(str(error)) from None

    @contextlib.contextmanager
    def _session(self) -> Iterator["SparkSession"]:
        """Spark, stopped behind the work unless it ran before."""
        from py4j.protocol import Py4JError
        from pyspark.sql import SparkSession

        from whenabouts_cloud.jobs.session.java import NoJavaError
        from whenabouts_cloud.jobs.session.session import start_session

        ours = SparkSession.getActiveSession() is None
        self._voice.say("Starting Spark ...")
        began = time.monotonic()
        try:
            spark = start_session(self._options.master, f"whenabouts {self._name}", self._options.shards)
        except NoJavaError as error:
            raise click.ClickException(str(error)) from None
        self._voice.say(f"Spark is up after {time.monotonic() - began:.1f} s")
        try:
            yield spark
        finally:
            if ours:
                with contextlib.suppress(Py4JError, ConnectionError):
                    spark.stop()

    def _landing_is_there(self) -> bool:
        """Wait for the landing folder; False when told to stop before it came."""
        landing = self._options.landing
        if not landing.is_dir():
            self._voice.say(f"Waiting for {landing}, where the ingest lands readings")
        while not landing.is_dir():
            if self._stopping.wait(POLL_S):
                return False
        return True

    def _stop(self) -> None:
        self._stopping.set()
        logging.disable()  # py4j complains of a Java process that was stopped together with this one

    def _summary(self) -> None:
        for part in self._parts:
            part.summary()


class _Part:
    """One work of a run: its query, what it has counted and said."""

    def __init__(self, work: Work, options: Options, voice: _Voice, unread: Callable[[], None], named: bool) -> None:
        self._work, self._shards, self._voice, self._unread = work, options.shards, voice, unread
        self._who = f"{work.unit} in {work.out.name}: " if named else ""
        self._line: Callable[[dict[str, Any]], str] = json.dumps
        if not options.as_json:
            self._line = (lambda row: f"{row['rule']}  {work.line(row)}") if named else work.line
        self._sums: Counter[str] = Counter()
        self._silent: dict[int | str, list[str]] = {}
        self._told: set[str] = set()
        self._landed = Landed(options.landing)
        self._misspelt: set[str] = set()  # streams that were told to have no readings
        self._query: StreamingQuery | None = None

    def claim(self, mode: str) -> None:
        """Bind the output folder to the rules.

        Raises:
            WrongOutputError: it belongs to others.
        """
        from whenabouts_cloud.jobs.output.sink import claim

        if self._work.claim and mode == "streaming":
            self._work.claim()
        else:
            claim(self._work.out, self._work.rules, mode, self._shards)

    def once(self, spark: "SparkSession") -> None:
        """Compute the result and print it."""
        from whenabouts_cloud.jobs.output.sink import total

        folder, counts = self._work.once(spark)
        self._sums.update(total(counts))
        self._once_each([text for one in counts for text in self._work.waits(one)])
        self._print(folder)

    def start(self, spark: "SparkSession") -> None:
        """Start the query."""
        self._query = self._work.follow(spark, self._report)

    def renew(self, spark: "SparkSession") -> None:
        """Start it anew if its rules are others now."""
        if self._query is not None and self._work.changed():
            self._query.stop()
            self.start(spark)

    def ended(self, within_s: float) -> bool:
        """Whether the query has ended within this time.

        Raises:
            StreamingQueryException: it has failed.
        """
        return self._query is None or bool(self._query.awaitTermination(within_s))  # type: ignore[arg-type]

    def finish(self, deadline_s: float) -> None:
        """Stop the query, between two micro-batches if one ends by then."""
        query = self._query
        if query is None:
            return
        while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
        query.stop()

    def summary(self) -> None:
        """Say what all batches together had."""
        self._misspelt.clear()
        self._say_unmatched()
        sums, unit, silent = self._sums, self._work.unit, self._silent_now()
        counts = f"{sums['readings']} readings, {sums['repeats']} repeats dropped, {sums[unit]} {unit}"
        names = f"; silent gateways: {', '.join(silent)}" if silent else ""
        self._voice.say(f"{self._who}{counts}{self._troubles(sums)}{names}")

    def _report(self, batch_id: int, published: Path | None, counts: list[dict[str, Any]]) -> None:
        from whenabouts_cloud.jobs.output.sink import total

        summed = total(counts)
        kept = summed.pop("rows_kept", 0)
        self._sums.update(summed)
        self._silent.update({one["shard"]: one["silent"] for one in counts})
        waits = [text for one in counts for text in self._work.waits(one)]
        self._once_each([f"Gateway {name} is silent: no longer waited for" for name in self._silent_now()])
        self._once_each(waits)
        self._say_unmatched()
        if summed["readings"]:
            results = f"{summed[self._work.unit]} {self._work.unit}"
            self._voice.say(
                f"{self._who}Batch {batch_id}: {summed['readings']} readings, {results}, {kept} kept"
                f"{self._troubles(summed)}"
            )
        if published is not None:
            self._print(published)

    def _once_each(self, texts: list[str]) -> None:
        """Say what was not said yet, not again at every heartbeat that comes late."""
        for text in sorted(set(texts) - self._told):
            self._voice.say(self._who + text)
            self._told.add(text)

    def _say_unmatched(self) -> None:
        """Name streams that no reading belongs to so far."""
        rules = self._work.running() if self._work.running else self._work.rules
        for stream, text in self._landed.unmatched(rules).items():
            if stream not in self._misspelt:
                self._misspelt.add(stream)
                self._voice.say(self._who + text)

    def _silent_now(self) -> list[str]:
        return sorted({name for names in self._silent.values() for name in names})

    def _troubles(self, counts: Counter[str]) -> str:
        return "".join(f", {counts[x]} {text}" for x, text in self._work.troubles.items() if counts[x])

    def _print(self, folder: Path) -> None:
        from whenabouts_cloud.jobs.output.sink import read_results

        if not self._voice.tell(map(self._line, read_results(folder))):
            self._unread()
