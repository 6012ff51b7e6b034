"""`whenabouts-cloud correlate`: run a rule over a landing, once or for as long as it grows.

Pairs go to stdout as they are committed, read back from what the sink published; talk goes to stderr. The folder is the
record: a process killed between publishing a batch and printing it leaves those lines unprinted, never the pairs unwritten.
"""

import contextlib
import json
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whenabouts_cloud.correlation.text import pair_text
from whenabouts_cloud.rules import CorrelateRule, RuleError, load_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POLL_S = 0.2  # how soon a signal, a failed query or a new landing is noticed
STOP_WAIT_S = (
    30.0  # a micro-batch under way is given this long before it is interrupted (and repeated at the next start)
)

EXAMPLE = """\b
Example:
  whenabouts-cloud correlate --landing landing --rule handover.wa --out pairs
\b
with handover.wa:
  STREAM dock  FROM "dock/tags" DELAY 2 s
  STREAM shelf FROM "shelf/+"   DELAY 1 s
  RULE handover
    CORRELATE dock AS a, shelf AS b
    WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key
"""


class _Seconds(click.ParamType[float]):
    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = float(str(value).removesuffix("s"))
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds < 86_400:
            self.fail(f"found {value!r}, expected seconds such as 1s or 0.5s", param, ctx)
        return seconds


