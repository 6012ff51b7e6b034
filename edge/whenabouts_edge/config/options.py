"""Options that the commands share, and the loading of the configuration."""

import sys
from pathlib import Path

import click

from whenabouts_edge.config import load as configuration
from whenabouts_edge.config.settings import Config

config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    required=True,
    envvar="WHENABOUTS_EDGE_CONFIG",
    show_envvar=True,
    help="TOML file of this gateway.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, for machines.")


def load(config_file: Path) -> Config:
    """The configuration; if it has mistakes, prints them and ends the program with exit code 2."""
    try:
        return configuration.load(config_file)
    except configuration.ConfigError as error:
        for mistake in error.mistakes:
            click.echo(mistake, err=True)
        sys.exit(2)
