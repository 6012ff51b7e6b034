"""`whenabouts-cloud import`: land log files of readers; rows that are not readings go to the side output.

A row lands once: its identity is looked up in the landing, so importing a file again, or after it has grown, lands only new
rows. The side output is written first, to LANDING/_dead, and listed.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import click

from whenabouts_cloud.commands.options import duration, written_landing_option
from whenabouts_cloud.importers.epcis_document import read_epcis, taken_back_in
from whenabouts_cloud.importers.feeder import read_feeder
from whenabouts_cloud.importers.orfid import read_orfid
from whenabouts_cloud.importers.side_output import NoLogError, SideOutput
from whenabouts_cloud.ingest.holding import LandingError
from whenabouts_cloud.ingest.landing_writer import Landing
from whenabouts_cloud.ingest.ledger import Ledger, LedgerFull, ledger_name
from whenabouts_cloud.landing.ranges import as_ranges
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.progress import progress
from whenabouts_protocol import Reading
from whenabouts_protocol.topics import is_name

Command = TypeVar("Command", bound=Callable[..., Any])
Read = Callable[[str, str], Iterable[Reading | SideOutput]]  # from a log's text and its file's name

MAX_FILE_BYTES = 256 << 20  # read whole; ten years of one reader are a tenth of it
READINGS_IN_FILE = 100_000  # of the landing
LISTED = 10  # rows of the side output shown for a file; all are in its file under _dead
# Reasons in the side output that are no errors.
HARMLESS = ("text", "event", "class", "declaration", "deleted", "nothing", "repeat", "taken back")
MAX_DOCUMENT_BYTES = 64 << 20  # of JSON, which needs some ten times as much memory; `export epcis` writes smaller ones


@click.group("import")
def imports() -> None:
    """Bring log files of readers into the landing."""


def _of_logs(command: Command) -> Command:
    """Adds the arguments of every import of log files."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="One JSON object a file on stdout."),
        written_landing_option,
        click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)),
    ):  # fmt: skip
        command = option(command)
    return command


@imports.command("orfid")
@_of_logs
def orfid(files: tuple[Path, ...], landing: Store, as_json: bool) -> None:
    """Land the log FILES of Oregon RFID antenna readers; each is named after its reader.

    Lines that are no readings are kept in LANDING/_dead with the reason. Importing a file again lands nothing new.

    \b
    Example:  whenabouts-cloud import orfid lower.txt upper.txt --landing ./landing
    """
    for file in files:
        _check_name(file.stem, f"{file}: found the reader's name", "; rename the file")
    now_us = time.time_ns() // 1000
    _land("orfid", files, lambda text, name: read_orfid(text.split("\n"), name, now_us), landing, now_us, as_json)


@imports.command("feeder")
@_of_logs
@click.option("--site", default="feeders", show_default=True, help="Name of the place where the loggers are.")
def feeder(files: tuple[Path, ...], landing: Store, as_json: bool, site: str) -> None:
    """Land the log FILES of RFID loggers at bird feeders; a logger's name is the first line of each.

    Lines that are no readings are kept in LANDING/_dead with the reason. Importing a file again lands nothing new.

    \b
    Example:  whenabouts-cloud import feeder OAKDATA.TXT ELMDATA.TXT --landing ./landing
    """
    _check_name(site, "--site: found")
    now_us = time.time_ns() // 1000
    _land("feeder", files, lambda text, name: read_feeder(text, name, site, now_us), landing, now_us, as_json)


@imports.command("epcis")
@_of_logs
@click.option("--error", type=duration(), help='How far the times may be from the truth, such as "2 s" or "500 ms".')
@click.option("--site", default="epcis", show_default=True, help="Name of the place where the events come from.")
def epcis(files: tuple[Path, ...], landing: Store, as_json: bool, error: int | None, site: str) -> None:
    """Land the events of EPCIS 2.0 documents (JSON-LD): a reading for each object that an event observes.

    Events of our own export keep their interval. Others need --error, which widens eventTime, or the start and end of
    sensor metadata around it. What is no reading is kept in LANDING/_dead with the reason. Importing the same list of
    events again lands nothing new; an event that two lists share lands once in one run, and again in another.

    \b
    Example:  whenabouts-cloud import epcis *.json --landing ./landing --error "2 s"
    """
    _check_name(site, "--site: found")
    now_us = time.time_ns() // 1000
    taken_back, seen = set[str](), set[str]()
    for file in files:
        try:
            taken_back |= taken_back_in(_text(file, MAX_DOCUMENT_BYTES))
        except NoLogError as problem:
            raise click.ClickException(f"{file}: {problem}") from None

    def read(text: str, name: str) -> Iterable[Reading | SideOutput]:
        return read_epcis(text, error, site, now_us, taken_back, seen)

    _land("epcis", files, read, landing, now_us, as_json, MAX_DOCUMENT_BYTES)


