"""Options of commands that run rules over a landing with Spark."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from whenabouts_cloud.commands.log_options import log_format_option, metrics_file_option

Command = TypeVar("Command", bound=Callable[..., Any])

rule_name_option = click.option("--rule-name", help="Which rule, if the file has several.")


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
    """Make a path absolute: Spark's processes may have another working folder."""
    return value.absolute()


def job_options(unit: str) -> Callable[[Command], Command]:
    """Return a decorator with the options of a job whose results are called `unit`: rule_file, and those of `Options`."""
    path = click.Path(path_type=Path)
    options = [
        click.option(
            "--landing", required=True, type=path, callback=_absolute, help="Folder the ingest lands readings in."
        ),
        click.option("--rule", "rule_file", required=True, type=path, help="File with streams and rules."),
        click.option("--out", required=True, type=path, callback=_absolute, help=f"Folder for the {unit}, as Parquet."),
        click.option(
            "--once", is_flag=True, help="Process what has landed and end, replacing an earlier result of the rule."
        ),
        click.option("--json", "as_json", is_flag=True, help=f"Print {unit} as JSON, one object a line."),
        click.option(
            "--shards",
            default=4,
            show_default=True,
            type=click.IntRange(1, 1024),
            help="Parts the work is divided into, by key or by group.",
        ),
        click.option(
            "--trigger",
            default="1s",
            show_default=True,
            type=_Seconds(),
            help="Shortest time between micro-batches.",
        ),
        click.option("--master", default="local[2]", show_default=True, help="Spark master."),
        click.option("--quiet", is_flag=True, help="Log only warnings and errors, and show no progress."),
        metrics_file_option("after each micro-batch, and every 2 s"),
        log_format_option,
    ]

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
