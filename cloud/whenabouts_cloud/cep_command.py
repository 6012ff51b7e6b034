"""`whenabouts-cloud cep`: find events in an order over a landing, once or for as long as it grows (`job`)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whenabouts_cloud.cep.text import count_text, match_text
from whenabouts_cloud.job import Options, Work, choose_rule, job_options, run
from whenabouts_cloud.rules import CepRule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from whenabouts_cloud.spark.sink import Report

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
def cep(rule_file: Path, rule_name: str | None, **chosen: Any) -> None:
    """Find readings that happened in an order, as a rule says, and what should have happened but did not.

    Without --once it goes on as the landing grows, until Ctrl-C or SIGTERM; started again with the same --out it goes on
    where it was, and no match comes twice. With ON ARRIVAL a match may be taken back: a row with status "retracted". With
    COUNT in the rule the matches of each key are counted instead of told.
    """
    rule, options = choose_rule(rule_file, rule_name, CepRule), Options(**chosen)
    if rule.count and rule.count.every_us is None and not options.once:
        raise click.UsageError(
            f"{rule_file}: found COUNT without EVERY in rule {rule.name}, expected --once, or EVERY as in COUNT EVERY 1 h: "
            "as long as readings come no count of all of them is final"
        )
    run(rule, _work(rule, options), options)


def _work(rule: CepRule, options: Options) -> Work:
    def once(spark: "SparkSession") -> tuple[Path, list[dict[str, Any]]]:
        from whenabouts_cloud.spark.cep_batch import detect_packed, read_landing
        from whenabouts_cloud.spark.sink import COUNTS, MATCHES, ResultSink

        landing = read_landing(spark, str(options.landing))
        return ResultSink(COUNTS if rule.count else MATCHES, options.out).replace(
            detect_packed(rule, landing, options.shards)
        )

    def follow(spark: "SparkSession", report: "Report") -> "StreamingQuery":
        from whenabouts_cloud.spark.cep_streaming import start_query

        return start_query(rule, spark, options.landing, options.out, options.shards, options.trigger, report)

    unit, line = ("counts", count_text) if rule.count else ("matches", match_text)
    return Work("cep", unit, line, _TROUBLES, once, follow, _waits)


def _waits(counts: dict[str, Any]) -> list[str]:
    unheard = [
        f"Stream {name}: no gateway has promised anything yet; what needs it waits"
        for name in counts.get("unheard", ())
    ]
    full = [f"{counts['full']}: what comes is set aside in OUT/_late"] if counts.get("full") else []
    return (
        full
        + unheard
        + [
            f"Gateway {name} stamps without a group's clock: its readings are in order among themselves only"
            for name in counts["alone_at"]
        ]
    )


_TROUBLES = {
    "retracted": "retracted",
    "late": "late (set aside in OUT/_late)",
    "beyond_time": "with a stamp that is no time",
    "beyond_length": "longer than LENGTH",
    "alone": "without a group's clock",
    "middles": "taken at the middles of their stamps",
    "limit": "set aside at a limit of the engine",
}
