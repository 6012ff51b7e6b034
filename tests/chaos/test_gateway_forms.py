"""What gateways have beside readers in some schedules."""

from dataclasses import replace
from random import Random

from whenabouts_sim.chaos.parts.job_rules import PLACES
from whenabouts_sim.chaos.schedule.gateway_forms import (
    DAMAGE,
    with_damage,
    with_extreme_errors,
    with_second_readers,
    with_sensors,
)
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule_run import run


def test_a_late_gateway_and_another_feed_each_stream_of_matches():
    """Gateways of two sites may have one name. No sighting is lost, and each is of a reader that there is."""
    for seed in range(40):
        drawn = draw(seed)
        if len(drawn.gateways) > 1 and not any(
            reader.endswith("-c") for one in drawn.gateways for reader, _ in one.readers
        ):
            late = drawn.gateways[-1]
            gateways, sightings = with_second_readers(Random(seed), drawn.gateways, drawn.sightings, late)
            feeding = [{stream for _, stream in one.readers} for one in gateways]
            for place in PLACES:
                assert f"{place}/tags" in feeding[-1]
                assert any(f"{place}/tags" in streams for streams in feeding[:-1])
            assert {(one.true_us, one.key) for one in sightings} == {(one.true_us, one.key) for one in drawn.sightings}
            readers = {reader for one in gateways for reader, _ in one.readers}
            assert {one.reader for one in sightings} <= readers


def test_some_clocks_are_wrong_by_as_much_as_they_claim():
    one = draw(3).gateways[0]
    drawn = replace(one, clock=replace(one.clock, errors=((0, 300), (5, -200))))
    found = {one.clock.errors for one in with_extreme_errors(Random(1), (drawn,) * 20)}
    assert found == {((0, 300), (5, -200)), ((0, 1000), (5, -1000))}


def test_sensors_send_keys_that_no_badge_has():
    """Their lines have no checksum, so their bytes are not damaged."""
    drawn = next(one for one in map(draw, range(100)) if not one.gateways[0].has_sensors)
    found = [with_sensors(Random(number), drawn.gateways, drawn.sightings) for number in range(100)]
    sensed = [(gateways, sightings) for gateways, sightings in found if gateways[0].has_sensors]
    assert 0 < len(sensed) < 40
    assert len({sightings[0].key for _, sightings in sensed}) == 3
    for gateways, sightings in sensed:
        assert all(one.damage != DAMAGE for one in with_damage(Random(1), 20 * gateways))
        upper = [one.key for one in sightings if len(one.key) == 10 and one.key == one.key.upper()]
        assert len(upper) < len(sightings) // 2


def test_what_sensors_measure_lands():
    drawn = next(one for one in map(draw, range(200)) if one.gateways[0].has_sensors and one.gateways[0].group)
    outcome = run(replace(drawn, faults=(), numbers=()))
    assert outcome.broken == []
    assert outcome.landed > 60
