"""The laws of stamps, numbers, acknowledgements and frontiers."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from whenabouts_protocol.group_state import KIND
from whenabouts_sim.chaos.checks.landed import Id, Landed, LandedReading
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.schedule.schedule import Schedule, stream_of
from whenabouts_sim.readers.line import temperature
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

Acked = Mapping[tuple[str, str, int], int]
"""The highest number that was acknowledged, by site, gateway and boot."""


class Broken(NamedTuple):
    """A law that does not hold."""

    law: str
    text: str


Spans = Sequence[Sequence[int]]
CALM_US = 120_000_000  # no schedule goes on for longer after its last event
REACH_US = 1_100_000  # of any reader: its latency, the adapter's, and the time on the wire
BEFORE_US, AFTER_US = 500_000, 1_500_000  # a reading is safe if its agent has run and runs for so long


def broken_laws(
    schedule: Schedule,
    landed: Landed,
    acked: Acked,
    lives: Mapping[str, Spans],
    reported: Sequence[Sighting] | None = None,
) -> list[Broken]:
    """Every law that does not hold. lives: for each reader the spans in which an agent surely could store its readings.
    reported: sightings that readers could tell, by undamaged bytes on an open line; None: all.
    """
    rotten = gateways_with_rot(schedule)
    return [
        *(Broken("stamps", text) for text in _stamps(schedule, landed, rotten)),
        *(Broken("lost", text) for text in _lost(schedule.sightings if reported is None else reported, landed, lives)),
        *(Broken("gaps", text) for text in _counted_twice(schedule, landed, rotten)),
        *(Broken("numbers", text) for text in _numbers(landed, acked, rotten, _failed(schedule))),
        *(Broken("frontiers", text) for text in _frontiers(landed, rotten)),
    ]


def _stamps(schedule: Schedule, landed: Landed, rotten: Collection[tuple[str, ...]]) -> Iterator[str]:
    """The true time is in every stamp, what was measured in every value, and nothing comes twice, but where the journal of a
    spool forgot that it was sent.
    """
    seen_in: defaultdict[tuple[str, str], list[Sighting]] = defaultdict(list)
    for sighting in schedule.sightings:
        seen_in[stream_of(sighting.reader), sighting.key].append(sighting)
    seen: Counter[tuple[str, str]] = Counter()
    for one in landed.readings:
        if not one.is_seen:  # visits have a law of their own
            continue
        place = one.stream, one.key or ""
        seen[place] += (one.site, one.gateway) not in rotten
        possible = [x for x in seen_in.get(place, ()) if one.t_min <= EPOCH_US + x.true_us <= one.t_max]
        if place not in seen_in:
            yield f"{one.stream} {one.key} was never seen"
        elif not possible:
            first_us = EPOCH_US + seen_in[place][0].true_us
            yield (
                f"the true time is not in the stamp of {one.stream} {one.key}: {first_us - one.t_min} us after its begin, "
                f"{one.t_max - first_us} us before its end"
            )
        elif one.kind == "measure" and json.loads(one.value or "null") not in {
            temperature(schedule.seed, x.reader, x.number, EPOCH_US + x.true_us) for x in possible
        }:
            yield f"{one.stream} {one.key} has the value {one.value}, which was not measured then"
    begin_us, end_us = EPOCH_US - 1, EPOCH_US + schedule.last_us + CALM_US
    for one in landed.readings:  # gaps too; when a state began its own law tells
        # The first state of a start begins where its ports are clear: before it, by the latency of its readers. A gap may
        # count it.
        since_us = begin_us - REACH_US if one.kind in (KIND, "gap") else begin_us
        if one.t_max < since_us or one.t_min > end_us:
            stamp = f"[{one.t_min}, {one.t_max}]"
            yield f"{one.kind} {one.identity} of {one.stream} has the stamp {stamp}, outside of the schedule"
    for place, count in seen.items():
        if place in seen_in and count > len(seen_in[place]):
            yield f"{place[0]} {place[1]} landed {count} times, and was seen {len(seen_in[place])} times"


def _lost(reported: Sequence[Sighting], landed: Landed, lives: Mapping[str, Spans]) -> Iterator[str]:
    """What a reader told while an agent was well has landed, or a gap reading around its time counts it."""
    stamps = defaultdict[str, list[_Span]](list)
    for one in landed.readings:
        is_gap = one.kind == "gap"
        room = int(one.value or 0) if is_gap else 1
        stamps[one.stream].append(_Span(one.t_min, one.t_max, None if is_gap else one.key or "", room))
    wanted = defaultdict[str, list[Sighting]](list)
    for sighting in reported:
        at_us = EPOCH_US + sighting.true_us
        if any(begin + BEFORE_US <= at_us <= end - AFTER_US for begin, end in lives[sighting.reader]):
            wanted[stream_of(sighting.reader)].append(sighting)
    for stream, sightings in wanted.items():
        for missed in _without_stamp(sightings, stamps[stream]):
            yield f"{missed.reader} {missed.key} of {missed.true_us / 1e6:.3f} s did not land, though its agent was well"


@dataclass
class _Span:
    """A stamp, and the sightings that it is taken for: of its key, or as many of any key as a gap reading counts."""

    begin_us: int
    end_us: int
    key: str | None
    room: int
    of: list[Sighting] = field(default_factory=list)

    def fits(self, one: Sighting) -> bool:
        return self.key in (None, one.key) and self.begin_us <= EPOCH_US + one.true_us <= self.end_us


def _without_stamp(sightings: Iterable[Sighting], spans: Sequence[_Span]) -> list[Sighting]:
    """The sightings that are left if as many as possible get a stamp of their own (a matching by augmenting paths)."""

    def place(one: Sighting, tried: set[int]) -> bool:
        for number, span in enumerate(spans):
            if number in tried or not span.fits(one):
                continue
            tried.add(number)
            if len(span.of) < span.room:
                span.of.append(one)
                return True
            for n, other in enumerate(span.of):
                if place(other, tried):
                    span.of[n] = one
                    return True
        return False

    return [one for one in sightings if not place(one, set())]


def _counted_twice(schedule: Schedule, landed: Landed, rotten: Collection[tuple[str, ...]]) -> Iterator[str]:
    """A reading lands, or a gap reading counts it, never both."""
    seen = Counter(stream_of(one.reader) for one in schedule.sightings)
    sound = [one for one in landed.readings if (one.site, one.gateway) not in rotten]
    found = Counter(one.stream for one in sound if one.is_seen)
    lost = Counter[str]()
    for one in sound:
        if one.kind == "gap":
            lost[one.stream] += int(one.value or 0)
    for stream, count in lost.items():
        if stream in seen and found[stream] + count > seen[stream]:
            yield f"of {seen[stream]} readings of {stream} {found[stream]} landed, and {count} are counted as lost"


def _comes_again(
    one: LandedReading,
    first: Mapping[tuple[str | None, ...], Id],
    gaps: Sequence[LandedReading],
    rotten: Collection[tuple[str, ...]],
) -> bool:
    """True for a repeat with another number, of a gateway whose spool was damaged; or for what an earlier start had counted
    as refused, if the spool has forgotten that.
    """
    is_first = first[one.site, one.gateway, one.stream, one.key] == one.identity
    is_counted = any(
        gap.identity[:2] == one.identity[:2]
        and gap.stream == one.stream
        and gap.boot < one.boot
        and gap.t_min <= one.t_max
        and one.t_min <= gap.t_max
        for gap in gaps
    )
    return (one.site, one.gateway) in rotten and (is_counted or not is_first)


def gateways_with_rot(schedule: Schedule) -> set[tuple[str, ...]]:
    """Site and name of the gateways whose spools were damaged: what was not acknowledged by then may be lost."""
    return {tuple(fault.target.split("/")) for fault in schedule.faults if fault.kind == "bit_rot"}


def _failed(schedule: Schedule) -> bool:
    """True if a write failed: what was written may be there even so, and is written again, as readers drop repeats."""
    return any(fault.kind in ("fails_at_write", "sync_fails") for fault in schedule.faults)


def _numbers(landed: Landed, acked: Acked, rotten: Collection[tuple[str, ...]], failed: bool) -> Iterator[str]:
    """What was acknowledged is in the landing, once, unless a write failed; numbers have no gaps."""
    found: defaultdict[tuple[str, str, int], Counter[int]] = defaultdict(Counter)
    for one in landed.readings:
        found[one.site, one.gateway, one.boot][one.seq] += 1
    for place, reach in acked.items():
        missing = [n for n in range(reach + 1) if n not in found[place]]
        if missing:
            yield f"{place} was acknowledged up to {reach}, and {missing[:5]} of it did not land"
    for identity in () if failed else landed.twice:
        yield f"{identity} landed twice in one part of the landing"
    for place, numbers in found.items():
        gaps = [n for n in range(max(numbers, default=0)) if n not in numbers]
        if gaps and place[:2] not in rotten:
            yield f"{place} landed up to {max(numbers)} without {gaps[:5]}"


def _frontiers(landed: Landed, rotten: Collection[tuple[str, ...]]) -> Iterator[str]:
    """A frontier never passes a reading that lands later; what a spool's journal forgot to have sent comes again, later."""
    first: dict[tuple[str | None, ...], Id] = {}
    for one in landed.readings:
        first.setdefault((one.site, one.gateway, one.stream, one.key), one.identity)
    gaps = [one for one in landed.readings if one.kind == "gap"]
    for said in landed.frontiers:
        for one in landed.readings:
            if (
                one.file > said.file
                and (one.site, one.gateway) == (said.site, said.gateway)
                and one.stream in said.streams
                and one.t_max < said.frontier_us
                and one.kind != "gap"
                and not _comes_again(one, first, gaps, rotten)
            ):
                yield (
                    f"file {_named(said.file)} says that {said.site}/{said.gateway} is complete until {said.frontier_us}, "
                    f"and file {_named(one.file)} has {one.stream} {one.key}, which ended "
                    f"{said.frontier_us - one.t_max} us before"
                )
                break


def future_frontiers(landed: Landed) -> Iterator[str]:
    """No frontier, also of a gateway that lies, is later than its file: else nobody would wait for the others."""
    for said in landed.frontiers:
        ahead_us = said.frontier_us - EPOCH_US - said.file.at_us
        if ahead_us > 0:
            yield f"file {_named(said.file)} says that {said.site}/{said.gateway} is complete until {ahead_us} us after it"


def _named(file: FileId) -> str:
    return f"{file.part}/{file.number}" if file.part else str(file.number)
