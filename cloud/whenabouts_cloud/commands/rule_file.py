"""Loads a rule file for a command; exits with every mistake in it."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from whenabouts_cloud.rules import RuleError, RuleFile, load_rules

RULES = click.argument("rules", metavar="RULES", type=click.Path(path_type=Path))
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def load_or_exit(file: Path, as_json: bool) -> RuleFile:
    """Return the streams and rules of a file; with mistakes exit 2 and print all to stderr, or as JSON to stdout."""
    try:
        return load_rules(file)
    except RuleError as error:
        exit_with_mistakes(file, [dataclasses.asdict(m) for m in error.mistakes], str(error), as_json)


def exit_with_mistakes(file: Path, mistakes: list[dict[str, Any]], text: str, as_json: bool) -> NoReturn:
    """Exit 2; `text` is for people, `mistakes` for programs."""
    if as_json:
        print_json({"file": str(file), "ok": False, "mistakes": mistakes})
    else:
        click.echo(text, err=True)
    sys.exit(2)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on stdout."""
    click.echo(json.dumps(value))
