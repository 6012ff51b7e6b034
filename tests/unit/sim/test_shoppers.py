"""Goods that are paid for or not: the world has every case, whatever its seed, and order of arrival is wrong in each."""

from itertools import pairwise

import pytest

from whenabouts_sim.judge.placement import Landed
from whenabouts_sim.judge.thefts import TheftRule, certain_thefts, naive_thefts
from whenabouts_sim.world.shoppers import CHECKOUT, EXIT, SHELF, SHOP_READERS, with_shoppers
from whenabouts_sim.world.world import SECOND_US, World

RULE = TheftRule(SHELF, CHECKOUT, EXIT, 20 * SECOND_US)
PAID_IN_CUT = 2


def world_of(seed):
    return with_shoppers(World.make(seed, 30, 20, 4), 16, PAID_IN_CUT)


def times_of(world):
    """Key -> reader -> true times, of goods."""
    times = {}
    for reader in SHOP_READERS:
        for sighting in world.of_reader(reader.name):
            times.setdefault(sighting.key, {}).setdefault(reader, []).append(sighting.true_us)
    return times


def stolen(world):
    """Goods at the exit whose last sighting before it was at the shelf, by true time."""
    reported = set()
    for key, at in times_of(world).items():
        if EXIT in at and not any(min(at[SHELF]) < paid < max(at[EXIT]) for paid in at.get(CHECKOUT, [])):
            reported.add(key)
    return reported


def landed(world):
    """Readings with the stamps that the wrong clocks give, in the order in which an uplink that is cut lets them through."""
    rows = []
    for reader in SHOP_READERS:
        for s in world.of_reader(reader.name):
            held = reader.gateway == world.cut.gateway and world.cut.begin_us <= s.true_us < world.cut.end_us
            arrives_us = world.cut.end_us if held else s.true_us
            stamp = world.clocks[reader.gateway].interval_us(s.true_us)
            rows.append((arrives_us, Landed(reader.gateway, reader.stream, s.key, 1, s.number, *stamp)))
    return [row for _, row in sorted(rows)]


@pytest.mark.parametrize("seed", range(20))
def test_the_base_world_stays_and_the_readers_keep_their_spacing(seed):
    """Sightings of the other readers do not change with shoppers; numbers count up, neighbours are far enough apart."""
    base, world = World.make(seed, 30, 20, 4), world_of(seed)
    assert [s for s in world.sightings if s.reader not in {r.name for r in SHOP_READERS}] == list(base.sightings)
    assert {name: world.clocks[name] for name in base.clocks} == base.clocks
    assert list(world.sightings) == sorted(world.sightings)
    for reader in SHOP_READERS:
        mine = world.of_reader(reader.name)
        assert [s.number for s in mine] == list(range(len(mine)))
        assert all(b.true_us - a.true_us >= reader.spacing_us for a, b in pairwise(mine))
        assert all(world.epoch_us <= s.true_us < world.epoch_us + world.duration_us for s in mine)


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_journey_is_there(seed):
    """
    shelf .......... exit              stolen
    shelf .. till .. exit              paid, some of them while the uplink is cut
    till .. shelf .. exit              paid before, then taken
    shelf ...... till+exit             paid at the last moment
    shelf                              put back
    """
    world = world_of(seed)
    journeys = list(times_of(world).values())
    ways = [[reader.name for reader in sorted(at, key=lambda r, at=at: min(at[r]))] for at in journeys]
    for way in (
        ["shelf-1", "exit-1"],
        ["shelf-1", "checkout-1", "exit-1"],
        ["checkout-1", "shelf-1", "exit-1"],
        ["shelf-1"],
    ):
        assert way in ways
    assert any(EXIT in at and CHECKOUT in at and 0 < min(at[EXIT]) - max(at[CHECKOUT]) < 400_001 for at in journeys)
    cut = world.cut
    hidden = [at for at in journeys if CHECKOUT in at and EXIT in at and min(at[CHECKOUT]) > cut.begin_us]
    assert sum(max(at[EXIT]) + SECOND_US < cut.end_us for at in hidden) >= PAID_IN_CUT


@pytest.mark.parametrize("seed", range(40))
def test_what_is_certain_is_true_and_the_order_of_arrival_is_wrong(seed):
    """By the clocks of the world: the rule emits exactly the stolen goods, an engine in order of arrival also paid ones."""
    world = world_of(seed)
    rows = landed(world)
    key_of = {row.id: row.key for row in rows}
    assert {key_of[a] for a, _ in certain_thefts(RULE, rows)} == stolen(world)
    assert len(stolen(world)) >= 5
    assert len(naive_thefts(RULE, rows) - stolen(world)) >= PAID_IN_CUT


def test_moving_a_world_moves_its_cut():
    """The uplink is cut at the same moment of the events."""
    world = world_of(1)
    moved = world.starting_at(world.epoch_us + 5)
    assert (moved.cut.begin_us - world.cut.begin_us, moved.cut.end_us - world.cut.end_us) == (5, 5)
    assert World.make(1, 30, 5).starting_at(0).cut is None


def test_a_world_too_short_for_a_cut_is_refused():
    """The error names the expected value."""
    with pytest.raises(ValueError, match="expected 25000000"):
        with_shoppers(World.make(1, 20, 5), 16)
