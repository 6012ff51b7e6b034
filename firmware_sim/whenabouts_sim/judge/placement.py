"""Ties landed readings to the sightings they report, without trusting their stamps more than needed.

Pure. Reading and sighting have the same gateway, stream and key, and the true time lies inside the stamp; the order is
that of sequence numbers. Where several assignments are possible (equal keys 120 ms apart under a bound of 300 ms, some
lost) the one with most readings placed is taken, then the one that uses most undamaged frames, then the one nearest to
the times that the gateway's own clock showed.
Cost: quadratic in the sightings of one key at one reader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from whenabouts_sim.world.clocks import GatewayClock
from whenabouts_sim.world.emitted import EmittedFrame
from whenabouts_sim.world.world import SimReader

SightingId = tuple[str, int]
ReadingId = tuple[str, int, int]

T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Landed:
    """A reading as it landed; t_min and t_max in microseconds since 1970 UTC, closed."""

    gateway: str
    stream: str
    key: str
    boot: int
    seq: int
    t_min: int
    t_max: int

    @property
    def id(self) -> ReadingId:
        """The identity of a reading."""
        return self.gateway, self.boot, self.seq


@dataclass(frozen=True)
class Placement:
    """The sighting that each reading reports, and the readings that could not be placed.

    `repeated`: number of rows with an identity seen before. `violations`: readings of a known key whose stamp contains no
    sighting of it. `surplus`: readings whose stamp contains sightings, all of which are reported by other readings.
    `invented`: readings of a key that never passed that reader.
    """

    sighting_of: Mapping[ReadingId, SightingId]
    repeated: int
    violations: tuple[Landed, ...]
    surplus: tuple[Landed, ...]
    invented: tuple[Landed, ...]


def place(
    landed: Iterable[Landed],
    emitted: Iterable[EmittedFrame],
    readers: Iterable[SimReader],
    clocks: Mapping[str, GatewayClock],
) -> Placement:
    """Ties landed readings to emitted sightings; the head of this module says which assignment is taken."""
    streams = {reader.name: (reader.gateway, reader.stream) for reader in readers}
    sightings = grouped(emitted, lambda entry: (*streams[entry.reader], entry.key))
    first_of: dict[ReadingId, Landed] = {}
    rows = 0
    for reading in landed:
        rows += 1
        first_of.setdefault(reading.id, reading)
    readings = grouped(first_of.values(), lambda reading: (reading.gateway, reading.stream, reading.key))

    sighting_of: dict[ReadingId, SightingId] = {}
    unplaced: dict[str, list[Landed]] = {"violations": [], "surplus": [], "invented": []}
    for group, of_key in sorted(readings.items()):
        candidates = sorted(sightings.get(group, ()), key=lambda entry: entry.true_us)
        placed = _align(sorted(of_key), candidates, clocks[group[0]]) if candidates else {}
        sighting_of.update(placed)
        for reading in of_key:
            if reading.id not in placed:
                unplaced[_why_unplaced(reading, candidates)].append(reading)
    lists = {name: tuple(sorted(readings)) for name, readings in unplaced.items()}
    return Placement(sighting_of=sighting_of, repeated=rows - len(first_of), **lists)


def _why_unplaced(reading: Landed, candidates: Sequence[EmittedFrame]) -> str:
    if not candidates:
        return "invented"
    inside = any(reading.t_min <= entry.true_us <= reading.t_max for entry in candidates)
    return "surplus" if inside else "violations"


def _align(
    readings: Sequence[Landed], candidates: Sequence[EmittedFrame], clock: GatewayClock
) -> dict[ReadingId, SightingId]:
    """The best assignment that keeps the order of both sides, by the usual dynamic programming on two sequences."""
    # best[i][j]: score with the first i readings and the first j sightings: (placed, undamaged, -distance).
    best = [[(0, 0, 0)] * (len(candidates) + 1) for _ in range(len(readings) + 1)]
    for i, reading in enumerate(readings, 1):
        for j, entry in enumerate(candidates, 1):
            best[i][j] = max(best[i - 1][j], best[i][j - 1], _with_pair(best[i - 1][j - 1], reading, entry, clock))
    placed = {}
    i, j = len(readings), len(candidates)
    while i and j:
        if best[i][j] == best[i - 1][j]:
            i -= 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            placed[readings[i].id] = candidates[j].id
    return placed


def _with_pair(
    score: tuple[int, int, int], reading: Landed, entry: EmittedFrame, clock: GatewayClock
) -> tuple[int, int, int]:
    """The score after placing `reading` on `entry`; below any other score if the stamp does not contain it."""
    if not reading.t_min <= entry.true_us <= reading.t_max:
        return (-1, 0, 0)
    distance_us = abs(reading.t_min + reading.t_max - 2 * clock.reading_us(entry.true_us))
    return score[0] + 1, score[1] + (not entry.damaged), score[2] - distance_us


def grouped(entries: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """Entries by key, in order of first appearance; no list is empty."""
    groups: defaultdict[Any, list[T]] = defaultdict(list)
    for entry in entries:
        groups[key(entry)].append(entry)
    return dict(groups)
