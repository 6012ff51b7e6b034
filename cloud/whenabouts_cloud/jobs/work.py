"""Shared by commands that run rules over a landing with Spark: the user's options, and the work done with the rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from whenabouts_cloud.jobs.output.output_place import Output
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import CepRule, CorrelateRule, LatwinRule, Rule, RuleError, load_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from whenabouts_cloud.jobs.output.sink import OnBatch, OnFailure

OneRule = TypeVar("OneRule", CorrelateRule, CepRule, LatwinRule)

_COMMANDS = {
    CorrelateRule: "whenabouts-cloud correlate",
    CepRule: "whenabouts-cloud cep",
    LatwinRule: "whenabouts-cloud latwin",
}


class QueryOptions(NamedTuple):
    """Places, number of shards and shortest time between micro-batches of a query."""

    landing: Path | Store
    out: "Path | Store | Output"
    shards: int
    trigger_s: float


@dataclass(frozen=True)
class Options:
    """The user's options, except the rule."""

    landing: Store
    out: Output
    once: bool
    as_json: bool
    shards: int
    trigger: float
    master: str
    quiet: bool
    log_format: str
    metrics_file: Path | None
    to: tuple[str, ...] = ()
    environment: Path | None = None

    @staticmethod
    def chosen(out: Store, checkpoint: Store | None, **others: Any) -> "Options":
        """From the options of a command."""
        return Options(out=Output.at(out, checkpoint), **others)

    @property
    def query(self) -> QueryOptions:
        """The options of a query."""
        return QueryOptions(self.landing, self.out, self.shards, self.trigger)


class Notice(NamedTuple):
    """A warning to log once: its event, its sentence, and its subject as a field `name` with this value."""

    event: str
    text: str
    name: str
    value: str


@dataclass(frozen=True)
class Work:
    """The work of a command on its rules, whose results go to `out`.

    `once` computes the result without the named files and returns the published folder and the counts; `follow` starts
    the query. `unit` names results and their count, `line` formats one, `problem_texts` maps the names of further
    reported counts to their texts. `changed()` is polled between micro-batches; True restarts the query by `follow` with
    the new rules, which `running()` then returns. `claim` binds the output folder where binding it to the rules does not
    suffice. `notices` derives from the counts of a shard or group what results wait for or lack; each notice is logged
    once.
    """

    rules: Sequence[Rule]
    out: Output
    unit: str
    line: Callable[[dict[str, Any]], str]
    problem_texts: Mapping[str, str]
    once: "Callable[[SparkSession, Sequence[str]], tuple[Store, list[dict[str, Any]]]]"
    follow: "Callable[[SparkSession, OnBatch, OnFailure], StreamingQuery]"
    notices: "Callable[[dict[str, Any]], list[Notice]]" = lambda counts: []
    changed: Callable[[], bool] = lambda: False
    claim: Callable[[], None] | None = None
    running: Callable[[], Sequence[Rule]] | None = None


def choose_rule(file: Path, name: str | None, kind: type[OneRule]) -> OneRule:
    """Return the rule of a file with this name, or its only one of this kind.

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
