"""The laws of stamps, numbers, acknowledgements and frontiers."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.schedule.schedule import Schedule, stream_of
from whenabouts_sim.world.clocks import EPOCH_US

Acked = Mapping[tuple[str, str, int], int]
"""The highest number that was acknowledged, by site, gateway and boot."""


class Broken(NamedTuple):
    """A law that does not hold."""

    law: str
    text: str


Spans = Sequence[Sequence[int]]
BEFORE_US, AFTER_US = 500_000, 1_500_000  # a reading is safe if its agent has run and runs for so long


def broken_laws(schedule: Schedule, landed: Landed, acked: Acked, lives: Mapping[str, Spans]) -> list[Broken]:
    """Every law that does not hold. lives: for each reader the spans in which an agent surely could store its readings."""
    return [
        *(Broken("stamps", text) for text in _stamps(schedule, landed)),
        *(Broken("lost", text) for text in _lost(schedule, landed, lives)),
        *(Broken("numbers", text) for text in _numbers(landed, acked)),
        *(Broken("frontiers", text) for text in _frontiers(landed)),
    ]


def _stamps(schedule: Schedule, landed: Landed) -> Iterator[str]:
    """The true time is in every stamp."""
    true_us = {(stream_of(one.reader), one.key): EPOCH_US + one.true_us for one in schedule.sightings}
    seen: Counter[tuple[str, str | None]] = Counter()
    for one in landed.readings:
        if one.kind != "tag":
            continue
        seen[one.stream, one.key] += 1
        at_us = true_us.get((one.stream, one.key or ""))
        if at_us is None:
            yield f"{one.stream} {one.key} was never seen"
        elif not one.t_min <= at_us <= one.t_max:
            yield (
                f"the true time is not in the stamp of {one.stream} {one.key}: {at_us - one.t_min} us after its begin, "
                f"{one.t_max - at_us} us before its end"
            )
    for (stream, key), count in seen.items():
        if count > 1:
            yield f"{stream} {key} landed {count} times, and was seen once"


def _lost(schedule: Schedule, landed: Landed, lives: Mapping[str, Spans]) -> Iterator[str]:
    """What a reader saw while an agent was well has landed."""
    seen = {(one.stream, one.key) for one in landed.readings}
    for one in schedule.sightings:
        at_us = EPOCH_US + one.true_us
        safe = any(begin + BEFORE_US <= at_us <= end - AFTER_US for begin, end in lives[one.reader])
        if safe and (stream_of(one.reader), one.key) not in seen:
            yield f"{one.reader} {one.key} of {one.true_us / 1e6:.3f} s did not land, though its agent was well"


def _numbers(landed: Landed, acked: Acked) -> Iterator[str]:
    """What was acknowledged is in the landing, once; numbers have no gaps."""
    found: defaultdict[tuple[str, str, int], Counter[int]] = defaultdict(Counter)
    for one in landed.readings:
        found[one.site, one.gateway, one.boot][one.seq] += 1
    for place, reach in acked.items():
        missing = [n for n in range(reach + 1) if n not in found[place]]
        if missing:
            yield f"{place} was acknowledged up to {reach}, and {missing[:5]} of it did not land"
    for identity in landed.twice:
        yield f"{identity} landed twice in one part of the landing"
    for place, numbers in found.items():
        gaps = [n for n in range(max(numbers)) if n not in numbers]
        if gaps:
            yield f"{place} landed up to {max(numbers)} without {gaps[:5]}"


def _frontiers(landed: Landed) -> Iterator[str]:
    """A frontier never passes a reading that lands later."""
    for said in landed.frontiers:
        for one in landed.readings:
            if (
                one.file > said.file
                and (one.site, one.gateway) == (said.site, said.gateway)
                and one.stream in said.streams
                and one.t_max < said.frontier_us
                and one.kind != "gap"
            ):
                yield (
                    f"file {_named(said.file)} says that {said.site}/{said.gateway} is complete until {said.frontier_us}, "
                    f"and file {_named(one.file)} has {one.stream} {one.key}, which ended "
                    f"{said.frontier_us - one.t_max} us before"
                )
                break


def _named(file: FileId) -> str:
    return f"{file.part}/{file.number}" if file.part else str(file.number)
