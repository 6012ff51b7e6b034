"""`whenabouts-cloud cep`: find events in an order in a landing, once or continuously (`jobs.rule_follower`)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whenabouts_cloud.commands.options import job_options, rule_name_option
from whenabouts_cloud.jobs.output.lines import count_text, match_text
from whenabouts_cloud.jobs.rule_follower import RuleFollower, rules_of
from whenabouts_cloud.jobs.runner import run
from whenabouts_cloud.jobs.work import Notice, Options, Work, choose_rule
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import CepRule
from whenabouts_cloud.rules.current import RunningRules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from whenabouts_cloud.jobs.output.sink import OnBatch, OnFailure

EXAMPLE = """\b
Example:
  whenabouts-cloud cep --landing landing --rule unpaid.wa --out matches
\b
with unpaid.wa:
  STREAM shelf FROM "shelf/+"   DELAY 1 s
  STREAM till  FROM "till/tags" DELAY 2 s
  STREAM exit  FROM "exit/tags" DELAY 2 s
  RULE unpaid
    SEQ(shelf a, !till c, exit e) WITHIN 1 h PER key
"""


@click.command("cep", epilog=EXAMPLE)
@job_options("matches")
@rule_name_option
def cep(rule_file: Path, rule_name: str | None, **chosen: Any) -> None:
    """Find readings that happened in the order a rule asks for, and expected readings that are missing.

    Without --once it runs as the landing grows, until Ctrl-C or SIGTERM; a restart with the same --out continues, and no
    match is emitted twice. With ON ARRIVAL a match may be retracted: a row with status "retracted". With COUNT in the rule
    the matches of each key are counted instead of emitted.

    Without --rule-name all rules of the file about events in an order run, and the file may change meanwhile: an added rule
    sees the readings from then on, the state of a removed rule is deleted, a changed rule is removed and added. Mistakes in
    the file are logged, and the running rules stay.
    """
    options = Options.chosen(**chosen)
    rules = rules_of(rule_file) if rule_name is None else []
    rules = rules or [choose_rule(rule_file, rule_name, CepRule)]  # raises with what the file holds instead
    check_counts(rule_file, rules, options)
    following = None
    if rule_name is None:
        following = RuleFollower(rule_file, options.out, rules, options.shards)
    run([work_of(rules, options, following)], options)


def check_counts(rule_file: Path, rules: Sequence[CepRule], options: Options) -> None:
    """Refuse a count that would never be final.

    Raises:
        click.UsageError: names the rules and the alternatives.
    """
    forever = [rule.name for rule in rules if rule.count and rule.count.every_us is None]
    if forever and not options.once:
        raise click.UsageError(
            f"{rule_file}: found COUNT without EVERY in rule {', '.join(forever)}, expected --once, or EVERY as in COUNT "
            "EVERY 1 h: a count of all readings is never final while readings arrive"
        )


def work_of(rules: list[CepRule], options: Options, following: RuleFollower | None = None) -> Work:
    """Make the work of a job: rules that all have COUNT or all have not, and the file that changes them."""
    counts = any(rule.count for rule in rules)

    def once(spark: "SparkSession", left_out: Sequence[str]) -> tuple[Store, list[dict[str, Any]]]:
        from whenabouts_cloud.jobs.batch import publish_whole
        from whenabouts_cloud.jobs.engines.cep import CEP

        return publish_whole(CEP, rules, spark, options.landing, options.out, options.shards, left_out=left_out)

    def follow(spark: "SparkSession", report: "OnBatch", failed: "OnFailure") -> "StreamingQuery":
        from whenabouts_cloud.jobs.engines.cep import CEP
        from whenabouts_cloud.jobs.streaming import start_query

        running = RunningRules.of(rules) if following is None else following.adopt()
        return start_query(CEP, running.rules, spark, options.query, report, running.gone, failed)

    def line(result: dict[str, Any]) -> str:
        several = following is not None and len(following.running.rules) > 1
        text = count_text(result) if counts else match_text(result)
        return f"{result['rule']}  {text}" if several else text

    work = Work(rules, options.out, "counts" if counts else "matches", line, _PROBLEM_TEXTS, once, follow, _notices)
    if following is None:
        return work
    running = following
    return replace(
        work, changed=running.changed, claim=running.claim, running=lambda: list(running.running.rules.values())
    )


def _notices(counts: dict[str, Any]) -> list[Notice]:
    text = f"{counts.get('full')}: further input goes to the side output in OUT/_late"
    full = [Notice("limit.reached", text, "limit", counts["full"])] if counts.get("full") else []
    text = "Stream {}: no gateway has sent a watermark yet; results that need it wait"
    unheard = [Notice("stream.waiting", text.format(name), "stream", name) for name in counts.get("unheard", ())]
    text = "Gateway {} stamps without a group's clock: its readings are ordered only among themselves"
    ungrouped = [Notice("gateway.ungrouped", text.format(name), "gateway", name) for name in counts["ungrouped_at"]]
    return full + unheard + ungrouped


_PROBLEM_TEXTS = {
    "retracted": "retracted",
    "late": "late",
    "side_output": "in the side output (OUT/_late)",
    "late_added": "matches that late readings would have added (OUT/_late_effects)",
    "late_removed": "matches that late readings would have removed (OUT/_late_effects)",
    "beyond_time": "with a stamp out of range",
    "beyond_length": "longer than LENGTH",
    "ungrouped": "without a group's clock",
    "middles": "counted at the middles of their stamps",
    "limit": "in the side output at a limit of the engine",
}
