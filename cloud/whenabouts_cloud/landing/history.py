"""How far all parts of a landing have been read, and the files between two such states.

An offset is a value of JSON: for each part the position in it. Readings and frontiers of an offset agree: it holds all
readings that its frontiers cover. Within a part that follows from the numbers. A frontier of one part may cover readings of
another, of a gateway that has moved; so a reader of several parts lets a frontier take effect one step later, and goes
through a long history by whole hours of all parts: the clocks of ingests may differ by an hour.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from whenabouts_cloud.landing.index import (
    MOST_FOUND,
    START,
    LandedFile,
    PartIndex,
    Position,
    between,
    is_settled,
    moved,
)
from whenabouts_cloud.landing.layout import DATA, FRONTIER, parts_of
from whenabouts_cloud.landing.store import Store

ROOT = "."  # name of the part without a name in an offset
LAST = "~"  # behind all hours
MOST_REMEMBERED = 20_000  # files between the last committed offset and the latest one

Offset = dict[str, dict[str, Any]]


class Piece(NamedTuple):
    """A file and what of it is meant: readings of the file numbers above `after` and up to `upto`, if it is a merged one."""

    path: str
    kind: str
    hour: str
    after: int
    upto: int
    merged: bool


class History:
    """The files of a landing as they appear. part_index: makes the index of a part."""

    def __init__(self, landing: Store, part_index: Callable[[Store], PartIndex] = PartIndex) -> None:
        self._landing, self._part_index = landing, part_index
        self._parts: dict[str, PartIndex] = {}
        self._changed_ns: int | None = None  # when it was looked at last
        self._found: dict[str, tuple[Position, list[LandedFile]]] = {}  # by part: since where, and what

    def latest(self, start: Mapping[str, Any], max_bytes: int | None = None, upto_frontier: bool = False) -> Offset:
        """The offset of all that has landed, or of the next piece of about max_bytes and at least one file.

        upto_frontier: a piece ends with a frontier, so that a reader can forget what it does not need any more; where no
        frontier has a number there are no pieces.
        """
        self._find_parts(start)
        found = {part: self._after(part, position_in(start, part)) for part in self._parts}
        # A part that is read ahead of others would let their readings come late.
        known = min((hour for _, hour in found.values()), default=LAST)
        new = {part: [one for one in files if _hour(one) <= known] for part, (files, _) in found.items()}
        if max_bytes is not None and sum(map(len, new.values())) > 1:
            new = self._next_piece(new, max_bytes, upto_frontier)
        return {name_of(part): moved(position_in(start, part), files)._asdict() for part, files in new.items()}

    def pieces(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Piece]:
        """The files between two offsets, part by part, in the order in which they appeared."""
        pieces = []
        for name in end:
            part = "" if name == ROOT else name
            first, last = position_in(start, part), position_in(end, part)
            if first == last:
                continue
            since, files = self._found.get(part, (last, []))
            if since > first or moved(first, files) < last:
                files = self._index(part).upto(first, last)
            for file in between(files, first, last):
                one = file.numbers
                merged = one is not None and one.first < one.last
                path = f"{part}/{file.path}" if part else file.path
                pieces.append(Piece(path, file.kind, file.hour, first.number, last.number, merged))
        return pieces

    def forget(self, end: Mapping[str, Any]) -> None:
        """Forget files up to an offset: they will not be asked for again."""
        for part, (since, files) in list(self._found.items()):
            upto = position_in(end, part)
            if since < upto:
                self._found[part] = upto, [one for one in files if _beyond(one, upto)]

    def _after(self, part: str, position: Position) -> tuple[list[LandedFile], str]:
        """Files of a part after a position, and the hour up to which they are all; LAST if there are no more. Those
        that were found before are not looked for again.
        """
        since, files = self._found.get(part, (position, []))
        if since > position or len(files) > MOST_REMEMBERED:
            since, files = position, []
        is_all = False
        if len(files) < MOST_REMEMBERED // 2:
            more = self._index(part).after(max(moved(since, files), position))
            files, is_all = [*files, *more], len(more) < MOST_FOUND
        self._found[part] = since, files
        return [one for one in files if _beyond(one, position)], LAST if is_all else moved(since, files).hour

    def _next_piece(
        self, new: dict[str, list[LandedFile]], max_bytes: int, upto_frontier: bool
    ) -> dict[str, list[LandedFile]]:
        """The first files of about max_bytes; of several parts, whole hours."""
        paths = [(part, one) for part, files in new.items() for one in files]
        sizes = self._landing.sizes(f"{part}/{one.path}" if part else one.path for part, one in paths)
        left = max_bytes
        if len([part for part, files in new.items() if files]) == 1:
            [(part, files)] = [(part, files) for part, files in new.items() if files]
            for count, size in enumerate(sizes):
                left -= size or 0
                ends = not upto_frontier or (files[count - 1].kind == FRONTIER and files[count - 1].numbers is not None)
                if left < 0 and count and ends:
                    return new | {part: files[:count]}
            return new
        if upto_frontier and not all(one.numbers for _, one in paths if one.kind == FRONTIER):
            return new
        by_hour: dict[str, int] = {}
        for (_, one), size in zip(paths, sizes, strict=True):
            by_hour[_hour(one)] = by_hour.get(_hour(one), 0) + (size or 0)
        last = min(by_hour)
        for hour in sorted(by_hour):
            left -= by_hour[hour]
            if left < 0 and hour != min(by_hour):
                break
            last = hour
        return {part: [one for one in files if _hour(one) <= last] for part, files in new.items()}

    def _index(self, part: str) -> PartIndex:
        if part not in self._parts:
            self._parts[part] = self._part_index(self._landing.at_folder(part))
        return self._parts[part]

    def _find_parts(self, start: Mapping[str, Any]) -> None:
        changed_ns = self._landing.changed_ns("")
        if changed_ns is not None and changed_ns == self._changed_ns:
            return
        self._changed_ns = changed_ns if is_settled(changed_ns) else None
        for part in (*parts_of(self._landing), *("" if name == ROOT else name for name in start)):
            self._index(part)


def everything(landing: Store) -> list[Piece]:
    """All files in a landing."""
    history, pieces, start = History(landing), list[Piece](), dict[str, Any]()
    while (end := history.latest(start)) != start:
        pieces += history.pieces(start, end)
        history.forget(start := end)
    return pieces


def name_of(part: str) -> str:
    """The name of a part in an offset."""
    return part or ROOT


def position_in(offset: Mapping[str, Any], part: str) -> Position:
    """The position of a part in an offset; the start for a part that it does not have."""
    found = offset.get(name_of(part))
    return START if found is None else Position(**found)


def readings_of(pieces: list[Piece]) -> list[Piece]:
    """The pieces with readings."""
    return [one for one in pieces if one.kind == DATA]


def frontiers_of(pieces: list[Piece]) -> list[Piece]:
    """The pieces with frontiers."""
    return [one for one in pieces if one.kind == FRONTIER]


def _beyond(file: LandedFile, position: Position) -> bool:
    if file.numbers is None:
        return file.order > (position.mtime_ns, position.other)
    return file.numbers.last > position.number


def _hour(file: LandedFile) -> str:
    """The hour of a file; one without an hour may cover readings of all hours, so it comes last."""
    return file.hour or LAST
