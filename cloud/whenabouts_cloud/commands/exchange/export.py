"""`whenabouts-cloud export`: readings and results in the formats of others."""

import time
from collections.abc import Iterable

import click

from whenabouts_cloud.commands.exchange.exported_events import Export
from whenabouts_cloud.commands.exchange.exported_folder import add
from whenabouts_cloud.commands.options import place, time_us
from whenabouts_cloud.delivery.capturing.result_events import Wording
from whenabouts_cloud.epcis.document import EVENTS, pieces
from whenabouts_cloud.epcis.epcis_events import Event
from whenabouts_cloud.epcis.uris import BASE, Names
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.progress import progress

EXAMPLE = """\b
Examples:
  whenabouts-cloud export epcis --landing landing --stream 'dock/presence' --out documents
  whenabouts-cloud export epcis --results results --rule-name handover > handover.json
"""


@click.group("export")
def exports() -> None:
    """Write readings and results in the formats of others."""


@exports.command("epcis", epilog=EXAMPLE)
@click.option(
    "--landing", type=place(), help="Folder or URI of readings: they are exported, or give results their keys."
)
@click.option("--results", multiple=True, type=place(), help="Folder or URI of pairs and matches; may be repeated.")
@click.option("--out", type=place(must_exist=False), help="Folder or URI for the documents; without it stdout.")
@click.option("--rule-name", "rules", multiple=True, help="Only results of this rule; may be repeated.")
@click.option(
    "--stream", "streams", multiple=True, help="Only readings of these streams, as in rules: dock/#; repeatable."
)
@click.option(
    "--from", "begin", metavar="TIME", help="Only what may have happened from then on: ISO 8601, or microseconds."
)
@click.option("--to", "end", metavar="TIME", help="Only what may have happened until then.")
@click.option(
    "--events",
    default=EVENTS,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="Events in a document of --out.",
)
@click.option(
    "--loads", multiple=True, metavar="RULE", help="A rule whose first object contains the others; repeatable."
)
@click.option("--links", is_flag=True, help="GS1 Digital Links instead of URNs.")
@click.option("--base", default=BASE, show_default=True, help="Begins names that GS1 does not give.")
def epcis(
    landing: Store | None,
    results: tuple[Store, ...],
    out: Store | None,
    rules: tuple[str, ...],
    streams: tuple[str, ...],
    begin: str | None,
    end: str | None,
    events: int,
    loads: tuple[str, ...],
    links: bool,
    base: str,
) -> None:
    """Write EPCIS 2.0 documents: of pairs and matches with --results, else of the readings of --landing.

    The same event has the same eventID in every export with the same landing and options. An export to a folder
    adds the events that are in none of its documents (epcis-*.json), which it reads first. What is no event is
    counted on stderr. The exit code is 1 if a file was damaged.
    """
    _check(landing, results, rules, streams, loads, base)
    export = Export(Wording(Names(base, links), landing if results else None, frozenset(loads)))
    if begin is not None:
        export.from_us = time_us(begin, "--from")
    if end is not None:
        export.to_us = time_us(end, "--to")
    now_us = time.time_ns() // 1000
    if results:
        batches = export.batches(results)
        if not batches and not export.problems:
            raise click.ClickException(
                f"{results[0].uri}: found no published pairs or matches, expected the --out of a job, or a folder of such"
            )
        with progress("exporting", len(batches), "batches") as advance:
            said = _write(export.results(batches, frozenset(rules) or None, now_us, advance), out, events, now_us)
    elif landing is not None:
        found = export.pieces(landing)
        with progress("exporting", len(found), "files") as advance:
            said = _write(export.readings(landing, found, streams, advance), out, events, now_us)
    click.echo(said, err=True)
    for what, count in sorted(export.left_out.items()):
        click.echo(f"left out: {count} {what}", err=True)
    for problem in export.problems:
        click.echo(f"warning: {problem}", err=True)
    if export.problems:
        raise click.exceptions.Exit(1)


def _check(
    landing: Store | None,
    results: tuple[Store, ...],
    rules: tuple[str, ...],
    streams: tuple[str, ...],
    loads: tuple[str, ...],
    base: str,
) -> None:
    if landing is None and not results:
        raise click.UsageError("found neither --landing nor --results, expected what is to be exported")
    if streams and results:
        raise click.UsageError("--stream: found it with --results, expected it for readings; results have --rule-name")
    if (rules or loads) and not results:
        raise click.UsageError("--rule-name, --loads: found one without --results, expected results of rules")
    scheme, _, rest = base.partition(":")
    if not (scheme.isalnum() and rest and base.isascii() and base.isprintable() and " " not in base):
        raise click.UsageError(
            f"--base: found {base!r}, expected the beginning of a URI such as https://id.acme.example/"
        )


def _write(events: Iterable[Event], out: Store | None, most: int, now_us: int) -> str:
    """Write the events; return a sentence about them."""
    count = 0
    try:
        if out is not None:
            return f"{out.uri}: {add(out, events, most, now_us)}"
        for number, text in enumerate(pieces(events, now_us)):
            click.echo(text, nl=False)
            count = number - 1  # the first piece and the last one have no event
        return f"{count} events"
    except OSError as error:
        raise click.ClickException(
            f"{error}; what is written so far stays, and a repeated export completes it"
        ) from None