def _check_name(name: str, prefix: str, instead: str = "") -> None:
    if not is_name(name):
        raise click.ClickException(f"{prefix} {name!r}, expected one without spaces, / + #{instead}")


def _land(
    kind: str,
    files: tuple[Path, ...],
    read: Read,
    landing: Store,
    now_us: int,
    as_json: bool,
    most_bytes: int | None = None,
) -> None:
    """Land the logs; all are read before the first one lands."""
    with progress("reading logs", len(files), "files") as advance:
        parsed = []
        for file in files:
            parsed.append((file, *_parsed(file, read, MAX_FILE_BYTES if most_bytes is None else most_bytes)))
            advance(1)
    try:
        store = Landing(landing)
        try:
            ledger = Ledger()
            store.recover_into(ledger)
            for file, readings, side_output in parsed:
                kept = _keep(store, landing, f"{kind}-{file.stem}", side_output) if side_output else None
                _report(_import(store, ledger, file, readings, side_output, kept, now_us), as_json)
        finally:
            store.close()
    except (LandingError, LedgerFull) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"landing {landing.uri}: {error}; the files listed above have landed") from None


def _parsed(file: Path, read: Read, most_bytes: int) -> tuple[list[Reading], list[SideOutput]]:
    try:
        rows = list(read(_text(file, most_bytes), file.stem))
    except NoLogError as error:
        raise click.ClickException(f"{file}: {error}") from None
    return [x for x in rows if isinstance(x, Reading)], [x for x in rows if isinstance(x, SideOutput)]


def _text(file: Path, most_bytes: int) -> str:
    try:
        size = file.stat().st_size
        if size > most_bytes:
            raise click.ClickException(f"{file}: found {size} bytes, expected at most {most_bytes}; cut it in parts")
        return file.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise click.ClickException(f"{file}: {error}") from None


def _import(
    store: Landing,
    ledger: Ledger,
    file: Path,
    readings: list[Reading],
    side_output: list[SideOutput],
    kept: str | None,
    now_us: int,
) -> dict[str, Any]:
    new: list[Reading] = []
    if readings:
        is_new = ledger.admit(
            ledger_name(readings[0].site, readings[0].gateway), readings[0].boot, [x.seq for x in readings]
        )
        new = [x for x, flag in zip(readings, is_new, strict=True) if flag]
    with progress(f"landing {file.name}", len(new), "readings") as advance:
        for begin in range(0, len(new), READINGS_IN_FILE):
            part = new[begin : begin + READINGS_IN_FILE]
            ranges = as_ranges((ledger_name(x.site, x.gateway), x.boot, x.seq) for x in part)
            store.write(part, ranges, now_us)
            ledger.land(ranges)
            if store.snapshot_due():
                store.snapshot(ledger.landed_ranges(), ledger.closed_boots())
            advance(len(part))
    return {
        "file": str(file),
        "landed": len(new),
        "repeats": len(readings) - len(new),
        "clock": dict(Counter(x.clock_state for x in readings)),
        "side_output": dict(Counter(x.reason for x in side_output)),
        "side_output_file": kept,
        "bad": [{"line": x.line, "reason": x.reason, "text": x.text} for x in side_output if x.reason not in HARMLESS],
    }


def _keep(store: Landing, landing: Store, log: str, side_output: list[SideOutput]) -> str:
    """Write the side output; its name is a hash of the content, so the same content gives the same file."""
    lines = ({"line": x.line, "reason": x.reason, "text": x.text, "row": x.row} for x in side_output)
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path = f"_dead/{log}-{blake2b(content, digest_size=6).hexdigest()}.jsonl"
    store.store.write(path, content)
    if landing.local is not None and landing.local.is_relative_to(Path.cwd()):
        return str(landing.local.relative_to(Path.cwd()) / path)
    return f"{landing.uri}/{path}"


def _report(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result))
        return
    text = f"{Path(result['file']).name}: {result['landed']} landed, {result['repeats']} repeats"
    unsure = [f"{count} {state}" for state, count in result["clock"].items() if state != "bounded"]
    text += f" ({', '.join(unsure)})" if unsure else ""
    if result["side_output"]:
        reasons = ", ".join(f"{count} {reason}" for reason, count in result["side_output"].items())
        text += f", {sum(result['side_output'].values())} in the side output ({reasons}): {result['side_output_file']}"
    click.echo(text)
    for bad in result["bad"][:LISTED]:
        click.echo(f"  line {bad['line']}: {bad['text']}")
    if len(result["bad"]) > LISTED:
        click.echo(f"  and {len(result['bad']) - LISTED} more")
