"""What commands share that run rules over a landing with Spark: their options, and what a command does with its rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from whenabouts_cloud.rules import CepRule, CorrelateRule, LatwinRule, Rule, RuleError, load_rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from whenabouts_cloud.jobs.output.sink import Report

Command = TypeVar("Command", bound=Callable[..., Any])
OneRule = TypeVar("OneRule", CorrelateRule, CepRule, LatwinRule)

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


def _absolute(ctx: click.Context, param: click.Parameter, value: Path) -> Path:
    """Spark's processes need not have the working folder of this one."""
    return value.absolute()


def job_options(unit: str) -> Callable[[Command], Command]:
    """The options of a command whose results are called so, as parameters of `Options` and rule_file."""
    path = click.Path(path_type=Path)
    options = [
        click.option(
            "--landing", required=True, type=path, callback=_absolute, help="Folder the ingest lands readings in."
        ),
        click.option("--rule", "rule_file", required=True, type=path, help="File with streams and rules."),
        click.option("--out", required=True, type=path, callback=_absolute, help=f"Folder for the {unit}, as Parquet."),
        click.option(
            "--once", is_flag=True, help="Work on what has landed and end, replacing an earlier result of the rule."
        ),
        click.option("--json", "as_json", is_flag=True, help=f"Print {unit} as JSON, one object a line."),
        click.option(
            "--shards",
            default=4,
            show_default=True,
            type=click.IntRange(1, 1024),
            help="Parts the work is divided in, by key or by group.",
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
    """What a command does with its rules, whose results go to `out`.

    `once` computes the result and says in which folder it is published and what was counted; `follow` starts the query.
    `unit` is what results are called and counted as, `line` shows one, `troubles` are further counts worth telling, with
    their text. `changed` is asked between micro-batches whether the query is to be started anew, by `follow`, because its
    rules are others, which then are `running`; `claim` binds the output folder, where the rules alone do not. `waits` finds
    in what a shard or group counted what results wait for or do without, as lines to tell once.
    """

    rules: Sequence[Rule]
    out: Path
    unit: str
    line: Callable[[dict[str, Any]], str]
    troubles: Mapping[str, str]
    once: "Callable[[SparkSession], tuple[Path, list[dict[str, Any]]]]"
    follow: "Callable[[SparkSession, Report], StreamingQuery]"
    waits: Callable[[dict[str, Any]], list[str]] = lambda counts: []
    changed: Callable[[], bool] = lambda: False
    claim: Callable[[], None] | None = None
    running: Callable[[], Sequence[Rule]] | None = None


rule_name_option = click.option("--rule-name", help="Which rule, if the file has several.")


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
