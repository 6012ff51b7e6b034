"""What gateways have beside readers: names, small spools, damaged lines, rules of their own, and long times without UTC."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from random import Random

from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan, badge_of
from whenabouts_sim.chaos.parts.job_rules import PLACES
from whenabouts_sim.chaos.parts.rule_form import LENGTH_MS, Near, Sending
from whenabouts_sim.chaos.schedule.fault import Fault
from whenabouts_sim.readers.faults import Faults
from whenabouts_sim.world.world import SECOND_US, Sighting

DAMAGE = Faults(split=100, noise=100, flipped=60, head_lost=40, glued=40)
SECOND_READER = "-c"  # behind the name of a reader: another one of its stream, on another gateway
PART_RULES = 0.7  # of gateways with both streams of their own rule
LENGTHS_MS = (LENGTH_MS, LENGTH_MS, 600, 250)  # of stamps, as rules of gateways declare them
PART_SENT = 0.4  # of those, unless the broker forgets what it retains: with rules that they are sent
PART_SENSORS, PART_SENSORS_GROUPED = 0.15, 0.5  # of schedules: with sensors in place of readers
PART_DAMAGED = 0.1  # of gateways: with bytes that are damaged on the wire
GAP_BYTES = 100  # more than a gap reading needs in a message
PART_WITHOUT_UTC = 0.1  # of schedules: with a gateway that starts several times while it does not know UTC
PART_LONG_START = 0.4  # of those: with a start so long that all it reads must be stored, between two others
PART_SLOW_CLOCKS, SLOW_CLOCK_S = 0.06, 3.0  # of schedules: with an answer each so many seconds
PART_SMALL, PART_SMALL_GROUPED = 0.15, 0.25  # of gateways: with a spool that has room for a few messages


def with_small_spools(chance: Random, gateways: tuple[GatewayPlan, ...]) -> tuple[GatewayPlan, ...]:
    """Some gateways with a spool that is soon full, so that it refuses readings. It has room for a message that counts those
    of all streams.
    """
    return tuple(
        replace(one, spool_bytes=max(chance.choice((400, 1000, 3000)), GAP_BYTES * (1 + len(one.readers))))
        if chance.random() < (PART_SMALL_GROUPED if one.group else PART_SMALL)
        else one
        for one in gateways
    )


def with_names(chance: Random, gateways: tuple[GatewayPlan, ...]) -> tuple[GatewayPlan, ...]:
    """The gateways, in half of the schedules with names that only their site makes unique."""
    if chance.random() < 0.5:
        return gateways
    return tuple(
        replace(one, name=f"gw-{1 + sum(other.site == one.site for other in gateways[:number])}")
        for number, one in enumerate(gateways)
    )


def with_sensors(
    chance: Random, gateways: tuple[GatewayPlan, ...], sightings: Iterable[Sighting]
) -> tuple[tuple[GatewayPlan, ...], tuple[Sighting, ...]]:
    """The gateways, in some schedules with sensors that send lines of text; and what these see, with keys that are no upper-
    case hexadecimal digits, or an odd number of them.
    """
    if chance.random() >= (PART_SENSORS_GROUPED if gateways[0].group else PART_SENSORS):
        return gateways, tuple(sightings)
    of = chance.choice((str.lower, lambda key: key[1:], lambda key: f"Kärtchen {key}"))
    badges = {badge_of(one.name) for one in gateways}
    seen = (one if one.reader in badges else replace(one, key=of(one.key)) for one in sightings)
    return tuple(replace(one, has_sensors=True) for one in gateways), tuple(seen)


def with_damage(chance: Random, gateways: tuple[GatewayPlan, ...]) -> tuple[GatewayPlan, ...]:
    """Some gateways with bytes that are split, changed or lost on their lines, and others between them. Lines of text have
    no checksum that could tell.
    """
    return tuple(
        replace(one, damage=DAMAGE) if chance.random() < PART_DAMAGED and not one.has_sensors else one
        for one in gateways
    )


def with_rules(chance: Random, sides: Random, gateways: tuple[GatewayPlan, ...]) -> tuple[GatewayPlan, ...]:
    """A rule of its own for each gateway that has both of its streams, but some."""
    return tuple(
        replace(one, near=_near(chance, sides)) if _can_pair(one) and chance.random() < PART_RULES else one
        for one in gateways
    )


def _can_pair(gateway: GatewayPlan) -> bool:
    return {"dock/tags", "door/tags"} <= {stream for _, stream in gateway.readers}


def with_sent_rules(
    chance: Random, gateways: tuple[GatewayPlan, ...], active_us: int, is_growing: bool
) -> tuple[GatewayPlan, ...]:
    """Gateways that are sent rules over the broker, some of them several times: more rules, and, unless they may only grow,
    others and none.
    """
    return tuple(
        replace(one, sent=tuple(_sendings(chance, active_us, is_growing)))
        if _can_pair(one) and chance.random() < PART_SENT
        else one
        for one in gateways
    )


def _sendings(chance: Random, active_us: int, is_growing: bool) -> Iterator[Sending]:
    near, close, closer = _near(chance, chance), _near(chance, chance), _near(chance, chance)
    close, closer = close._replace(name="close"), closer._replace(name="close")
    times = sorted(chance.randint(0, active_us) for _ in range(chance.choice((1, 2, 3))))
    if is_growing:
        yield from (Sending(at_us, rules) for at_us, rules in zip(times, ((near,), (near, close)), strict=False))
        return
    for at_us in times:
        yield Sending(at_us, chance.choice(((near,), (near, close), (near, close), (close,), (closer,), (), None)))


def _near(chance: Random, sides: Random) -> Near:
    """Limits that are the same before and after, or not, or both after. Stamps longer than declared may miss partners."""
    distance_ms, percent = chance.choice((300, 1000, 2000)), chance.choice((10, 50, 100))
    least_ms = sides.choice((-distance_ms, -distance_ms, 0, -distance_ms // 4, distance_ms // 2))
    return Near(least_ms, distance_ms, percent, length_ms=sides.choice(LENGTHS_MS))


def with_extreme_errors(chance: Random, gateways: tuple[GatewayPlan, ...]) -> tuple[GatewayPlan, ...]:
    """The gateways, half of them with clocks that are wrong by as much as they claim."""
    return tuple(
        replace(
            one,
            clock=replace(one.clock, errors=tuple((at, 1000 if part > 0 else -1000) for at, part in one.clock.errors)),
        )
        if chance.random() < 0.5
        else one
        for one in gateways
    )


def with_slow_clocks(
    chance: Random, gateways: tuple[GatewayPlan, ...], active_us: int
) -> tuple[tuple[GatewayPlan, ...], float]:
    """The gateways, in some schedules with sources of UTC that seldom answer, while time services slew their clocks; and how
    often these answer, 0 for the usual time.
    """
    if chance.random() >= PART_SLOW_CLOCKS:
        return gateways, 0.0
    slewed = []
    for one in gateways:
        begin_us, ppm = chance.randint(0, active_us // 2), chance.choice((-500, 500, -30_000, 30_000))
        slews = ((begin_us, begin_us + active_us, ppm),)
        slewed.append(replace(one, clock=replace(one.clock, slews=slews)))
    return tuple(slewed), SLOW_CLOCK_S


def with_second_readers(
    chance: Random, gateways: tuple[GatewayPlan, ...], sightings: Iterable[Sighting], late: GatewayPlan
) -> tuple[tuple[GatewayPlan, ...], tuple[Sighting, ...]]:
    """The gateways with one more reader for each stream of matches, so that the late one and another feed it; and what is
    seen, in part by those.
    """
    added: dict[GatewayPlan, list[tuple[str, str]]] = {one: [] for one in gateways}
    for place in PLACES:
        has_it = any(reader == place for reader, _ in late.readers)
        owner = chance.choice([one for one in gateways if one is not late]) if has_it else late
        added[owner].append((f"{place}{SECOND_READER}", f"{place}/tags"))
    seen = tuple(
        replace(one, reader=one.reader + SECOND_READER) if one.reader in PLACES and chance.random() < 0.5 else one
        for one in sightings
    )
    plans = tuple(replace(one, readers=(*one.readers, *added[one])) for one in gateways)
    return plans, tuple(sorted(seen))


def without_utc(
    chance: Random, gateways: tuple[GatewayPlan, ...], active_us: int
) -> tuple[tuple[GatewayPlan, ...], tuple[Fault, ...]]:
    """The gateways, in some schedules one of them without UTC for long, from the begin or later; and its starts then."""
    if chance.random() >= PART_WITHOUT_UTC:
        return gateways, ()
    chosen = chance.choice(gateways)
    since_us, known_us = (
        chance.choice((0, chance.randint(SECOND_US, active_us // 2))),
        chance.randint(active_us // 2, active_us),
    )
    bound_us = chosen.clock.known[0][2]
    is_long = chance.random() < PART_LONG_START
    if is_long:
        first_us = chance.randint(800, 1300) * 1000
        last_us = first_us + chance.randint(2500, 3200) * 1000
        since_us, known_us = 0, last_us + chance.randint(400, 1500) * 1000
    before = ((chance.choice((-10 * SECOND_US, since_us // 2)), since_us, bound_us),) if since_us else ()
    clock = replace(chosen.clock, known=(*before, (known_us, 1 << 60, bound_us)))
    begin_us = max(since_us, SECOND_US // 2)
    times = sorted(chance.randint(begin_us, max(begin_us, known_us)) for _ in range(chance.choice((2, 3))))
    times = [first_us, last_us] if is_long else times
    restarts = (
        Fault(
            chance.choice(("kill", "power_cut", "end")),
            at_us,
            chance.randint(1, 300) * 1000,
            f"{chosen.site}/{chosen.name}",
        )
        for at_us in times
    )
    return tuple(replace(one, clock=clock) if one is chosen else one for one in gateways), tuple(restarts)
