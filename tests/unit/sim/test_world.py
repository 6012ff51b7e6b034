"""The simulated world: one seed decides it, and it contains every case that the rule under test must distinguish."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from whenabouts_sim.world.world import DOCK, DOOR, GATE, READERS, TILL, World


def gaps_us(world: World) -> list[int | None]:
    """First door sighting minus first dock sighting of each item, None where one is missing."""
    first: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for sighting in world.sightings:
        first[sighting.key].setdefault(sighting.reader, sighting.true_us)
    items = [seen for seen in first.values() if DOCK.name in seen or DOOR.name in seen]
    return [seen[DOOR.name] - seen[DOCK.name] if len(seen) == 2 else None for seen in items]


def test_same_seed_same_world_other_seed_other_world():
    """Clocks, sightings and their order are a function of the seed."""
    assert World.make(7, 60, 40, 10) == World.make(7, 60, 40, 10)
    assert World.make(7, 60, 40, 10) != World.make(8, 60, 40, 10)


@pytest.mark.parametrize("seed", range(20))
def test_sightings_are_ordered_numbered_in_time_and_spaced_as_the_reader_needs(seed):
    """Numbers count up from 0 per reader; neighbours of one reader are never closer than its spacing."""
    world = World.make(seed, 30, 60, 10)
    end_us = world.epoch_us + world.duration_us
    assert list(world.sightings) == sorted(world.sightings)
    assert all(world.epoch_us <= sighting.true_us < end_us for sighting in world.sightings)
    for reader in READERS:
        mine = world.of_reader(reader.name)
        assert [sighting.number for sighting in mine] == list(range(len(mine)))
        assert all(b.true_us - a.true_us >= reader.spacing_us for a, b in pairwise(mine))


def test_gaps_straddle_the_distance_of_the_rule():
    """
    gap   0 ......... d-u ....[ d | d+1 ].... d+u ........ 2d ...... 4d    or never
          at once, inside     around, exactly             far outside
    """
    world = World.make(1, 300, 400, d_us=2_000_000)
    gaps = gaps_us(world)
    known = [gap for gap in gaps if gap is not None]
    unsure_us = sum(world.clocks[reader.gateway].bound_us(world.epoch_us) for reader in (DOCK, DOOR))
    counts = Counter(
        at_once=sum(gap == 0 for gap in known),
        inside=sum(0 < abs(gap) < world.d_us - unsure_us for gap in known),
        around=sum(abs(abs(gap) - world.d_us) <= unsure_us for gap in known),
        tie=sum(abs(gap) == world.d_us for gap in known),
        just_over=sum(abs(gap) == world.d_us + 1 for gap in known),
        far=sum(abs(gap) >= 2 * world.d_us for gap in known),
        other_way=sum(gap < 0 for gap in known),
        never=gaps.count(None),
    )
    assert len(gaps) == 400
    assert all(counts.values()), counts
    assert counts["inside"] > counts["around"] > counts["far"], counts


def test_items_are_seen_several_times_and_badges_repeat():
    """A pass through a portal gives one to four sightings 120 to 400 ms apart, a badge one every 65 ms."""
    world = World.make(2, 300, 200, 40)
    of_key = defaultdict(list)
    for sighting in world.sightings:
        of_key[sighting.reader, sighting.key].append(sighting.true_us)
    for (reader, key), times in of_key.items():
        steps = {b - a for a, b in pairwise(times)}
        if reader in (GATE.name, TILL.name):
            assert len(key) == 10
            assert steps <= {65_000}
        else:
            assert len(key) == 24
            assert all(120_000 <= step <= 400_000 for step in steps)
    assert {len(times) for (reader, _), times in of_key.items() if reader == DOCK.name} == {1, 2, 3, 4}
    assert key == key.upper()


def test_pallets_follow_each_other_at_the_least_spacing():
    """Some items pass the dock right behind the one before: the densest that a portal sees."""
    mine = World.make(4, 60, 100).of_reader(DOCK.name)
    assert any(b.true_us - a.true_us == DOCK.spacing_us and a.key != b.key for a, b in pairwise(mine))


def test_moving_a_world_keeps_every_gap():
    """`starting_at` shifts all events by the same time and does not change the clocks."""
    world = World.make(5, 20, 20, 5)
    moved = world.starting_at(world.epoch_us + 12_345)
    assert [b.true_us - a.true_us for a, b in zip(world.sightings, moved.sightings, strict=True)] == [12_345] * len(
        world.sightings
    )
    assert moved.clocks == world.clocks


def test_more_people_than_the_readers_can_see_is_refused():
    """An overfull world raises an error instead of never ending."""
    with pytest.raises(ValueError, match="make it longer or pass fewer"):
        World.make(1, 2, 0, people=100)
