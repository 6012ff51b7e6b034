"""Two sites, their readers, the goods and people that pass them: the true events and their times.

Pure and decided by one seed. Goods (EPC) pass the warehouse dock and, after a gap, the shop door; the gaps straddle the
distance d of the rule under test: most well inside, many closer to d than the clocks can resolve, some exactly d, some
far outside, some none at all. People (badges) pass the warehouse gate and the shop's till.
Two sightings by one reader are never closer than the reader can take on air (anti-collision is serial), which keeps
every frame within the reader's latency bound. Cost: O(n log n) in the number of sightings.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from whenabouts_sim.world.clocks import EPOCH_US, GatewayClock, plausible_clock

SECOND_US = 1_000_000

# One Gen2 read takes some milliseconds on air; a 47-byte record takes 4.08 ms on the wire, so the wire keeps up.
M6E_SPACING_US = 5_000
# The module reports the tag in its field again and again; sources say 50 ms to 1 s, 65 ms is a measured one.
RDM_REPEAT_US = 65_000

# Placing looks for a free moment at random; more tries than this mean that the readers are full.
PLACING_ATTEMPTS_MAX = 200

Model = Literal["m6e", "rdm6300"]


@dataclass(frozen=True)
class SimReader:
    """A reader: its name, the gateway it is wired to, and the stream its readings get."""

    name: str
    site: str
    gateway: str
    stream: str
    model: Model

    @property
    def spacing_us(self) -> int:
        """Least time between two sightings by this reader."""
        return M6E_SPACING_US if self.model == "m6e" else RDM_REPEAT_US


DOCK = SimReader("dock-1", "warehouse", "dock-1", "dock/tags", "m6e")
GATE = SimReader("gate-1", "warehouse", "gate-1", "gate/badges", "rdm6300")
DOOR = SimReader("door-1", "shop", "door-1", "door/tags", "m6e")
TILL = SimReader("till-1", "shop", "door-1", "till/badges", "rdm6300")
READERS = (DOCK, GATE, DOOR, TILL)


@dataclass(frozen=True, order=True)
class Sighting:
    """One event on air: `reader` saw `key` at `true_us`; (reader, number) names it, numbers count up in time."""

    true_us: int
    reader: str
    number: int
    key: str


@dataclass(frozen=True)
class UplinkOutage:
    """The uplink of `gateway` carries nothing from begin_us to end_us, true time; what is sent meanwhile arrives later."""

    gateway: str
    begin_us: int
    end_us: int


@dataclass(frozen=True)
class World:
    """Readers, the wrong clock of each gateway, every sighting in order of time, and perhaps an uplink that is cut."""

    seed: int
    epoch_us: int
    duration_us: int
    d_us: int
    readers: tuple[SimReader, ...]
    clocks: Mapping[str, GatewayClock]
    sightings: tuple[Sighting, ...]
    cut: UplinkOutage | None = None

    @classmethod
    def make(
        cls,
        seed: int,
        duration_s: int,
        items: int,
        people: int = 0,
        d_us: int = 2 * SECOND_US,
        offset_us_max: int = 300_000,
        epoch_us: int = EPOCH_US,
    ) -> World:
        """The world of a seed: all sightings lie in [epoch_us, epoch_us + duration_s seconds).

        Raises:
            ValueError: more goods or people than the readers can see in that time.
        """
        random = Random(f"world/{seed}")
        duration_us = duration_s * SECOND_US
        gateways = dict.fromkeys(reader.gateway for reader in READERS)
        clocks = {gateway: plausible_clock(random, epoch_us, offset_us_max) for gateway in gateways}
        end_us = epoch_us + duration_us
        unsure_us = clocks[DOCK.gateway].bound_us(end_us) + clocks[DOOR.gateway].bound_us(end_us)
        floor = FloorPlan(random, epoch_us, end_us, READERS)
        for _ in range(items):
            floor.place(epc(random), _item_route(random, d_us, unsure_us))
        for _ in range(people):
            floor.place(_badge(random), _person_route(random))
        return cls(seed, epoch_us, duration_us, d_us, READERS, clocks, floor.sightings())

    def of_reader(self, name: str) -> tuple[Sighting, ...]:
        """The sightings of one reader, in order of time."""
        return tuple(sighting for sighting in self.sightings if sighting.reader == name)

    def starting_at(self, true_us: int) -> World:
        """The world with its events moved as a whole to begin at `true_us`; the clocks stay as they are."""
        by_us = true_us - self.epoch_us
        moved = tuple(replace(sighting, true_us=sighting.true_us + by_us) for sighting in self.sightings)
        cut = self.cut and replace(self.cut, begin_us=self.cut.begin_us + by_us, end_us=self.cut.end_us + by_us)
        return replace(self, epoch_us=true_us, sightings=moved, cut=cut)


# A route: at which readers, and how long after the item's start it is seen there.
Route = list[tuple[SimReader, list[int]]]


class FloorPlan:
    """Puts routes on the readers so that no two sightings of a reader are closer than it can take."""

    def __init__(self, random: Random, start_us: int, end_us: int, readers: Iterable[SimReader]) -> None:
        self._random = random
        self._start_us = start_us
        self._end_us = end_us
        self._taken: dict[str, list[int]] = {reader.name: [] for reader in readers}
        self._seen: list[tuple[int, str, str]] = []
        self._last_us = start_us

    def place(self, key: str, route: Route, begin_us: tuple[int, int] | None = None) -> None:
        """Finds a start for the route: right after the previous one (a pallet) or anywhere; with `begin_us` within it.

        Raises:
            ValueError: there is no free moment for it.
        """
        route = self._within_time(route)
        length_us = max(after_us for _, times in route for after_us in times)
        for attempt in range(PLACING_ATTEMPTS_MAX):
            if begin_us is not None:
                at_us = self._random.randint(*begin_us)
            elif attempt == 0 and self._random.random() < 0.3:
                at_us = self._last_us + M6E_SPACING_US
            else:
                at_us = self._random.randint(self._start_us, max(self._start_us, self._end_us - length_us - 1))
            if at_us + length_us < self._end_us and self._free(at_us, route):
                self._take(at_us, key, route)
                return
        raise ValueError(
            f"world: no free moment for {key} in {PLACING_ATTEMPTS_MAX} tries, {len(self._seen)} sightings placed in "
            f"{(self._end_us - self._start_us) // SECOND_US} s; make it longer or pass fewer goods and people"
        )

    def sightings(self) -> tuple[Sighting, ...]:
        """Everything placed, numbered per reader in order of time."""
        numbers = dict.fromkeys(self._taken, 0)
        numbered = []
        for true_us, reader, key in sorted(self._seen):
            numbered.append(Sighting(true_us, reader, numbers[reader], key))
            numbers[reader] += 1
        return tuple(numbered)

    def _within_time(self, route: Route) -> Route:
        """The part of the route that fits into the duration: later sightings would happen after the end."""
        fits = [(r, [t for t in times if t < self._end_us - self._start_us]) for r, times in route]
        return [(reader, times) for reader, times in fits if times]

    def _free(self, at_us: int, route: Route) -> bool:
        return all(
            self._gap_us(reader.name, at_us + after_us) >= reader.spacing_us
            for reader, times in route
            for after_us in times
        )

    def _gap_us(self, reader: str, at_us: int) -> int:
        """Distance to the nearest sighting that the reader already has."""
        taken = self._taken[reader]
        index = bisect_left(taken, at_us)
        near = taken[max(0, index - 1) : index + 1]
        return min((abs(at_us - other_us) for other_us in near), default=SECOND_US)

    def _take(self, at_us: int, key: str, route: Route) -> None:
        for reader, times in route:
            for after_us in times:
                insort(self._taken[reader.name], at_us + after_us)
                self._seen.append((at_us + after_us, reader.name, key))
        self._last_us = at_us + route[0][1][0]


def _item_route(random: Random, d_us: int, unsure_us: int) -> Route:
    """Dock, then door after a gap; one item in ten goes the other way round."""
    gap_us = random.choices([gap for gap, _ in _GAPS], [weight for _, weight in _GAPS])[0](random, d_us, unsure_us)
    first, second = (DOCK, DOOR) if random.random() < 0.9 else (DOOR, DOCK)
    route: Route = [(first, glimpses(random, 0))]
    if gap_us is not None:
        route.append((second, glimpses(random, gap_us)))
    return route


def glimpses(random: Random, first_us: int) -> list[int]:
    """One pass through a portal: seen once, or up to four times 120 to 400 ms apart."""
    times = [first_us]
    for _ in range(random.choices([0, 1, 2, 3], [60, 20, 12, 8])[0]):
        times.append(times[-1] + random.randint(120_000, 400_000))
    return times


def _inside(random: Random, d_us: int, unsure_us: int) -> int | None:
    return random.randint(0, max(0, d_us - unsure_us))


def _around(random: Random, d_us: int, unsure_us: int) -> int | None:
    return max(0, d_us + random.randint(-unsure_us, unsure_us))


def _on_the_edge(random: Random, d_us: int, unsure_us: int) -> int | None:
    return d_us + random.randint(0, 1)


def _outside(random: Random, d_us: int, unsure_us: int) -> int | None:
    return random.randint(2 * d_us, 4 * d_us)


def _never(random: Random, d_us: int, unsure_us: int) -> int | None:
    return None


def _at_once(random: Random, d_us: int, unsure_us: int) -> int | None:
    return 0


_GAPS: list[tuple[Callable[[Random, int, int], int | None], int]] = [
    (_inside, 45),
    (_around, 25),
    (_on_the_edge, 5),
    (_outside, 10),
    (_never, 10),
    (_at_once, 5),
]


def _person_route(random: Random) -> Route:
    """Gate, and for two people in three the till some seconds later; the badge stays in the field a moment."""
    route: Route = [(GATE, _presence(random, 0))]
    if random.random() < 0.67:
        route.append((TILL, _presence(random, random.randint(SECOND_US, 10 * SECOND_US))))
    return route


def _presence(random: Random, first_us: int) -> list[int]:
    return [first_us + repeat * RDM_REPEAT_US for repeat in range(random.randint(1, 8))]


def epc(random: Random) -> str:
    """A tag on goods: SGTIN-96 by its header byte, the rest random: 12 bytes as upper-case hexadecimal."""
    return f"30{random.getrandbits(88):022X}"


def _badge(random: Random) -> str:
    """EM4100: one version byte, four of number, as the agent writes them."""
    return f"{random.getrandbits(40):010X}"
