"""The option that says how a command writes its log."""

import click

from whenabouts_protocol.logs import FORMATS

log_format_option = click.option(
    "--log-format", type=click.Choice(FORMATS), default="text", show_default=True, envvar="WHENABOUTS_LOG_FORMAT",
    show_envvar=True, help="Log on stderr as lines of key=value, or as JSON.",
)  # fmt: skip
