"""What commands share that run rules over a landing with Spark: what the user chose, and what is done with the rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from whenabouts_cloud.rules import CepRule, CorrelateRule, LatwinRule, Rule, RuleError, load_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from whenabouts_cloud.jobs.output.sink import Report

OneRule = TypeVar("OneRule", CorrelateRule, CepRule, LatwinRule)

_COMMANDS = {
    CorrelateRule: "whenabouts-cloud correlate",
    CepRule: "whenabouts-cloud cep",
    LatwinRule: "whenabouts-cloud latwin",
}


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
    log_format: str
    metrics_file: Path | None


class Notice(NamedTuple):
    """A warning to log once: its event, its sentence, and what it is about as a field of this name and value."""

    event: str
    text: str
    name: str
    value: str


@dataclass(frozen=True)
class Work:
    """What a command does with its rules, whose results go to `out`.

    `once` computes the result and says in which folder it is published and what was counted; `follow` starts the query.
    `unit` is what results are called and counted as, `line` shows one, `troubles` are further counts worth telling, with
    their text by the name of the count. `changed` is asked between micro-batches whether the query is to be started anew,
    by `follow`, because its rules are others, which then are `running`; `claim` binds the output folder, where the rules
    alone do not. `notices` finds in what a shard or group counted what results wait for or do without; each is logged once.
    """

    rules: Sequence[Rule]
    out: Path
    unit: str
    line: Callable[[dict[str, Any]], str]
    troubles: Mapping[str, str]
    once: "Callable[[SparkSession], tuple[Path, list[dict[str, Any]]]]"
    follow: "Callable[[SparkSession, Report], StreamingQuery]"
    notices: "Callable[[dict[str, Any]], list[Notice]]" = lambda counts: []
    changed: Callable[[], bool] = lambda: False
    claim: Callable[[], None] | None = None
    running: Callable[[], Sequence[Rule]] | None = None


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
