"""`whenabouts-cloud landing check`: find damaged files of a landing, and repair it."""

import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from whenabouts_cloud.commands.options import folder, landing_option
from whenabouts_cloud.landing.damage import Report, check
from whenabouts_cloud.landing.files import data_files, part_folders
from whenabouts_cloud.landing.ranges import Range
from whenabouts_cloud.landing.repair import BusyLandingError, Repaired, locked, repair
from whenabouts_cloud.progress import progress


@click.group("landing")
def landing_group() -> None:
    """Look after the folder of readings."""


@landing_group.command("check")
@landing_option("Folder the ingest lands readings in.", type=folder(must_exist=True))
@click.option("--repair", "repairs", is_flag=True, help="Move damaged files to LANDING/_damaged; no ingest may run.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def check_landing(landing: Path, repairs: bool, as_json: bool) -> None:
    """Read every file of a landing and report those that are damaged or missing; exit code 0 if there are none, else 1.

    With --repair a damaged file is moved to LANDING/_damaged, and the readings that can still be read are written as a new
    file. A file that was put back whole gets a new name, because jobs do not read a name twice. The readings that are lost
    are listed by gateway, boot and numbers. Exit code 0 then says that the landing is whole now.

    \b
    Example:  whenabouts-cloud landing check --landing ./landing --repair
    """
    parts = part_folders(landing)
    try:
        with contextlib.ExitStack() as locks:
            for part in parts if repairs else ():
                locks.enter_context(locked(part))
            total = sum(1 for part in parts for _ in data_files(part))
            with progress("checking", total, "files") if sys.stderr.isatty() or total > 1000 else _silent() as advance:
                reports = [check(part, advance) for part in parts]
            now_us = time.time_ns() // 1000
            done = [
                repair(part, report, now_us) if repairs else [] for part, report in zip(parts, reports, strict=True)
            ]
    except BusyLandingError as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"landing {landing}: cannot be checked ({error})") from None
    report, repaired = _together(landing, parts, reports, done)
    click.echo(json.dumps(_as_json(report, repaired)) if as_json else _text(landing, report, repaired))
    if report.found and not repairs:
        raise SystemExit(1)


def _together(
    landing: Path, parts: list[Path], reports: list[Report], done: list[list[Repaired]]
) -> tuple[Report, list[Repaired]]:
    """The report of the whole landing, with paths below it."""
    whole, repaired = Report(), list[Repaired]()
    for part, report, mended in zip(parts, reports, done, strict=True):
        inner = part.relative_to(landing)
        whole.files, whole.readings = whole.files + report.files, whole.readings + report.readings
        whole.found += [one._replace(file=(inner / one.file).as_posix()) for one in report.found]
        repaired += [one._replace(new=one.new and (inner / one.new).as_posix()) for one in mended]
    return whole, repaired


@contextlib.contextmanager
def _silent() -> Any:
    yield lambda _: None


def _as_json(report: Report, done: list[Repaired]) -> dict[str, Any]:
    found = [one._asdict() for one in report.found]
    for entry, one in zip(found, done, strict=False):
        entry |= {"new": one.new, "lost": one.lost}
    whole = not report.found or bool(done)
    return {"whole": whole, "files": report.files, "readings": report.readings, "found": found}


def _text(landing: Path, report: Report, done: list[Repaired]) -> str:
    lines = []
    for number, found in enumerate(report.found):
        line = f"{found.file}: {found.problem}"
        lost = found.lost
        if done:
            lost = done[number].lost
            line += (
                f"; now {done[number].new}" if done[number].new else "; moved to _damaged" * (found.kind != "missing")
            )
        lines += [line, *(f"  {'lost' if done else 'not in another file'}: {_named(one)}" for one in lost)]
    lines.append(f"{report.files} files, {report.readings} readings that can be read, {len(report.found)} problems")
    if report.found and not done:
        lines.append(f"Repair it with: whenabouts-cloud landing check --landing {landing} --repair")
    return "\n".join(lines)


def _named(one: Range) -> str:
    gateway, boot, first, last = one
    return f"readings of {gateway}, boot {boot}, numbers {first} to {last}"
