"""`whenabouts-cloud run`: run all rules of a file over a landing in one Spark session (`jobs.runner`)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from whenabouts_cloud.commands import cep, correlate, latwin
from whenabouts_cloud.commands.options import job_options
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
    """Run all rules of a file together: one Spark session starts faster and takes less memory than one for each rule.

    Results of a correlation go to OUT/pairs/RULE, of a rule about a group to OUT/verdicts/RULE, of all rules about events in
    an order to OUT/matches and OUT/counts. A line begins with the name of its rule; in JSON the key is "rule". Without
    --once it runs as the landing grows, until Ctrl-C or SIGTERM; a restart with the same --out continues. The file is read
    at the start only.
    """
    options = Options.chosen(**chosen)
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
        return replace(options, out=options.out.below(*folder))

    works = [correlate.work_of(rule, to("pairs", rule.name)) for rule in rules.correlate_rules]
    works += [latwin.work_of(rule, to("verdicts", rule.name)) for rule in rules.latwin_rules]
    matched = [rule for rule in rules.cep_rules if not rule.count]
    counted = [rule for rule in rules.cep_rules if rule.count]
    works += [cep.work_of(some, to(name)) for name, some in (("matches", matched), ("counts", counted)) if some]
    return works
