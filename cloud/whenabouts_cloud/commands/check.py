"""`whenabouts-cloud check`: a rule file as a whole, with every mistake in it.

The result goes to stdout, mistakes to stderr; with --json everything is one object on stdout. Exit 0 when all is well, 2
when the file has mistakes.
"""

from pathlib import Path

import click

from whenabouts_cloud.commands.rule_file import JSON, RULES, load_or_exit, print_json
from whenabouts_cloud.rules.explain_text import counted


@click.command("check", epilog="\b\nExample:\n  whenabouts-cloud check rules.wa")
@RULES
@JSON
def check(rules: Path, as_json: bool) -> None:
    """Check a rule file as a whole: every mistake at once, with its line, column and what was expected there."""
    found = load_or_exit(rules, as_json)
    names = {"streams": [s.name for s in found.streams], "rules": [r.name for r in found.rules]}
    if as_json:
        print_json({"file": str(rules), "ok": True, **names, "mistakes": []})
    else:
        click.echo(f"{rules}: fine, {counted(len(found.streams), 'stream')} and {counted(len(found.rules), 'rule')}")
