"""The promise of each heartbeat: every reading that ended before its watermark is among those that it says are published,
and every gap reading, which tells what a full spool refused.

Sooner broken than a frontier, which the ingest writes once a second and only when all that was published has landed.
"""

from collections.abc import Iterable, Iterator

from whenabouts_protocol import Heartbeat
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading


def broken_promises(landed: Landed, heartbeats: Iterable[Heartbeat]) -> Iterator[str]:
    """For each gateway the first promise that does not hold. Cost: heartbeats times readings of a gateway."""
    of: dict[tuple[str, str], list[LandedReading]] = {}
    for one in landed.readings:
        of.setdefault((one.site, one.gateway), []).append(one)
    told = set[tuple[str, str]]()
    for beat in heartbeats:
        place = beat.site, beat.gateway
        if beat.frontier_us is None or place in told:
            continue
        for one in of.get(place, ()):
            if one.t_max < beat.frontier_us and not _published(one, beat):
                told.add(place)
                yield (
                    f"{place} said that all before {beat.frontier_us} is published, up to {beat.published}; {one.stream} "
                    f"{one.key}, boot {one.boot} number {one.seq}, ended {beat.frontier_us - one.t_max} us before"
                )
                break


def _published(one: LandedReading, beat: Heartbeat) -> bool:
    """What an earlier boot does not keep any more was confirmed."""
    if one.boot in beat.published:
        return one.seq <= beat.published[one.boot][1]
    return one.boot < beat.boot
