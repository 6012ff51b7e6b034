"""Finds the files of a part that a reader has not read yet, in the order in which they appeared, without listing old ones.

The files of an ingest are numbered without a gap, so the next one is looked for by name: that costs some microseconds,
however many files there are. Only where that finds nothing are folders listed whose content has changed: hours from the
reader's own on, in a local folder by the time of the last change, in an object store every RELIST_S. Frontiers are listed
before readings. While folders are listed one after the other files appear; if the numbers of a listing have a gap, it is
repeated, and then has every file up to the last number. So whatever a frontier in a listing covers is in that listing.

Files that no ingest has numbered are read in the order of their times of modification, and their names: the program that
writes them must let them appear in that order, and not in hours that the ingest has left. Cost: a listing of their folder
for each change.
"""

import heapq
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import NamedTuple, TypeGuard

from whenabouts_cloud.landing.layout import AHEAD, DATA, FRONTIER, HOUR, SUFFIX, Numbers, numbers_of, path_of
from whenabouts_cloud.landing.store import Store

MOST_FOUND = 10_000  # files that one call returns, and those of an hour: the memory of a reader of a long history
MOST_PROBED = 16  # files of an object store that are looked for by name, one after the other, before it is listed
RELIST_S = 2.0  # between two listings of an object store that has shown nothing new
SETTLED_NS = (
    2_000_000_000  # a folder that has changed since may change again without a new time: some are whole seconds
)
RANK = {DATA: 0, AHEAD: 1, FRONTIER: 2}  # readings come before the frontiers that cover them
KINDS = (FRONTIER, AHEAD, DATA)  # in the order in which they are listed


class Position(NamedTuple):
    """How far a part has been read: the last number and its hour; time and name of the last file without a number."""

    hour: str = ""
    number: int = -1
    mtime_ns: int = -1
    other: str = ""


START = Position()


class LandedFile(NamedTuple):
    """A file of a part. kind: DATA, AHEAD or FRONTIER; path: below the part; numbers: None for a file without."""

    kind: str
    path: str
    hour: str
    numbers: Numbers | None
    mtime_ns: int = -1

    @property
    def order(self) -> tuple[int, str]:
        """Place among the files without a number."""
        return self.mtime_ns, f"{RANK[self.kind]} {self.path}"


def moved(position: Position, files: Iterable[LandedFile]) -> Position:
    """The position after these files too."""
    hour, number = position[:2]
    last: tuple[int, str] = (position.mtime_ns, position.other)
    for file in files:
        if file.numbers is None:
            last = max(last, file.order)
        elif file.numbers.last > number:
            number, hour = file.numbers.last, max(hour, file.hour)
    return Position(hour, number, *last)


def between(files: Iterable[LandedFile], start: Position, end: Position) -> list[LandedFile]:
    """The files with anything after `start` and up to `end`."""
    return [
        file
        for file in files
        if (
            (start.mtime_ns, start.other) < file.order <= (end.mtime_ns, end.other)
            if file.numbers is None
            else file.numbers.last > start.number and file.numbers.first <= end.number
        )
    ]


