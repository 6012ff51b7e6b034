"""Goods that leave a shelf at one site through the exit of the other: paid for or not, with an uplink that is cut.

Pure, added to a world by its seed. Goods are seen at the shelf, most of them at the checkout, then at the exit. Some are
never paid for; some were paid for, brought back to the shelf and then taken; some are paid for so late that the clocks
cannot tell whether before the exit. For a third of the time nothing comes from the checkout's gateway, and some goods are
paid for and carried out just then: by order of arrival they leave unpaid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from whenabouts_sim.world.clocks import plausible_clock
from whenabouts_sim.world.world import SECOND_US, FloorPlan, Route, SimReader, UplinkOutage, World, epc, glimpses

SHELF = SimReader("shelf-1", "warehouse", "gate-1", "shelf/tags", "m6e")
CHECKOUT = SimReader("checkout-1", "shop", "checkout-1", "checkout/tags", "m6e")
EXIT = SimReader("exit-1", "shop", "door-1", "exit/tags", "m6e")
SHOP_READERS = (SHELF, CHECKOUT, EXIT)

# Begin and end of the cut, as shares of the world's time.
CUT_SHARE = (0.4, 0.75)
LONGEST_US = 10 * SECOND_US  # of a journey, from the first sighting to the last
SHORTEST_WORLD_US = 25 * SECOND_US


def with_shoppers(world: World, goods: int, paid_in_cut: int = 2) -> World:
    """The world with `goods` more journeys, `paid_in_cut` of them paid for while nothing comes from the checkout.

    Raises:
        ValueError: the world is too short for that.
    """
    if world.duration_us < SHORTEST_WORLD_US:
        raise ValueError(
            f"world: {world.duration_us} us long, expected {SHORTEST_WORLD_US} for goods that are paid in a cut"
        )
    random = Random(f"shoppers/{world.seed}")
    end_us = world.epoch_us + world.duration_us
    begin_us, mended_us = (world.epoch_us + round(share * world.duration_us) for share in CUT_SHARE)
    floor = FloorPlan(random, world.epoch_us, end_us, SHOP_READERS)
    for _ in range(paid_in_cut):
        route = _paid(random)
        to_checkout_us = route[1][1][0]
        floor.place(
            epc(random), route, (begin_us + SECOND_US - to_checkout_us, begin_us + 2 * SECOND_US - to_checkout_us)
        )
    for number in range(goods - paid_in_cut):
        floor.place(epc(random), _ROUTES[number % len(_ROUTES)](random), (world.epoch_us, end_us - LONGEST_US - 1))
    clock = plausible_clock(random, world.epoch_us)
    return replace(
        world,
        readers=(*world.readers, *SHOP_READERS),
        clocks={**world.clocks, CHECKOUT.gateway: clock},
        sightings=tuple(sorted((*world.sightings, *floor.sightings()))),
        cut=UplinkOutage(CHECKOUT.gateway, begin_us, mended_us),
    )


def _paid(random: Random) -> Route:
    """Shelf, checkout, exit: two to three seconds from each to the next."""
    times = [0, random.randint(2_000_000, 3_000_000)]
    times.append(times[-1] + random.randint(2_500_000, 3_000_000))
    return [(reader, glimpses(random, at_us)) for reader, at_us in zip(SHOP_READERS, times, strict=True)]


def _stolen(random: Random) -> Route:
    return [(SHELF, glimpses(random, 0)), (EXIT, glimpses(random, random.randint(4_000_000, 6_000_000)))]


def _paid_before(random: Random) -> Route:
    """Paid for, brought back, and then taken without paying."""
    route = [(CHECKOUT, 0), (SHELF, random.randint(2_500_000, 3_000_000)), (EXIT, random.randint(7_000_000, 8_000_000))]
    return [(reader, glimpses(random, at_us)) for reader, at_us in route]


def _paid_at_last(random: Random) -> Route:
    """Seen at the exit a tenth to four tenths of a second after the checkout: closer than the clocks can resolve."""
    exit_us = random.randint(4_000_000, 6_000_000)
    return [(SHELF, [0]), (CHECKOUT, [exit_us - random.randint(100_000, 400_000)]), (EXIT, glimpses(random, exit_us))]


def _put_back(random: Random) -> Route:
    return [(SHELF, glimpses(random, 0))]


_ROUTES: list[Callable[[Random], Route]] = [_stolen, _paid, _paid_at_last, _stolen, _paid_before, _paid, _put_back]
