"""`whenabouts-cloud compact` and `retain`: keep a landing small over years."""

import json
import sys
import time
from datetime import UTC, datetime

import click

from whenabouts_cloud.commands.options import place, seconds
from whenabouts_cloud.landing.compaction import Done, compact
from whenabouts_cloud.landing.retention import UnknownNeedError, retain
from whenabouts_cloud.landing.store import Store

landing_uri = click.option("--landing", required=True, type=place(), help="Folder or URI of the landing.")


@click.command("compact")
@landing_uri
@click.option(
    "--grace", default="1h", show_default=True, type=seconds(("s", "m", "h")),
    help="How long originals stay beside the file that has replaced them, for jobs that are reading them.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def compact_landing(landing: Store, grace: float, as_json: bool) -> None:
    """Merge the files of closed hours into few large ones, sorted by stream and time. Run it once an hour or a day.

    Jobs and ingests may run meanwhile, and a run that was killed is continued by the next one. Programs that read the folder
    as plain Parquet see the readings of merged hours twice until the grace is over; LandingSource sees them once.

    \b
    Example:  whenabouts-cloud compact --landing ./landing
    """
    count = [0]

    def advance(files: int) -> None:
        count[0] += files
        if sys.stderr.isatty():
            click.echo(f"\r{count[0]} files merged", err=True, nl=False)

    try:
        done = compact(landing, time.time_ns(), int(grace * 1e9), advance)
    except OSError as error:
        raise click.ClickException(
            f"landing {landing.uri}: {error}; what was merged so far holds: run it again to go on"
        ) from None
    for problem in done.unreadable:
        click.echo(f"left as it is: {problem}. Run: whenabouts-cloud landing check --landing {landing.uri}", err=True)
    for part in done.busy:
        click.echo(f"left to another run, which is at work there: {landing.at_folder(part).uri}", err=True)
    click.echo(json.dumps(done._asdict()) if as_json else _text(done))


def _text(done: Done) -> str:
    return (
        f"{done.merged} files with {done.readings} readings merged into {done.into}; "
        f"{done.deleted} originals of earlier merges deleted"
    )


@click.command("retain")
@landing_uri
@click.option("--days", required=True, type=click.IntRange(min=1), help="Hours that ended longer ago are deleted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def retain_landing(landing: Store, days: int, as_json: bool) -> None:
    """Delete old hours of a landing, by the time of arrival. There is no way back.

    A job that has not read them yet never will. The last hour stays, and what the ingest needs for a restart.
    If it is not known what that is, because a file is damaged, nothing of that ingest is deleted.

    \b
    Example:  whenabouts-cloud retain --landing ./landing --days 400
    """
    unknown = ""
    try:
        deleted = retain(landing, datetime.now(UTC), days)
    except OSError as error:
        raise click.ClickException(f"landing {landing.uri}: {error}; run it again to go on") from None
    except UnknownNeedError as error:
        deleted, unknown = error.deleted, str(error)
    click.echo(
        json.dumps({"deleted": deleted}) if as_json else "\n".join([*deleted, f"{len(deleted)} folders deleted"])
    )
    if unknown:
        raise click.ClickException(f"landing {landing.uri}: {unknown}")
