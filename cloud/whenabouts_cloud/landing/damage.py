"""Finds what is damaged in a landing: data files, and the files beside them.

Files have consecutive numbers, those of frontiers too. A number that no file has is reported as missing, unless whole hours
lie between its neighbours, whose folders may have been deleted, as the manual allows. Numbers before the first file are not
missed, nor those of hours that are just being deleted (`retention`).
"""

import contextlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from whenabouts_cloud.landing.files import (
    DAMAGED_DIR,
    LEFT_OUT_DIR,
    DamagedFileError,
    check_file,
    damaged_ranges,
    data_files,
)
from whenabouts_cloud.landing.layout import FRONTIER, KINDS, SNAPSHOT, numbers_of
from whenabouts_cloud.landing.layout import HOUR as HOUR_FOLDER
from whenabouts_cloud.landing.ranges import Range, without
from whenabouts_cloud.landing.retention import GONE
from whenabouts_cloud.landing.sealing import ChecksumError, unsealed
from whenabouts_cloud.landing.store import Store

HOUR = "%Y-%m-%dT%H"


class Found(NamedTuple):
    """One finding: a path below the landing, the problem, and the numbers of readings that no file holds any more.

    kind: "damaged" (a data file), "missing" (a number), "unseen" (a whole file that jobs do not read again), "beside".
    """

    file: str
    kind: str
    problem: str
    lost: list[Range]


@dataclass
class Report:
    """Result of a check."""

    files: int = 0
    readings: int = 0
    found: list[Found] = field(default_factory=list)
    highest: int = 0  # number that a file has, had, or that the snapshot names
    newest_hour: str = ""  # of such a number


def check(landing: Path, advance: Callable[[int], None] = lambda _: None) -> Report:
    """Read all of a landing; `advance` is told of each file. An ingest may write to it meanwhile, and merging may delete
    what it has merged: that is not checked.
    """
    report = Report()
    snapshot = _snapshot(landing, report)
    files = list(data_files(landing))
    whole: dict[Path, list[Range]] = {}
    damaged: dict[Path, str] = {}
    misplaced: dict[Path, list[Range]] = {}
    empty = set[Path]()
    renamed = _renamed(landing)
    for file in files:
        try:
            footer = check_file(Store.at(file.parent), file.name)
            expected = numbers_of(_first_name(file.relative_to(landing).as_posix(), renamed))
            if footer.number is not None and expected is not None and footer.number != expected.first:
                misplaced[file] = footer.ranges or []
                raise DamagedFileError(
                    f"found the content of file number {footer.number} of an ingest, expected its own"
                )
            whole[file] = footer.ranges or []
            if not footer.rows:  # as after a loss of power that took a file which a job had left out: nobody misses it
                empty.add(file)
            report.readings += footer.rows
        except DamagedFileError as error:
            if file.exists():
                damaged[file] = str(error)
        advance(1)
    report.files = len(whole) + len(damaged)
    held = [one for ranges in (*whole.values(), *misplaced.values()) for one in ranges]
    for file, problem in damaged.items():
        name = file.relative_to(landing).as_posix()
        ranges = _between(file.name, whole, snapshot) if file in misplaced else _lost(file, whole, snapshot)
        report.found.append(Found(name, "damaged", problem, without(ranges, held)))
    for name in (file.relative_to(landing).as_posix() for file in whole if file not in empty):
        if (landing / LEFT_OUT_DIR / name).exists() or record_of(landing, name).exists():
            problem = "it is whole, but was left out or moved while it was not, and jobs do not read a name twice"
            report.found.append(Found(name, "unseen", problem, []))
    report.found += [
        Found(name, "missing", "no file has this number", without(_between(name, whole, snapshot), held))
        for name in _missing(landing, [*files, *_frontier_files(landing)], snapshot)
    ]
    letters = sorted((landing / "_dead").glob("*.jsonl"))
    newest = [file for file in letters if file.name.startswith("letters-")][-1:]  # imports write others, at once
    for file in (*_frontier_files(landing), *letters):
        bad = _bad_lines(file, is_added_to=file in newest)
        if bad is not None:
            report.found.append(Found(file.relative_to(landing).as_posix(), "beside", bad, []))
    numbered = [*files, *_frontier_files(landing)]
    numbers = numbers_gone(landing) | _hours(numbered)
    report.highest = max([snapshot["upto"], *numbers])
    report.newest_hour = max([snapshot["since"], *numbers.values()])
    return report


def _frontier_files(landing: Path) -> list[Path]:
    """Files of frontiers, by hour, and those of older versions."""
    return [path for path in sorted((landing / FRONTIER).glob("**/part-*.json")) if path.parent.name[0] != "."]


def _hours_being_deleted(landing: Path) -> set[str]:
    """The hours of which a folder has a hidden name."""
    hidden = f"{GONE}{HOUR_FOLDER}"
    return {path.name.removeprefix(hidden) for kind in KINDS for path in (landing / kind).glob(f"{hidden}*")}


def record_of(landing: Path, name: str) -> Path:
    """The record of a repair of the file with this name (below the landing)."""
    return landing / DAMAGED_DIR / f"{name}.json"


def _snapshot(landing: Path, report: Report) -> dict[str, Any]:
    """The ledger's snapshot; an empty one if it is absent or, with a finding, damaged."""
    empty = {"upto": 0, "since": "", "ranges": []}
    try:
        snapshot = unsealed((landing / SNAPSHOT).read_bytes())
        for name, kind in (("upto", int), ("since", str), ("ranges", list)):
            if type(snapshot[name]) is not kind:
                raise ValueError(f"found {snapshot[name]!r} for {name}")
        snapshot["ranges"] = [tuple(one) for one in snapshot["ranges"]]
    except FileNotFoundError:
        return empty
    except (ValueError, TypeError, KeyError) as error:
        problem = f"it is damaged ({error}); the ingest can read the files instead"
        report.found.append(Found(SNAPSHOT, "beside", problem, []))
        return empty
    return dict(snapshot)


