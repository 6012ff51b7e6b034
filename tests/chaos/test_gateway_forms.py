"""What gateways have beside readers in some schedules."""

from dataclasses import replace
from random import Random

from whenabouts_sim.chaos.parts.job_rules import PLACES
from whenabouts_sim.chaos.schedule.gateway_forms import with_extreme_errors, with_second_readers
from whenabouts_sim.chaos.schedule.schedule import draw


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
