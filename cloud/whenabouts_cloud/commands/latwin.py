"""`whenabouts-cloud latwin`: detect global states of a group of gateways in a landing, once or continuously."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from whenabouts_cloud.commands.options import job_options, rule_name_option
from whenabouts_cloud.jobs.output.lines import verdict_text
from whenabouts_cloud.jobs.runner import run
from whenabouts_cloud.jobs.work import Notice, Options, Work, choose_rule
from whenabouts_cloud.landing.schema import SCHEMA
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.rules import LatwinRule
from whenabouts_protocol.group_state import KIND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from whenabouts_cloud.jobs.output.sink import OnBatch, OnFailure

EXAMPLE = """\b
Example:
  whenabouts-cloud latwin --landing landing --rule mute.wa --out verdicts
\b
with mute.wa:
  STREAM phone     FROM "phone/state"     DELAY 5 s
  STREAM rfid      FROM "rfid/state"      DELAY 5 s
  STREAM projector FROM "projector/state" DELAY 5 s
  RULE mute
    DEFINITELY phone.room = "meeting" AND rfid.speaker AND projector.on
    WINDOW 4 IN GROUP office
"""


@click.command("latwin", epilog=EXAMPLE)
@job_options("verdicts")
@rule_name_option
@click.option(
    "--draw",
    type=click.Path(path_type=Path),
    help="At the end draw the global states in the windows at the latest verdict into this SVG file.",
)
def latwin(rule_file: Path, rule_name: str | None, draw: Path | None, **chosen: Any) -> None:
    """Find when the gateways of a group possibly or definitely were in states together, as defined by a rule.

    Without --once it runs as the landing grows, until Ctrl-C or SIGTERM; a restart with the same --out continues, and no
    verdict is emitted twice. With POSSIBLY ... EAGER one may be retracted: a row with status "retracted".
    """
    rule, options = choose_rule(rule_file, rule_name, LatwinRule), Options.chosen(**chosen)
    run([work_of(rule, options)], options)
    if draw is not None:
        _draw(rule, options, draw)


def _draw(rule: LatwinRule, options: Options, file: Path) -> None:
    """Draw the windows at the latest verdict that is not retracted, from the landing."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    from whenabouts_cloud.latwin.picture.picture import NothingToDrawError, picture
    from whenabouts_cloud.latwin.shard.report import COLUMNS

    system, place = options.landing.place("")
    landing = ds.dataset(
        place.rstrip("/"), schema=SCHEMA, format="parquet", filesystem=system, exclude_invalid_files=False
    )
    readings = landing.to_table(columns=[*COLUMNS], filter=pc.field("kind") == KIND)
    emitted: dict[str, dict[str, Any]] = {}
    system, place = options.out.store.place("")
    for row in ds.dataset(place.rstrip("/"), format="parquet", filesystem=system).to_table().to_pylist():
        emitted.setdefault(row["result_id"], row)
        if row["status"] == "retracted":
            emitted.pop(row["result_id"])
    latest = max(emitted.values(), key=lambda row: (row["t_max"], row["result_id"]), default=None)
    try:
        file.write_text(picture(rule, readings, latest), encoding="utf-8")
    except (NothingToDrawError, OSError) as error:
        raise click.ClickException(f"--draw {file}: cannot draw ({error})") from None


def work_of(rule: LatwinRule, options: Options) -> Work:
    """Make the work of a job for this rule."""

    def once(spark: "SparkSession", left_out: Sequence[str]) -> tuple[Store, list[dict[str, Any]]]:
        from whenabouts_cloud.jobs.batch import publish_whole
        from whenabouts_cloud.jobs.engines.latwin import LATWIN

        return publish_whole(LATWIN, [rule], spark, options.landing, options.out, options.shards, left_out=left_out)

    def follow(spark: "SparkSession", report: "OnBatch", failed: "OnFailure") -> "StreamingQuery":
        from whenabouts_cloud.jobs.engines.latwin import LATWIN
        from whenabouts_cloud.jobs.streaming import start_query

        return start_query(LATWIN, {0: rule}, spark, options.query, report, failed=failed)

    return Work([rule], options.out, "verdicts", verdict_text, _PROBLEM_TEXTS, once, follow, _notices)


def _notices(counts: dict[str, Any]) -> list[Notice]:
    text = "Group {} has sent no state yet; results that need it wait"
    missing = [Notice("group.waiting", text.format(name), "group", name) for name in counts["unheard"]]
    return [*missing, *(Notice("group.mistake", f"Mistake: {text}", "mistake", text) for text in counts["mistakes"])]


_PROBLEM_TEXTS = {
    "retracted": "retracted",
    "late": "late",
    "given_up": "states given up as lost",
    "ambiguous": "from a second gateway where one is expected",
    "wrong": "invalid as states",
    "old_view": "of an ended view",
    "foreign": "of gateways that are no members",
    "ahead": "evicted for lack of room with stamps from the future",
    "beyond_time": "with a stamp out of range",
    "forced": "processed early for lack of room",
    "early_full": "steps in which verdicts were not emitted early, for lack of room",
    "choices_forgotten": "choices of runs evicted for lack of room",
    "forgotten": "left waiting in an ended view",
}