def numbers_gone(landing: Path) -> dict[int, str]:
    """Numbers that are accounted for, and their hours: of files that a repair has moved, renamed or found missing."""
    records = (landing / DAMAGED_DIR).rglob("*.json")
    return _hours(
        file.with_name(file.name.removesuffix(".json")) if numbers_of(file.name) is None else file for file in records
    )


def _missing(landing: Path, files: list[Path], snapshot: dict[str, Any]) -> list[str]:
    """Names of the files that are missing, in the hour of the file before them."""
    names = _missing_of(landing, files, snapshot)
    if not names:
        return []
    # While files were listed an ingest may have begun a new hour, or an old one may have been deleted.
    now = _missing_of(landing, [*data_files(landing), *_frontier_files(landing)], snapshot)
    return [name for number, name in names.items() if number in now]


def _missing_of(landing: Path, files: list[Path], snapshot: dict[str, Any]) -> dict[int, str]:
    deleted, gone = _hours_being_deleted(landing), numbers_gone(landing)
    hours = {number: hour for number, hour in _hours(files).items() if hour not in deleted}
    if not hours:
        return {}
    upto, since = snapshot["upto"], snapshot["since"]
    if max(hours) < upto and since in hours.values():
        hours[upto + 1] = since
    return {
        number: f"hour={hours[before]}/part-{number:08d}.parquet"
        for before, after in pairwise(sorted(hours))
        if _adjacent(hours[before], hours[after])
        for number in range(before + 1, after)
        if number not in gone
    }


def _hours(files: Iterable[Path]) -> dict[int, str]:
    """Hour of arrival of each numbered file."""
    placed = [(file, file.parent.name) for file in files if file.parent.name.startswith(HOUR_FOLDER)]
    named = ((numbers_of(file.name), folder.removeprefix(HOUR_FOLDER)) for file, folder in placed)
    return {number: hour for one, hour in named if one for number in range(one.first, one.last + 1)}


def _adjacent(one: str, other: str) -> bool:
    """True if no whole hour lies between two hours."""
    try:
        apart = datetime.strptime(other, HOUR) - datetime.strptime(one, HOUR)
    except ValueError:
        return True
    return apart <= timedelta(hours=1)


def _renamed(landing: Path) -> dict[str, str]:
    """The former path of each file that a repair has made or renamed, by its path; both below the landing."""
    paths: dict[str, str] = {}
    for record in (landing / DAMAGED_DIR).rglob("*.json"):
        with contextlib.suppress(ValueError, KeyError, TypeError):
            new = json.loads(record.read_bytes())["new"]
            if isinstance(new, str):
                paths[new] = record.relative_to(landing / DAMAGED_DIR).as_posix().removesuffix(".json")
    return paths


def _first_name(path: str, renamed: dict[str, str]) -> str:
    """The name under which the ingest wrote a file."""
    for _ in range(len(renamed)):
        path = renamed.get(path, path)
    return path.rpartition("/")[2]


def _lost(file: Path, whole: dict[Path, list[Range]], snapshot: dict[str, Any]) -> list[Range]:
    """The numbers of a damaged file; without its footer, those that its neighbours leave out."""
    ranges = damaged_ranges(file)
    return ranges if ranges is not None else _between(file.name, whole, snapshot)


def _between(name: str, whole: dict[Path, list[Range]], snapshot: dict[str, Any]) -> list[Range]:
    """Numbers of each boot between the last one in earlier files and the first one in later files, else in the snapshot."""
    numbers = numbers_of(name.rpartition("/")[2])
    if numbers is None:
        return []
    before: list[Range] = []
    later: list[Range] = []
    noted: list[Range] = snapshot["ranges"] if numbers.last <= snapshot["upto"] else []
    for other, ranges in whole.items():
        at = numbers_of(other.name)
        if at is not None:
            (before if at.last < numbers.first else later).extend(ranges)
    between: list[Range] = []
    for boot in {one[:2] for one in (*later, *noted)}:
        first = max((last for *name, _, last in before if tuple(name) == boot), default=-1) + 1
        known = _behind(first, boot, later) or _behind(first, boot, noted)
        begin = min((low for low, _ in known), default=first)
        # Up to the first later number; the snapshot's own ranges hold the lost ones too.
        last = begin - 1 if begin > first else max((high for low, high in known if low <= first), default=first - 1)
        if last >= first:
            between.append((*boot, first, last))
    return between


def _behind(first: int, boot: tuple[str, int], ranges: list[Range]) -> list[tuple[int, int]]:
    """Those of a boot that do not end before a number."""
    return [(low, high) for *name, low, high in ranges if tuple(name) == boot and high >= first]


def _bad_lines(file: Path, is_added_to: bool) -> str | None:
    """The problem of a file of JSON objects, one a line; None if there is none or the file is gone.

    is_added_to: by an ingest, of which a crash may leave an incomplete line, which the next one cuts off.
    """
    try:
        lines = file.read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    if lines == [b""] and not is_added_to:
        return "it is empty"
    if lines[-1] and not is_added_to:
        return f"its last line, {len(lines)}, is incomplete"
    for number, line in enumerate(lines[:-1], 1):
        try:
            unsealed(line)
        except ChecksumError:
            return f"line {number} differs from its checksum"
        except ValueError:
            return f"line {number} is no JSON object"
    return None
