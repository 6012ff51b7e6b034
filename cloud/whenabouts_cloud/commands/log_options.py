"""Options for the log and the metrics of a command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from whenabouts_protocol.logs import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])

log_format_option = click.option(
    "--log-format", type=click.Choice(FORMATS), default="text", show_default=True, envvar="WHENABOUTS_LOG_FORMAT",
    show_envvar=True, help="Log on stderr as lines of key=value, or as JSON.",
)  # fmt: skip


def metrics_file_option(when: str) -> Callable[[Command], Command]:
    """Return the option --metrics-file; `when` is how often the command replaces the file, such as "every 2 s"."""
    return click.option(
        "--metrics-file", type=click.Path(path_type=Path, dir_okay=False),
        help=f"Metrics for Prometheus, replaced {when}; its name should end with .prom.",
    )  # fmt: skip
