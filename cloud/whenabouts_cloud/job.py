"""What commands share that run a rule over a landing with Spark: options, session, signals, waiting, printing.

Results go to stdout as they are committed, read back from what the sink published; talk goes to stderr. The folder is the
record: a process killed between publishing a batch and printing it leaves those lines unprinted, never the results
unwritten.
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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from whenabouts_cloud.rules import CepRule, CorrelateRule, LatwinRule, Rule, RuleError, load_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from whenabouts_cloud.spark.sink import Report

Command = TypeVar("Command", bound=Callable[..., Any])
OneRule = TypeVar("OneRule", CorrelateRule, CepRule, LatwinRule)

POLL_S = 0.2  # how soon a signal, a failed query or a new landing is noticed
STOP_WAIT_S = (
    30.0  # a micro-batch under way is given this long before it is interrupted (and repeated at the next start)
)
_COMMANDS = {
    CorrelateRule: "whenabouts-cloud correlate",
    CepRule: "whenabouts-cloud cep",
    LatwinRule: "whenabouts-cloud latwin",
}


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


def job_options(unit: str) -> Callable[[Command], Command]:
    """The options of a command whose results are called so, as parameters of `Options` and rule_file, rule_name."""
    path = click.Path(path_type=Path)
    options = [
        click.option("--landing", required=True, type=path, help="Folder the ingest lands readings in."),
        click.option("--rule", "rule_file", required=True, type=path, help="File with streams and rules."),
        click.option("--out", required=True, type=path, help=f"Folder for the {unit}, as Parquet."),
        click.option(
            "--once", is_flag=True, help="Work on what has landed and end, replacing an earlier result of the rule."
        ),
        click.option("--json", "as_json", is_flag=True, help=f"Print {unit} as JSON, one object a line."),
        click.option("--rule-name", help="Which rule, if the file has several."),
        click.option(
            "--shards",
            default=4,
            show_default=True,
            type=click.IntRange(1, 1024),
            help="Parts the keys are divided in.",
        ),
        click.option(
            "--trigger",
            default="1s",
            show_default=True,
            type=_Seconds(),
            help="Shortest time between micro-batches.",
        ),
        click.option("--master", default="local[2]", show_default=True, help="Spark master."),
        click.option("--quiet", is_flag=True, help="Say nothing on stderr but errors."),
    ]

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@dataclass(frozen=True)
class Options:
    """What the user chose beside the rule."""

    landing: Path
    out: Path
    once: bool
    as_json: bool
    shards: int
    trigger: float
    master: str
    quiet: bool


@dataclass(frozen=True)
class Work:
    """What a command does with its rule.

    `once` computes the result and says where it is published and what was counted; `follow` starts the query. `unit` is what
    results are called and counted as, `line` shows one, `troubles` are further counts worth telling, with their text.
    `changed` is asked between micro-batches whether the query is to be started anew, by `follow`, because its rules are
    others, which then are `rules`; `claim` binds the output folder, where the rules alone do not. `waits` finds in what a
    shard or group counted what results wait for or do without, as lines to tell once.
    """

    name: str
    unit: str
    line: Callable[[dict[str, Any]], str]
    troubles: Mapping[str, str]
    once: "Callable[[SparkSession], tuple[Path, list[dict[str, Any]]]]"
    follow: "Callable[[SparkSession, Report], StreamingQuery]"
    waits: Callable[[dict[str, Any]], list[str]] = lambda counts: []
    changed: Callable[[], bool] = lambda: False
    claim: Callable[[], None] | None = None
    rules: Callable[[], Sequence[Rule]] | None = None


def choose_rule(file: Path, name: str | None, kind: type[OneRule]) -> OneRule:
    """The rule of a file with this name, or its only one of this kind.

    Raises:
        click.UsageError: the file has mistakes or no such rule.
    """
    try:
        rules = load_rules(file).rules
    except RuleError as error:
        raise click.UsageError(str(error)) from None
    if not rules:
        raise click.UsageError(f"{file}: found no RULE, expected one")
    mine = [rule for rule in rules if isinstance(rule, kind)]
    for rule in rules:
        if rule.name == name or (name is None and not mine):
            if isinstance(rule, kind):
                return rule
            raise click.UsageError(
                f"{file}: found that rule {rule.name} is for another command: {_COMMANDS[type(rule)]}"
            )
    names = ", ".join(rule.name for rule in mine)
    if name is not None:
        raise click.UsageError(f"--rule-name: found {name}, expected one of {names} in {file}")
    if len(mine) > 1:
        raise click.UsageError(f"{file}: found the rules {names}, expected --rule-name with one of them")
    return mine[0]


def run(rules: Sequence[Rule], work: Work, options: Options) -> None:
    """Run the work once, or until a signal."""
    job = _Job(rules, work, options)
    job.once() if options.once else job.follow()


class _Job:
    """One run of a command."""

    def __init__(self, rules: Sequence[Rule], work: Work, options: Options) -> None:
        self._rules, self._work, self._options = rules, work, options
        names = ", ".join(rule.name for rule in rules)
        self._name = f"rule {names}" if len(rules) == 1 else f"rules {names}"
        self._line = json.dumps if options.as_json else work.line
        self._stopping = threading.Event()
        self._sums: Counter[str] = Counter()
        self._silent: dict[int | str, list[str]] = {}
        self._told: set[str] = set()
        from whenabouts_cloud.unmatched import Landed

        self._landed = Landed(options.landing)

    def once(self) -> None:
        landing = self._options.landing
        if not landing.is_dir():
            raise click.UsageError(f"--landing: found no folder {landing}, expected what the ingest writes")
        self._claim("once")
        spark = self._session()
        from whenabouts_cloud.spark.sink import total

        try:
            file, counts = self._work.once(spark)
            self._sums.update(total(counts))
            self._once_each([text for one in counts for text in self._work.waits(one)])
            self._print(file)
        finally:
            spark.stop()
        self._summary()

    def follow(self) -> None:
        self._claim("streaming")
        self._listen()
        if not self._landing_is_there():
            return
        spark = self._session()
        self._listen()  # again: Spark has put its own handler in place
        from py4j.protocol import Py4JError

        try:
            query = self._work.follow(spark, self._report)
            self._say(f"Watching {self._options.landing} for {self._name}; stop with Ctrl-C")
            while self._wait(query):
                query = self._work.follow(spark, self._report)
        except (Py4JError, ConnectionError):  # Java has ended before us: whoever stopped us stopped its process too
            if not self._stopping.is_set():
                raise click.ClickException(
                    f"Spark's Java process has ended; start again with --out {self._options.out} to go on where it was"
                ) from None
        finally:
            with contextlib.suppress(Py4JError, ConnectionError):
                spark.stop()
        self._summary()

    def _wait(self, query: "StreamingQuery") -> bool:
        """Until a signal, or the query's failure, or that it is to be started anew (True); a micro-batch under way is let
        finish."""
        from pyspark.errors import StreamingQueryException

        try:
            while not self._stopping.is_set():
                if query.awaitTermination(POLL_S):  # type: ignore[arg-type]
                    break
                if self._work.changed():
                    query.stop()
                    return True
            deadline = time.monotonic() + STOP_WAIT_S
            while query.isActive and query.status["isTriggerActive"] and time.monotonic() < deadline:
                time.sleep(POLL_S)
            query.stop()
            return False
        except StreamingQueryException as error:
            raise click.ClickException(
                f"the streaming query failed; start it again to go on. Spark says: {error}"
            ) from None

    def _claim(self, mode: str) -> None:
        from whenabouts_cloud.spark.sink import WrongOutputError, claim

        try:
            if self._work.claim and mode == "streaming":
                self._work.claim()
            else:
                claim(self._options.out, self._rules, mode, self._options.shards)
        except WrongOutputError as error:
            raise click.UsageError(str(error)) from None

    def _session(self) -> "SparkSession":
        from whenabouts_cloud.spark.java import NoJavaError
        from whenabouts_cloud.spark.session import start_session

        self._say("Starting Spark ...")
        began = time.monotonic()
        name = f"whenabouts {self._work.name} {self._name}"
        try:
            spark = start_session(self._options.master, name, self._options.shards)
        except NoJavaError as error:
            raise click.ClickException(str(error)) from None
        self._say(f"Spark is up after {time.monotonic() - began:.1f} s")
        return spark

    def _landing_is_there(self) -> bool:
        """Wait for the landing folder; False when told to stop before it came."""
        landing = self._options.landing
        if not landing.is_dir():
            self._say(f"Waiting for {landing}, where the ingest lands readings")
        while not landing.is_dir():
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
        waits = [text for one in counts for text in self._work.waits(one)]
        self._once_each([f"Gateway {name} is silent: no longer waited for" for name in self._silent_now()])
        self._once_each(waits)
        self._once_each(self._unmatched())
        if summed["readings"]:
            results = f"{summed[self._work.unit]} {self._work.unit}"
            self._say(
                f"Batch {batch_id}: {summed['readings']} readings, {results}, {kept} kept{self._troubles(summed)}"
            )
        if published is not None:
            self._print(published)

    def _once_each(self, texts: list[str]) -> None:
        """Say what was not said yet, not again at every heartbeat that comes late."""
        for text in sorted(set(texts) - self._told):
            self._say(text)
            self._told.add(text)

    def _silent_now(self) -> list[str]:
        return sorted({name for names in self._silent.values() for name in names})

    def _troubles(self, counts: Counter[str]) -> str:
        return "".join(f", {counts[x]} {text}" for x, text in self._work.troubles.items() if counts[x])

    def _print(self, file: Path) -> None:
        from whenabouts_cloud.spark.sink import read_results

        try:
            for result in read_results(file):
                sys.stdout.write(self._line(result) + "\n")
            sys.stdout.flush()
        except BrokenPipeError:  # nobody reads on, as with `| head`: the results stay in the output folder
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
            self._stopping.set()

    def _unmatched(self) -> list[str]:
        """Streams that no reading matched so far."""
        return self._landed.unmatched(self._work.rules() if self._work.rules else self._rules)

    def _summary(self) -> None:
        sums, unit, silent = self._sums, self._work.unit, self._silent_now()
        counts = f"{sums['readings']} readings, {sums['repeats']} repeats dropped, {sums[unit]} {unit}"
        for text in self._unmatched():
            self._say(text)
        self._say(f"{counts}{self._troubles(sums)}" + (f"; silent gateways: {', '.join(silent)}" if silent else ""))

    def _say(self, text: str) -> None:
        if not self._options.quiet:
            click.echo(text, err=True)