@click.command("correlate", epilog=EXAMPLE)
@click.option("--landing", required=True, type=click.Path(path_type=Path), help="Folder the ingest lands readings in.")
@click.option(
    "--rule", "rule_file", required=True, type=click.Path(path_type=Path), help="File with streams and rules."
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the pairs, as Parquet.")
@click.option("--once", is_flag=True, help="Work on what has landed and end, replacing an earlier result of the rule.")
@click.option("--json", "as_json", is_flag=True, help="Print pairs as JSON, one object a line.")
@click.option("--rule-name", help="Which rule, if the file has several.")
@click.option(
    "--shards", default=4, show_default=True, type=click.IntRange(1, 1024), help="Parts the keys are divided in."
)
@click.option(
    "--trigger", default="1s", show_default=True, type=_Seconds(), help="Shortest time between micro-batches."
)
@click.option("--master", default="local[2]", show_default=True, help="Spark master.")
@click.option("--quiet", is_flag=True, help="Say nothing on stderr but errors.")
def correlate(
    landing: Path,
    rule_file: Path,
    out: Path,
    once: bool,
    as_json: bool,
    rule_name: str | None,
    shards: int,
    trigger: float,
    master: str,
    quiet: bool,
) -> None:
    """Find the pairs of readings of two streams that happened close together, as a rule says.

    Without --once it goes on as the landing grows, until Ctrl-C or SIGTERM; started again with the same --out it goes on
    where it was, and no pair comes twice.
    """
    rule = _rule(rule_file, rule_name)
    job = _Job(rule, landing, out, shards, as_json, quiet)
    job.once(master) if once else job.stream(master, trigger)


def _rule(file: Path, name: str | None) -> CorrelateRule:
    try:
        rules = load_rules(file).rules
    except RuleError as error:
        raise click.UsageError(str(error)) from None
    names = ", ".join(rule.name for rule in rules)
    if not rules:
        raise click.UsageError(f"{file}: found no RULE, expected one")
    if name is None and len(rules) > 1:
        raise click.UsageError(f"{file}: found the rules {names}, expected --rule-name with one of them")
    for rule in rules:
        if name in (None, rule.name):
            if not isinstance(rule, CorrelateRule):
                raise click.UsageError(
                    f"rule {rule.name} is a rule about an order of events, expected a CORRELATE rule: run it with "
                    "whenabouts-cloud cep"
                )
            return rule
    raise click.UsageError(f"--rule-name: found {name}, expected one of {names} in {file}")


class _Job:
    """One run of the command."""

    def __init__(self, rule: CorrelateRule, landing: Path, out: Path, shards: int, as_json: bool, quiet: bool) -> None:
        self._rule, self._landing, self._out, self._shards = rule, landing, out, shards
        self._line = json.dumps if as_json else pair_text
        self._quiet = quiet
        self._stopping = threading.Event()
        self._sums: Counter[str] = Counter()
        self._silent: dict[int, list[str]] = {}
        self._told_silent: set[str] = set()

    def once(self, master: str) -> None:
        if not self._landing.is_dir():
            raise click.UsageError(f"--landing: found no folder {self._landing}, expected what the ingest writes")
        self._claim("once")
        spark = self._session(master)
        from whenabouts_cloud.spark.batch import correlate_landing_counted, read_landing
        from whenabouts_cloud.spark.sink import PairSink, total

        try:
            frame = correlate_landing_counted(self._rule, read_landing(spark, str(self._landing)), self._shards)
            file, counts = PairSink(self._out).replace(frame)
            self._sums.update(total(counts))
            self._print_pairs(file)
        finally:
            spark.stop()
        self._summary()

    def stream(self, master: str, trigger_s: float) -> None:
        self._claim("streaming")
        self._listen()
        if not self._landing_is_there():
            return
        spark = self._session(master)
        self._listen()  # again: Spark has put its own handler in place
        from py4j.protocol import Py4JError

        from whenabouts_cloud.spark.streaming import start_query

        try:
            query = start_query(self._rule, spark, self._landing, self._out, self._shards, trigger_s, self._report)
            self._say(f"Watching {self._landing} for rule {self._rule.name}; stop with Ctrl-C")
            self._wait(query)
        except (Py4JError, ConnectionError):  # Java has ended before us: whoever stopped us stopped its process too
            if not self._stopping.is_set():
                raise click.ClickException(
                    f"Spark's Java process has ended; start again with --out {self._out} to go on where it was"
                ) from None
        finally:
            with contextlib.suppress(Py4JError, ConnectionError):
                spark.stop()
        self._summary()

    def _wait(self, query: "StreamingQuery") -> None:
        """Until a signal or the query's failure; a micro-batch under way is let finish."""
        from pyspark.errors import StreamingQueryException

        try:
            while not self._stopping.is_set():
                if query.awaitTermination(POLL_S):  # type: ignore[arg-type]
                    break
            deadline = time.monotonic() + STOP_WAIT_S
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
                time.sleep(POLL_S)
            query.stop()
        except StreamingQueryException as error:
            raise click.ClickException(
                f"the streaming query failed; start it again to go on. Spark says: {error}"
            ) from None

    def _claim(self, mode: str) -> None:
        from whenabouts_cloud.spark.sink import WrongOutputError, claim

        try:
            claim(self._out, self._rule, mode, self._shards)
        except WrongOutputError as error:
            raise click.UsageError(str(error)) from None

    def _session(self, master: str) -> "SparkSession":
        from whenabouts_cloud.spark.java import NoJavaError
        from whenabouts_cloud.spark.session import start_session

        self._say("Starting Spark ...")
        began = time.monotonic()
        try:
            spark = start_session(master, f"whenabouts correlate {self._rule.name}", self._shards)
        except NoJavaError as error:
            raise click.ClickException(str(error)) from None
        self._say(f"Spark is up after {time.monotonic() - began:.1f} s")
        return spark

    def _landing_is_there(self) -> bool:
        """Wait for the landing folder; False when told to stop before it came."""
        if not self._landing.is_dir():
            self._say(f"Waiting for {self._landing}, where the ingest lands readings")
        while not self._landing.is_dir():
            if self._stopping.wait(POLL_S):
                return False
        return True

    def _listen(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, *_: object) -> None:
        self._stopping.set()
        logging.disable()  # py4j complains of a Java process that was stopped together with this one

    def _report(self, batch_id: int, published: Path | None, counts: list[dict[str, Any]]) -> None:
        from whenabouts_cloud.spark.sink import total

        summed = total(counts)
        kept = summed.pop("rows_kept", 0)
        self._sums.update(summed)
        self._silent.update({one["shard"]: one["silent"] for one in counts})
        for name in sorted(self._silent_now() - self._told_silent):
            self._say(f"Gateway {name} is silent: no longer waited for")
            self._told_silent.add(name)  # once, not at every heartbeat that comes late
        if summed["readings"]:
            more = "".join(f", {summed[x]} {text}" for x, text in _TROUBLES.items() if summed[x])
            self._say(f"Batch {batch_id}: {summed['readings']} readings, {summed['pairs']} pairs, {kept} kept{more}")
        if published is not None:
            self._print_pairs(published)

    def _silent_now(self) -> set[str]:
        return {name for names in self._silent.values() for name in names}

    def _print_pairs(self, file: Path) -> None:
        from whenabouts_cloud.spark.sink import read_pairs

        try:
            for pair in read_pairs(file):
                sys.stdout.write(self._line(pair) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:  # nobody reads on, as with `| head`: the pairs stay in the output folder
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            self._stopping.set()

    def _summary(self) -> None:
        counts = (
            f"{self._sums['readings']} readings, {self._sums['repeats']} repeats dropped, {self._sums['pairs']} pairs"
        )
        more = "".join(f", {self._sums[x]} {text}" for x, text in _TROUBLES.items() if self._sums[x])
        silent = sorted(self._silent_now())
        self._say(f"{counts}{more}" + (f"; silent gateways: {', '.join(silent)}" if silent else ""))

    def _say(self, text: str) -> None:
        if not self._quiet:
            click.echo(text, err=True)


_TROUBLES = {
    "unmatched": "unmatched",
    "late": "late (set aside in OUT/_late)",
    "expired": "too late to be joined",
    "beyond_length": "longer than LENGTH",
    "overflow": "forgotten for want of room",
}
