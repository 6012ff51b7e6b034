"""`whenabouts-cloud correlate`: run a correlation over a landing, once or continuously."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whenabouts_cloud.commands.options import job_options, rule_name_option
from whenabouts_cloud.jobs.output.lines import pair_text
from whenabouts_cloud.jobs.runner import run
from whenabouts_cloud.jobs.work import Notice, Options, Work, choose_rule
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import CorrelateRule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from whenabouts_cloud.jobs.output.sink import OnBatch, OnFailure

EXAMPLE = """\b
Example:
  whenabouts-cloud correlate --landing landing --rule handover.wa --out pairs
\b
with handover.wa:
  STREAM dock  FROM "dock/tags" DELAY 2 s
  STREAM shelf FROM "shelf/+"   DELAY 1 s
  RULE handover
    CORRELATE dock AS a, shelf AS b
    WHERE |@a - @b| <= 10 s OVER 80 % AND a.key = b.key
"""


@click.command("correlate", epilog=EXAMPLE)
@job_options("pairs")
@rule_name_option
def correlate(rule_file: Path, rule_name: str | None, **chosen: Any) -> None:
    """Find pairs of readings of two streams that happened close together, as defined by a rule.

    Without --once it runs as the landing grows, until Ctrl-C or SIGTERM; a restart with the same --out continues, and no
    pair is emitted twice.
    """
    rule, options = choose_rule(rule_file, rule_name, CorrelateRule), Options.chosen(**chosen)
    run([work_of(rule, options)], options)


def work_of(rule: CorrelateRule, options: Options) -> Work:
    """Make the work of a job for this rule."""

    def once(spark: "SparkSession", left_out: Sequence[str]) -> tuple[Store, list[dict[str, Any]]]:
        from whenabouts_cloud.jobs.batch import publish_whole
        from whenabouts_cloud.jobs.engines.correlate import CORRELATION

        return publish_whole(
            CORRELATION, [rule], spark, options.landing, options.out, options.shards, left_out=left_out
        )

    def follow(spark: "SparkSession", report: "OnBatch", failed: "OnFailure") -> "StreamingQuery":
        from whenabouts_cloud.jobs.engines.correlate import CORRELATION
        from whenabouts_cloud.jobs.streaming import start_query

        return start_query(CORRELATION, {0: rule}, spark, options.query, report, failed=failed)

    return Work([rule], options.out, "pairs", pair_text, _PROBLEM_TEXTS, once, follow, _notices)


def _notices(counts: dict[str, Any]) -> list[Notice]:
    if not counts.get("healed"):
        return []
    text = (
        f"Rule {counts['rule']} had refused readings up to a time after its frontier, because of stamps from the future; "
        "it takes them again. Pairs of readings refused until now are missing: to find them, use --once and another --out"
    )
    return [Notice("state.healed", text, "rule", counts["rule"])]


_PROBLEM_TEXTS = {
    "unmatched": "unmatched",
    "late": "late",
    "side_output": "in the side output (OUT/_late)",
    "expired": "too late to be joined",
    "beyond_length": "longer than LENGTH",
    "overflow": "evicted for lack of room",
    "ahead": "evicted for lack of room with stamps from the future",
    "healed": "times the refusal of readings was lowered to the frontier",
}
