"""`whenabouts-cloud plot`: the dashboard's timeline as a picture or a table in a file, without a server."""

from pathlib import Path

import click

from whenabouts_cloud.commands.options import place, time_us
from whenabouts_cloud.dashboard.answers.timeline_answer import Asked, timeline
from whenabouts_cloud.dashboard.data.landed import LandedIndex
from whenabouts_cloud.dashboard.picture.timeline_picture import THEMES
from whenabouts_cloud.dashboard.picture.view_file import MEDIA_TYPES, view_file
from whenabouts_cloud.dashboard.results.result_index import ResultIndex
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.progress import progress

MARGIN = 50  # of all that landed, a fiftieth on each side
SLICE_S = 0.5

EXAMPLE = """\b
Example:
  whenabouts-cloud plot --landing landing --results results --from 2026-11-26T13:20Z --to 2026-11-26T13:21Z timeline.svg
"""


@click.command("plot", epilog=EXAMPLE)
@click.option(
    "--landing", required=True, type=place(must_exist=False), help="Folder or URI the ingest lands readings in."
)
@click.option(
    "--results", multiple=True, type=place(must_exist=False), help="Folder or URI of results; may be repeated."
)
@click.option(
    "--from", "begin", metavar="TIME", help="ISO 8601, or microseconds since 1970. Without it: the first reading."
)
@click.option("--to", "end", metavar="TIME", help="As --from. Without it: the last reading.")
@click.option("--by", type=click.Choice(("reader", "tag")), default="reader", show_default=True, help="What a lane is.")
@click.option("--search", default="", help="Only lanes whose name contains this.")
@click.option("--rule-name", "rules", multiple=True, help="Only results of this rule; may be repeated.")
@click.option("--lanes", default=50, show_default=True, type=click.IntRange(1, 500), help="Lanes at most.")
@click.option("--width", default=1200, show_default=True, type=click.IntRange(300, 4000), help="Pixels of a picture.")
@click.option("--height", default=0, type=click.IntRange(0, 8000), help="Pixels of a picture; 0: as its lanes need.")
@click.option(
    "--theme", type=click.Choice(tuple(THEMES)), default="light", show_default=True, help="Colours of a picture."
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, writable=True))
def plot(
    landing: Store,
    results: tuple[Store, ...],
    begin: str | None,
    end: str | None,
    by: str,
    search: str,
    rules: tuple[str, ...],
    lanes: int,
    width: int,
    height: int,
    theme: str,
    file: Path,
) -> None:
    """Write the timeline of a landing to FILE: .svg or .png for a picture, .csv or .parquet for its data."""
    kind = file.suffix.removeprefix(".").lower()
    if kind not in MEDIA_TYPES:
        raise click.BadParameter(
            f"found {file.name}, expected a name that ends in .svg, .png, .csv or .parquet", param_hint="FILE"
        )
    landed, found = _read(landing, results)
    from_us, to_us = _times(landed, landing, begin, end)
    asked = Asked(from_us, to_us, max(1, width - 222), by, search, 0, lanes, rules or None)
    answer = timeline(landed, found, asked)
    if answer["refused"]:
        raise click.ClickException(answer["refused"])
    content = view_file(answer, kind, width, height, theme)
    try:
        file.write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"{file}: cannot be written ({error.strerror})") from None
    more = f" of {answer['lanes_total']}; --lanes shows more" if answer["lanes_total"] > len(answer["lanes"]) else ""
    click.echo(f"{file}: {len(content)} bytes, {len(answer['lanes'])} lanes{more}, {answer['arcs']['total']} results")


def _read(landing: Store, results: tuple[Store, ...]) -> tuple[LandedIndex, ResultIndex]:
    """Everything that there is now."""
    landed, found = LandedIndex(landing), ResultIndex(results)
    if not landing.exists():
        raise click.BadParameter(
            f"found nothing at {landing.uri}, expected the folder of readings", param_hint="--landing"
        )
    done = 0
    with progress("landing", 100, "%") as advance:
        while landed.follow(SLICE_S):
            advance((now := int(100 * landed.summary().counted)) - done)
            done = now
        advance(100 - done)
    while found.follow(SLICE_S):
        pass
    for problem in (*landed.summary().problems, *found.problems()):
        click.echo(f"warning: {problem}", err=True)
    return landed, found


def _times(landed: LandedIndex, landing: Store, begin: str | None, end: str | None) -> tuple[int, int]:
    seen = landed.summary()
    if seen.first_us is None or seen.last_us is None:
        raise click.ClickException(f"{landing.uri}: found no readings, expected some to draw")
    margin = max(1000, (seen.last_us - seen.first_us) // MARGIN)
    from_us = seen.first_us - margin if begin is None else time_us(begin, "--from")
    to_us = seen.last_us + margin if end is None else time_us(end, "--to")
    if from_us >= to_us:
        raise click.UsageError(f"--to: found {end or to_us}, expected a time after --from, {begin or from_us}")
    return from_us, to_us