class PartIndex:
    """The files of one part. monotonic_s: a clock that never goes back."""

    def __init__(self, part: Store, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._part, self._monotonic_s = part, monotonic_s
        self._seen: dict[str, int] = {}  # local folders without anything new, and when they had changed
        self._hours: dict[str, list[str]] = {kind: [] for kind in KINDS}
        self._listed_s = self._hours_s = -RELIST_S

    def after(self, position: Position) -> list[LandedFile]:
        """Files that have appeared after a position, sorted; at least MOST_FOUND, up to the end of an hour, if there are so
        many. Empty: there is nothing new.
        """
        old_frontiers = self._old_frontiers(position)
        if position.number >= 0 and (found := list(self._walk(position))):
            if self._part.local is None and len(found) == MOST_PROBED:
                found += [one for one in self._listed(moved(position, found), []) if one.numbers]
            return found + old_frontiers + self._others_behind(position, found[-1].hour)
        if self._part.local is None and self._monotonic_s() - self._listed_s < RELIST_S:
            return old_frontiers
        return self._listed(position, old_frontiers)

    def upto(self, start: Position, end: Position) -> list[LandedFile]:
        """The files between two positions, by listing the folders that may hold them."""
        self._seen.clear()
        found, at = list[LandedFile](), start
        while at != (at := moved(at, some := self._listed(at, self._old_frontiers(at)))):
            found += some
        self._seen.clear()  # nothing was new behind all files; behind `end` some may be
        return between(found, start, end)

    def _walk(self, position: Position) -> Iterator[LandedFile]:
        """Look for the next numbers by name, until one is not found, or a new hour begins after MOST_FOUND."""
        hour, first = position.hour, position.number + 1
        for number in count(first) if self._part.local is not None else range(first, first + MOST_PROBED):
            one = Numbers(number, number)
            places = [(kind, at) for at in (hour, *self._next_hours(hour)) for kind in RANK]
            sizes = self._part.sizes(path_of(*place, one) for place in places)
            found = next((place for place, size in zip(places, sizes, strict=True) if size is not None), None)
            if found is None or (found[1] > hour and number - first >= MOST_FOUND):
                return
            kind, hour = found
            yield LandedFile(kind, path_of(kind, hour, one), hour, one)

    def _others_behind(self, position: Position, hour: str) -> list[LandedFile]:
        """Files without a number in hours that the reader leaves."""
        left = sorted({one for hours in self._hours.values() for one in hours if position.hour <= one < hour})
        found = (one for at in left for kind in KINDS for one in self._in_folder(kind, at, position))
        return [one for one in found if one.numbers is None]

    def _next_hours(self, hour: str) -> list[str]:
        """The hour after this one that has files of each kind."""
        self._find_hours()
        later = (self._hours[kind][bisect_right(self._hours[kind], hour) :][:1] for kind in KINDS)
        return sorted({one for some in later for one in some})

    def _old_frontiers(self, position: Position) -> list[LandedFile]:
        """New frontiers without an hour; older versions wrote them. Looked for before the readings that they cover."""
        if self._part.local is None and self._monotonic_s() - self._listed_s < RELIST_S:
            return []
        return self._new_in(FRONTIER, "", position)

    def _listed(self, position: Position, found: list[LandedFile]) -> list[LandedFile]:
        """What lies after a position in folders that have changed, with what has been found before."""
        files = self._listed_once(position, found)
        numbers = [one.numbers for one in files if one.numbers]
        if not _has_gap(position, numbers):
            return files
        # Files of these numbers may have appeared in folders that had been listed already. They are there now, or never.
        self._seen.clear()
        self._hours_s = -RELIST_S
        again = self._listed_once(position, [])
        numbered = [one for one in again if one.numbers and one.numbers.first <= numbers[-1].last]
        return numbered + [one for one in files if not one.numbers]

    def _listed_once(self, position: Position, found: list[LandedFile]) -> list[LandedFile]:
        self._listed_s = self._monotonic_s()
        self._find_hours()
        # A file without a number may appear in any hour.
        least = "" if position.other else position.hour
        for hour in sorted({one for hours in self._hours.values() for one in hours if one >= least}):
            for kind in KINDS:
                if hour in self._hours[kind]:
                    found += self._new_in(kind, hour, position)
            if len(found) >= MOST_FOUND and all(one.numbers for one in found):
                self._listed_s = -RELIST_S  # there may be more
                break
        numbered = sorted((one for one in found if one.numbers), key=lambda one: one.numbers or ())
        return numbered + heapq.nsmallest(
            MOST_FOUND, (one for one in found if not one.numbers), key=lambda one: one.order
        )

    def _new_in(self, kind: str, hour: str, position: Position) -> list[LandedFile]:
        """Files of a folder after a position; it is listed again only if it has changed or had some."""
        folder = _folder(kind, hour)
        changed_ns = self._part.changed_ns(folder)
        if changed_ns is not None and self._seen.get(folder) == changed_ns:
            return []
        settled_ns = changed_ns if is_settled(changed_ns) else None
        new = self._in_folder(kind, hour, position)
        if settled_ns is not None and not new:
            self._seen[folder] = settled_ns
        return new

    def _in_folder(self, kind: str, hour: str, position: Position) -> list[LandedFile]:
        """The files of an hour after a position, without those that a merged file hides; for hour "" those of all hours."""
        folder, files, merged = _folder(kind, hour), list[LandedFile](), list[Numbers]()
        at = max(position.number, 0)
        oldest = path_of(kind, hour, Numbers(at, at)).rpartition("/")[2] if position.number >= 0 else ""
        for entry in self._part.entries(folder):
            name = entry.name
            if name[0] in "._" or not name.endswith(SUFFIX[kind]):
                continue
            if hour and len(name) == len(oldest) and name <= oldest:  # nearly all
                continue
            numbers = numbers_of(name) if hour else None
            if numbers is None:
                time_ns = entry.mtime_ns if entry.mtime_ns >= 0 else self._part.changed_ns(f"{folder}/{name}") or 0
                other = LandedFile(kind, f"{folder}/{name}", hour, None, time_ns)
                if other.order > (position.mtime_ns, position.other):
                    files.append(other)
            elif numbers.last > position.number:
                files.append(LandedFile(kind, f"{folder}/{name}", hour, numbers))
                if numbers.first < numbers.last:
                    merged.append(numbers)
        return [one for one in files if not _hidden(one.numbers, merged)] if merged else files

    def _find_hours(self) -> None:
        """Learn of new hours from the folders of each kind that have changed."""
        local = self._part.local is not None
        if not local and self._monotonic_s() - self._hours_s < RELIST_S:
            return
        for kind in KINDS:
            changed_ns = self._part.changed_ns(kind)
            if local and (changed_ns is None or self._seen.get(f"{kind}/") == changed_ns):
                continue
            settled_ns = changed_ns if is_settled(changed_ns) else None
            names = (one.name for one in self._part.entries(kind))
            self._hours[kind] = sorted(name.removeprefix(HOUR) for name in names if name.startswith(HOUR))
            if settled_ns is not None:
                self._seen[f"{kind}/"] = settled_ns
        self._hours_s = self._monotonic_s()


def is_settled(changed_ns: int | None) -> TypeGuard[int]:
    """True if a local folder that has changed then gets another time when it changes again. Ask before you list it."""
    return changed_ns is not None and time.time_ns() - changed_ns > SETTLED_NS


def _has_gap(position: Position, numbers: Iterable[Numbers]) -> bool:
    """True if numbers after a position are missing: files that were moved away, or that the listing has not seen."""
    last = max(position.number, 0)  # the first number of an ingest is 1
    for one in numbers:
        if one.first > last + 1:
            return True
        last = max(last, one.last)
    return False


def _folder(kind: str, hour: str) -> str:
    return "/".join(name for name in (kind, f"{HOUR}{hour}" if hour else "") if name)


def _hidden(numbers: Numbers | None, merged: list[Numbers]) -> bool:
    return numbers is not None and any(
        one.first <= numbers.first and numbers.last <= one.last and one != numbers for one in merged
    )
