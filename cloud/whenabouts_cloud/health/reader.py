"""Reads the health records of a landing: those of a stretch of time, or what has come since the last time.

A landing may have none, and lines may be torn, foreign or hostile: what is no record is skipped. Cost: some 7 us a record.
"""

import time
from collections.abc import Callable, Collection, Iterator

from whenabouts_cloud.health.records import TYPES, Record, hour_of, record_in
from whenabouts_cloud.landing.layout import HEALTH, HOUR, parts_of
from whenabouts_cloud.landing.store import Store

READ_BYTES = 1 << 20  # at once; a line that is longer is skipped
MAX_NEW = 20_000  # records that one call of a follower returns, about
FIRST_HOURS = 2  # that a follower begins with, and goes on to look at
RELIST_S = 20.0  # between two looks at an object store, where an ingest writes once a minute


def records(landing: Store, from_us: int, to_us: int, types: Collection[str] = TYPES) -> Iterator[Record]:
    """The records with from_us <= at_us <= to_us, hour by hour; within an hour file by file, as they were written.

    Raises:
        OSError: the store cannot be read.
    """
    first, last = f"{HOUR}{hour_of(from_us)}", f"{HOUR}{hour_of(to_us)}"
    for hour, folders in _hours(landing):
        if first <= hour <= last:
            for folder in folders:
                for path in _files(landing, folder):
                    for record in _in_file(landing, path):
                        if from_us <= record["at_us"] <= to_us and record["type"] in types:
                            yield record


class Follower:
    """What has been reported since the last call. The first call returns the last FIRST_HOURS with records.

    monotonic_s: a clock that never goes back.
    """

    def __init__(self, landing: Store, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._landing, self._monotonic_s = landing, monotonic_s
        self._read: dict[str, int] = {}  # bytes, of files in the hours looked at
        self._looked_s = -RELIST_S

    def new(self) -> list[Record]:
        """New records, about MAX_NEW at most: the next call returns the others.

        Raises:
            OSError: the store cannot be read; the next call tries again.
        """
        now_s = self._monotonic_s()
        if self._landing.local is None and now_s - self._looked_s < RELIST_S:
            return []
        hours = _hours(self._landing)[-FIRST_HOURS:]
        paths = [path for _, folders in hours for folder in folders for path in _files(self._landing, folder)]
        self._read = {path: self._read.get(path, 0) for path in paths}
        found: list[Record] = []
        for path, size in zip(paths, self._landing.sizes(paths), strict=True):
            while size is not None and self._read[path] < size and len(found) < MAX_NEW:
                data = _part_of(self._landing, path, self._read[path])
                whole = data.rfind(b"\n") + 1 or (len(data) if len(data) == READ_BYTES else 0)
                if not whole:
                    break  # the last line is being written, or was torn
                self._read[path] += whole
                found += filter(None, map(record_in, data[:whole].split(b"\n")))
        if len(found) < MAX_NEW:
            self._looked_s = now_s
        return found


def _hours(landing: Store) -> list[tuple[str, list[str]]]:
    """The hours with records, in order, each with its folders in all parts."""
    found: dict[str, list[str]] = {}
    for part in parts_of(landing):
        place = f"{part}/{HEALTH}" if part else HEALTH
        for name in sorted(one.name for one in landing.entries(place)):
            if name.startswith(HOUR):
                found.setdefault(name, []).append(f"{place}/{name}")
    return sorted(found.items())


def _files(landing: Store, folder: str) -> list[str]:
    names = (one.name for one in landing.entries(folder))
    return sorted(f"{folder}/{name}" for name in names if name.endswith(".jsonl") and name[0] not in "._")


def _in_file(landing: Store, path: str) -> Iterator[Record]:
    at = 0
    rest = b""
    while data := _part_of(landing, path, at):
        at += len(data)
        *lines, rest = (rest + data).split(b"\n")
        yield from filter(None, map(record_in, lines))
        rest = b"" if len(rest) > READ_BYTES else rest


def _part_of(landing: Store, path: str, at: int) -> bytes:
    """Up to READ_BYTES of a file from a place on; nothing behind its end, or if it is gone."""
    try:
        with landing.open(path) as file:
            if at >= file.size():
                return b""
            file.seek(at)
            data: bytes = file.read(READ_BYTES)
            return data
    except FileNotFoundError:
        return b""
