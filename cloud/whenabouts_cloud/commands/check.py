"""`whenabouts-cloud check`: report every mistake in a rule file.

The result goes to stdout, mistakes to stderr; with --json everything is one object on stdout. Exit 0 if the file is valid, 2
if it has mistakes.
"""

from pathlib import Path

import click

from whenabouts_cloud.commands.rule_file import JSON, RULES, load_or_exit, print_json
from whenabouts_cloud.rules.explain_text import counted


@click.command("check", epilog="\b\nExample:\n  whenabouts-cloud check rules.wa")
@RULES
@JSON
def check(rules: Path, as_json: bool) -> None:
    """Check a whole rule file: report every mistake at once, with its line, its column and the expected text."""
    rule_file = load_or_exit(rules, as_json)
    names = {"streams": [s.name for s in rule_file.streams], "rules": [r.name for r in rule_file.rules]}
    if as_json:
        print_json({"file": str(rules), "ok": True, **names, "mistakes": []})
    else:
        click.echo(
            f"{rules}: fine, {counted(len(rule_file.streams), 'stream')} and {counted(len(rule_file.rules), 'rule')}"
        )
