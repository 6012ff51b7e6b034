"""The law of visits: what a reader's presence tells of its badge is what the badge did.

A visit begins with a read and ends with the first pause of LEAVE_MS. So an enter's stamp holds a sighting, a leave's stamp
one before such a pause, and while an agent is well each visit is told. What a reader saw while nobody read its port makes no
pause: silence says nothing then.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from whenabouts_sim.chaos.checks.landed import ENTER, Landed, LandedReading
from whenabouts_sim.chaos.checks.well import Spans
from whenabouts_sim.chaos.parts.gateway_part import LEAVE_MS, badge_of, presence_stream
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

LEAVE_US = LEAVE_MS * 1000
SURELY_US = LEAVE_US * 6 // 5  # a gateway's clock may be slewed by a twelfth
LEAVE = '"leave"'
UNSEEN_US = 500_000  # the longest between two looks at a port
BEFORE_US, AFTER_US = 500_000, 2_000_000  # a visit is told if its agent has run and runs for so long


def broken_visits(
    gateways: Sequence[tuple[str, str]],
    seen: Sequence[Sighting],
    reported: Sequence[Sighting],
    landed: Landed,
    lives: Mapping[str, Spans],
    rotten: Collection[tuple[str, ...]],
    shut: Mapping[str, Spans] = {},
    damaged: Sequence[Sighting] = (),
) -> Iterator[str]:
    """Visits that did not happen, and those that are missing. gateways: site and name, each with a badge on a reader of its
    own. seen: of which whole bytes went to a port; reported: of which they arrived. lives: by reader, when its agent surely
    could store. rotten: gateways that may have forgotten what they sent. shut: by reader, when its port was not open, so
    that silence said nothing. damaged: of which bytes were damaged, which noise may have mended.
    """
    for site, gateway in gateways:
        reader, stream = badge_of(gateway), presence_stream(badge_of(gateway))
        times = sorted(EPOCH_US + one.true_us for one in reported if one.reader == reader)
        hurt = [EPOCH_US + one.true_us for one in damaged if one.reader == reader]
        whole = [EPOCH_US + one.true_us for one in seen if one.reader == reader]
        possible, ends = sorted([*times, *hurt]), ends_of(sorted(whole)) + ends_of(sorted([*whole, *hurt]))
        told = [one for one in landed.readings if one.stream == stream]
        reads = [one for one in landed.readings if one.stream == f"{reader}/tags"]
        visits = [one for one in told if one.kind != "gap"]
        for one in visits:
            yield from _false(one, possible, ends)
        if (site, gateway) not in rotten:
            is_whole = len(visits) == len(told)  # else a gap reading counts what the spool refused
            yield from _unordered(visits, possible, is_whole)
            if is_whole and not any(one.kind == "gap" for one in reads):  # the stamps of those reads are not known
                yield from _missing(stream, pauses(times, reads, shut.get(reader, ())), visits, lives[reader])


def begins_of(times: Sequence[int]) -> list[int]:
    """The sightings behind a pause."""
    return [following for one, following in pairwise(times) if following - one > LEAVE_US]


def ends_of(times: Sequence[int]) -> list[int]:
    """The sightings before a pause, and the last."""
    return [one for one, following in pairwise(times) if following - one > LEAVE_US] + list(times[-1:])


def _false(one: LandedReading, times: Sequence[int], ends: Sequence[int]) -> Iterator[str]:
    wanted, what = (times, "sighting") if one.value == ENTER else (ends, "last sighting before a pause")
    if not any(one.t_min <= at_us <= one.t_max for at_us in wanted):
        yield f"{one.value} of {one.stream} in [{one.t_min}, {one.t_max}] holds no {what} of its badge"


def _unordered(visits: Sequence[LandedReading], times: Sequence[int], is_whole: bool) -> Iterator[str]:
    """Each visit begins once and ends at most once, later, and its length and its reads fit to its ends."""
    begun: dict[int, LandedReading] = {}
    counts = Counter((_attrs(one)["visit"], one.value) for one in visits)
    for (visit, value), count in counts.items():
        if count > 1:
            yield f"{value} of visit {visit} was told {count} times"
    for one in sorted(visits, key=lambda one: (one.boot, one.seq)):
        visit = _attrs(one)["visit"]
        if one.value == ENTER:
            begun[visit] = one
        elif visit in begun:
            if not _fit(begun[visit], one, times):
                yield f"leave of visit {visit} of {one.stream} does not fit to its enter: {_attrs(one)}"
        elif is_whole:
            yield f"leave of visit {visit} of {one.stream} was told, and no enter before"


def _fit(enter: LandedReading, leave: LandedReading, times: Sequence[int]) -> bool:
    """True if, for some begin and last read in the stamps, the least stay is not longer than the time between them, and the
    longest lasts to the latest moment at which the badge may have left.
    """
    said = _attrs(leave)
    lengths = [
        (end_us - begin_us, min(end_us + LEAVE_US, leave.t_max) - begin_us)
        for begin_us in times
        for end_us in times
        if enter.t_min <= begin_us <= enter.t_max and leave.t_min <= end_us <= leave.t_max
    ]
    most_reads = sum(enter.t_min <= at_us <= leave.t_max for at_us in times)
    is_long = any(said["stay_min_us"] <= least_us and most_us <= said["stay_max_us"] for least_us, most_us in lengths)
    return is_long and 1 <= said["reads"] <= most_reads


def pauses(
    times: Sequence[int], reads: Sequence[LandedReading], shut: Spans = (), surely_us: int = SURELY_US
) -> Iterator[tuple[int, int]]:
    """Sightings on both sides of each pause that stamps do not leave open, however the gateway's clock was slewed. The port
    was open for long enough in it. surely_us: what a pause is longer than.
    """
    stamps = [[one for one in reads if one.kind == "tag" and one.t_min <= at_us <= one.t_max] for at_us in times]
    widest_us = max((one.t_max - one.t_min for one in reads), default=0)
    shut = [(begin - UNSEEN_US - widest_us, end) for begin, end in shut]  # the last look before has a stamp, too
    for (one, before), (following, after) in pairwise(zip(times, stamps, strict=True)):
        ended_us, begun_us = max((x.t_max for x in before), default=0), min((x.t_min for x in after), default=0)
        if ended_us and any(end - begin > surely_us for begin, end in _without([(ended_us, begun_us)], shut)):
            yield one, following


def _without(spans: Spans, shut: Spans) -> Spans:
    """The spans without those in which a port was shut."""
    for begin, end in shut:
        pieces = ((since, min(until, begin)) for since, until in spans)
        spans = [*pieces, *((max(since, end), until) for since, until in spans)]
    return spans


def _missing(
    stream: str, pauses: Iterable[tuple[int, int]], visits: Sequence[LandedReading], lives: Spans
) -> Iterator[str]:
    for pause in pauses:
        if not any(since + BEFORE_US <= pause[0] and pause[1] <= until - AFTER_US for since, until in lives):
            continue
        for value, at_us in zip((LEAVE, ENTER), pause, strict=True):
            if not any(one.value == value and one.t_min <= at_us <= one.t_max for one in visits):
                yield f"{value} of {stream} at {at_us} was not told, though its agent was well"


def _attrs(one: LandedReading) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(one.attrs or "{}")
    return found
