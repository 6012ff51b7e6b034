"""The promises of each heartbeat. Every reading that ended before its watermark is among those that it says are published,
and every gap reading, which tells what a full spool refused. What it says is not kept any more had been acknowledged.

Sooner broken than a frontier, which the ingest writes once a second and only when all that was published has landed.
"""

from collections.abc import Iterable, Iterator

from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.network.overheard import Said


def broken_promises(landed: Landed, heartbeats: Iterable[Said]) -> Iterator[str]:
    """For each gateway the first promise that does not hold. Cost: heartbeats times readings of a gateway."""
    of: dict[tuple[str, str], list[LandedReading]] = {}
    for one in landed.readings:
        of.setdefault((one.site, one.gateway), []).append(one)
    told = set[tuple[str, str]]()
    for said in heartbeats:
        place = said.beat.site, said.beat.gateway
        if place not in told and (text := _forgotten(said) or _unpublished(said, of.get(place, ()))):
            told.add(place)
            yield f"{place} {text}"


def _forgotten(said: Said) -> str:
    """Numbers that a heartbeat says are not kept, and that nobody had acknowledged."""
    for boot, (first, _) in said.beat.published.items():
        reach = said.confirmed.get(boot, -1)
        if first > reach + 1:
            return f"said that it keeps boot {boot} from {first} on, and had been acknowledged up to {reach}"
    return ""


def _unpublished(said: Said, readings: Iterable[LandedReading]) -> str:
    """The first reading before the watermark that is not among the published ones."""
    frontier_us = said.beat.frontier_us
    if frontier_us is None:
        return ""
    for one in readings:
        if one.t_max < frontier_us and not _published(one, said):
            return (
                f"said that all before {frontier_us} is published, up to {said.beat.published}; {one.stream} {one.key}, "
                f"boot {one.boot} number {one.seq}, ended {frontier_us - one.t_max} us before"
            )
    return ""


def _published(one: LandedReading, said: Said) -> bool:
    """What it does not name of an earlier boot was confirmed."""
    if one.boot in said.beat.published:
        return one.seq <= said.beat.published[one.boot][1]
    return one.boot < said.beat.boot and one.seq <= said.confirmed.get(one.boot, -1)
