"""`whenabouts-cloud why-not`: explain why a rule has no result for a key around a time, and what prevented one.

Reads the landing without Spark, and only readings around the time. The explanation goes to stdout, mistakes to stderr.
Exit 0 with any explanation, 1 if the landing cannot be read, 2 on wrong usage.
"""

import json
from pathlib import Path

import click

from whenabouts_cloud.commands.options import landing_option, place, rule_name_option, time_us
from whenabouts_cloud.display_time import headline, shown
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import Rule, RuleError, load_rules

EXAMPLE = """\b
Example:
  whenabouts-cloud why-not --landing landing --rule theft.wa urn:epc:1:4711 2026-11-20T18:05:00Z
"""


@click.command("why-not", epilog=EXAMPLE)
@click.argument("key", metavar="KEY")
@click.argument("time", metavar="TIME")
@landing_option("Folder or URI the ingest lands readings in, such as s3://bucket/landing.", type=place())
@click.option(
    "--rule", "rule_file", required=True, type=click.Path(path_type=Path), help="File with streams and rules."
)
@rule_name_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def why_not_command(key: str, time: str, landing: Store, rule_file: Path, rule_name: str | None, as_json: bool) -> None:
    """Explain why a rule emitted no result for KEY around TIME, or which one it emitted.

    TIME is ISO 8601, UTC if it names no zone, or microseconds since 1970.

    \b
    Events in an order: how far the pattern came, and what is missing or in the way. The answer is about the event of KEY
                        nearest to TIME that could be an element of the pattern.
    Pairs:              the partners that come nearest to the reading of KEY nearest to TIME, with the probability of each.
    States of a group:  KEY is the group; the state of each gateway at TIME, and which part of the predicate did not hold.
    """
    from whenabouts_cloud.why_not.answer import why_not  # loads numba
    from whenabouts_cloud.why_not.around import TooManyReadingsError

    rule, at_us = _rule(rule_file, rule_name), time_us(time)
    try:
        answer = why_not(landing, rule, key, at_us)
    except (TooManyReadingsError, OSError) as error:
        raise click.ClickException(f"--landing {landing.uri}: {' '.join(str(error).split())}") from None
    if as_json:
        click.echo(json.dumps(answer.json()))
        return
    said = answer.lines()
    click.echo(f"rule {rule.name}, key {shown(key)}, around {headline(at_us, 'auto')}: {said[0]}")
    for line in said[1:]:
        click.echo(shown(line))


def _rule(file: Path, name: str | None) -> Rule:
    try:
        return load_rules(file).one(name)
    except RuleError as error:
        raise click.UsageError(str(error)) from None
    except LookupError as error:
        raise click.UsageError(f"--rule-name: {error} in {file}") from None
