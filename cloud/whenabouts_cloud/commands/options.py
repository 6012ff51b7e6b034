"""Options that several commands share: landing, log, metrics, and those of jobs with Spark."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import click

from whenabouts_cloud.delivery.targets import chosen
from whenabouts_cloud.delivery.uri import TargetError
from whenabouts_cloud.frontier.times import INT64_MAX
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.language.timing import MAX_DURATION_US, UNITS_US
from whenabouts_protocol.logs import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])

log_format_option = click.option(
    "--log-format", type=click.Choice(FORMATS), default="text", show_default=True, envvar="WHENABOUTS_LOG_FORMAT",
    show_envvar=True, help="Log on stderr as lines of key=value, or as JSON.",
)  # fmt: skip


class folder(click.Path):
    """A folder; refuses a URI, which would otherwise become a folder with a strange name."""

    def __init__(self, must_exist: bool = False) -> None:
        super().__init__(exists=must_exist, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Its path."""
        if re.match(r"[a-z][a-z0-9+]+:/", str(value)):
            self.fail(
                f"found {value}, which looks like a URI, expected a folder. `ingest`, `compact`, `retain`, `why-not` and "
                "all jobs work on object stores; `landing check` and `explain` do not",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


def metrics_file_option(when: str) -> Callable[[Command], Command]:
    """Return the option --metrics-file; `when` is how often the command replaces the file, such as "every 2 s"."""
    return click.option(
        "--metrics-file", type=click.Path(path_type=Path, dir_okay=False),
        help=f"Metrics for Prometheus, replaced {when}; its name should end with .prom.",
    )  # fmt: skip


def landing_option(about: str = "Folder the ingest lands readings in.", **more: Any) -> Callable[[Command], Command]:
    """Return the required option --landing; `more` are further arguments of `click.option`."""
    defaults = {"type": folder()}
    return click.option("--landing", required=True, help=about, **{**defaults, **more})


rule_name_option = click.option("--rule-name", help="Which rule, if the file has several.")


_IN_SECONDS = {"s": 1, "m": 60, "h": 3600}


class place(click.ParamType[Store]):
    """A folder or URI. must_exist: it is wrong usage if nothing is there."""

    name = "uri"

    def __init__(self, must_exist: bool = True) -> None:
        self._must_exist = must_exist

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Store:
        """Its store."""
        if isinstance(value, Store):
            return value
        try:
            store = Store.at(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        except OSError as error:
            self.fail(f"{value} cannot be reached ({' '.join(str(error).split())[:300]})", param, ctx)
        if self._must_exist and not store.exists():
            self.fail(f"found nothing at {value}, expected a landing", param, ctx)
        if store.local is not None and store.local.is_file():
            self.fail(f"found a file at {value}, expected a folder", param, ctx)
        return store


written_landing_option = landing_option(
    "Folder or URI of the Parquet files; made when absent.", type=place(must_exist=False), envvar="WHENABOUTS_LANDING",
    show_envvar=True,
)  # fmt: skip


class seconds(click.ParamType[float]):
    """A duration in seconds, written as a number with one of these units, or alone."""

    name = "seconds"

    def __init__(self, units: tuple[str, ...] = ("s",)) -> None:
        self._units = units

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse it; at most a day."""
        text = str(value)
        unit = text[-1:] if text[-1:] in self._units else ""
        try:
            duration_s = float(text.removesuffix(unit)) * _IN_SECONDS.get(unit, 1)
        except ValueError:
            duration_s = -1.0
        if not 0 <= duration_s < 86_400:
            expected = "seconds such as 1s or 0.5s" if self._units == ("s",) else "a duration such as 30s, 10m or 1h"
            self.fail(f"found {value!r}, expected {expected}", param, ctx)
        return duration_s


class duration(click.ParamType[int]):
    """A duration in microseconds, written with a unit as in rules."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse it; at most ten years."""
        match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?) ?([a-z]+)", str(value).strip(), re.ASCII)
        if match is None or match[2] not in UNITS_US:
            self.fail(f'found {value!r}, expected a duration such as "2 s" or "500 ms"', param, ctx)
        us = Fraction(match[1]) * UNITS_US[match[2]]
        if us.denominator != 1 or us > MAX_DURATION_US:
            self.fail(f"found {value!r}, expected whole microseconds and at most ten years", param, ctx)
        return int(us)


def _targets(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Check the URIs; `parquet` is always there."""
    try:
        return tuple(dict.fromkeys(uri for uri in map(chosen, value) if uri is not None))
    except TargetError as error:
        raise click.BadParameter(str(error), ctx, param) from None


def job_options(unit: str) -> Callable[[Command], Command]:
    """Return a decorator with the options of a job whose results are called `unit`: rule_file, and those of `Options`."""
    path = click.Path(path_type=Path)
    options = [
        click.option(
            "--landing",
            required=True,
            type=place(must_exist=False),
            help="Folder or URI the ingest lands readings in, such as s3://bucket/landing.",
        ),
        click.option("--rule", "rule_file", required=True, type=path, help="File with streams and rules."),
        click.option(
            "--out", required=True, type=place(must_exist=False), help=f"Folder or URI for the {unit}, as Parquet."
        ),
        click.option(
            "--checkpoint",
            type=place(must_exist=False),
            envvar="WHENABOUTS_CHECKPOINT",
            show_envvar=True,
            help="Folder or URI for the state of Spark, which all its machines reach; by default in OUT, or for an OUT in "
            "an object store in ~/.local/state/whenabouts.",
        ),
        click.option(
            "--once", is_flag=True, help="Process what has landed and end, replacing an earlier result of the rule."
        ),
        click.option(
            "--to",
            multiple=True,
            metavar="URI",
            callback=_targets,
            help=f"Deliver all {unit} there too: postgresql, delta, mqtt, http, https, epcis or kafka; may be repeated.",
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
            type=seconds(),
            help="Shortest time between micro-batches.",
        ),
        click.option(
            "--master",
            default="local[2]",
            show_default=True,
            help="Spark: local[N], spark://HOST:PORT, yarn, k8s://..., or with --once Spark Connect, sc://HOST:PORT.",
        ),
        click.option(
            "--environment",
            type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
            help="Archive with a Python environment (bin/python), which the workers of a cluster unpack and run.",
        ),
        click.option("--quiet", is_flag=True, help="Log only warnings and errors, and show no progress."),
        metrics_file_option("after each micro-batch, and every 2 s"),
        log_format_option,
    ]

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def time_us(text: str, name: str = "TIME") -> int:
    """Microseconds since 1970 UTC.

    Raises:
        click.UsageError: it is no time; `name` is what the command calls it.
    """
    try:
        return min(max(int(text), -INT64_MAX), INT64_MAX)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"{name}: found {text!r}, expected ISO 8601 such as 2026-11-20T18:05:00Z, or microseconds since 1970"
        ) from None
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (zoned - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
