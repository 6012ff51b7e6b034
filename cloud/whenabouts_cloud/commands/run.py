"""`whenabouts-cloud run`: all rules of a file over a landing, in one Spark (`jobs.runner`)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from whenabouts_cloud.commands import cep, correlate, latwin
from whenabouts_cloud.commands.job_options import job_options
from whenabouts_cloud.jobs.runner import run
from whenabouts_cloud.jobs.work import Options, Work
from whenabouts_cloud.rules import RuleError, RuleFile, load_rules

EXAMPLE = """\b
Example:
  whenabouts-cloud run --landing landing --rule shop.wa --out results
\b
with shop.wa:
  STREAM dock FROM "dock/tags" DELAY 2 s
  STREAM till FROM "till/tags" DELAY 2 s
  STREAM door FROM "door/tags" DELAY 2 s
  RULE handover
    CORRELATE dock AS a, door AS b
    WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key
  RULE unpaid
    SEQ(dock a, !till c, door e) WITHIN 1 h PER key
\b
writes results/pairs/handover and results/matches.
"""


@click.command("run", epilog=EXAMPLE)
@job_options("results")
def run_all(rule_file: Path, **chosen: Any) -> None:
    """Run all rules of a file together: one Spark starts faster and takes less memory than one for each.

    Results go to OUT/pairs/RULE of a correlation, OUT/verdicts/RULE of a rule about a group, OUT/matches and OUT/counts of
    all rules about events in an order; a line begins with the name of its rule, and as JSON it has it in "rule". Without
    --once it goes on as the landing grows, until Ctrl-C or SIGTERM; started again with the same --out it goes on where it
    was. The file is read at the start.
    """
    options = Options(**chosen)
    try:
        rules = load_rules(rule_file)
    except RuleError as error:
        raise click.UsageError(str(error)) from None
    if not rules.rules:
        raise click.UsageError(f"{rule_file}: found no RULE, expected one")
    cep.check_counts(rule_file, rules.cep_rules, options)
    run(_works(rules, options), options, named=True)


def _works(rules: RuleFile, options: Options) -> list[Work]:
    def to(*folder: str) -> Options:
        return replace(options, out=options.out.joinpath(*folder))

    works = [correlate.work_of(rule, to("pairs", rule.name)) for rule in rules.correlate_rules]
    works += [latwin.work_of(rule, to("verdicts", rule.name)) for rule in rules.latwin_rules]
    matched = [rule for rule in rules.cep_rules if not rule.count]
    counted = [rule for rule in rules.cep_rules if rule.count]
    works += [cep.work_of(some, to(name)) for name, some in (("matches", matched), ("counts", counted)) if some]
    return works
