"""The law of clock states: what a reading says of its gateway's clock, and its unit."""

import pytest

from support.landed_readings import landed
from whenabouts_sim.chaos.checks.clocks.clock_states import STATES, broken_clock_states
from whenabouts_sim.chaos.checks.landed import Landed
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import SECOND_US, Sighting

LATER_S = 60
ALWAYS = ((0, LATER_S),)


def broken(at_s, known=((0, 10), (20, LATER_S)), lives=ALWAYS, disk_s=0.0, are_held_up=False, patient=(), **columns):
    """What the law says of a reading of this moment. known, lives: spans of seconds."""
    at_us = int(at_s * SECOND_US)
    clock = ClockPlan(known=tuple((begin * SECOND_US, end * SECOND_US, 1000) for begin, end in known))
    plan = GatewayPlan("hall", "gw-1", (("dock", "dock/tags"),), clock, disk_s=disk_s)
    columns = {"stream": "dock/tags", **columns}
    one = landed(seq=0, t_min=EPOCH_US + at_us - 5, t_max=EPOCH_US + at_us + 5, **columns)
    spans = [[EPOCH_US + begin * SECOND_US, EPOCH_US + end * SECOND_US] for begin, end in lives]
    sightings = [Sighting(at_us, "dock", 0, "K")]
    found = broken_clock_states([plan], sightings, Landed([one], []), {"dock": spans}, are_held_up, patient)
    return list(found)


def allowed(at_s, **more):
    """The states that break no law at this moment."""
    return {one for one in STATES if not broken(at_s, clock_state=one, **more)}


def test_far_from_a_change_one_state_is_right():
    assert allowed(5) == {"bounded"}
    assert allowed(15) == {"free-running"}
    assert allowed(25) == {"bounded"}
    assert allowed(15, lives=((9, LATER_S),)) == {"free-running"}
    [text] = broken(15, clock_state="bounded")
    assert "says that its clock was bounded, expected free-running" in text


@pytest.mark.parametrize("at_s", [9.7, 10.1, 11.1, 19.7, 20.1, 21.1])
def test_near_a_change_every_state_is_right(at_s):
    assert allowed(at_s) == STATES


def test_what_may_have_waited_for_utc_has_any_state():
    """As UTC was not known, or the agent had just begun or ends soon."""
    assert allowed(5, known=((10, LATER_S),)) == STATES
    assert allowed(15, known=((9, 10), (20, LATER_S))) == STATES
    assert allowed(15, lives=((9.8, LATER_S),)) == STATES
    assert allowed(15, lives=((0, 15.3),)) == STATES
    assert allowed(15, lives=((0, 8), (9.8, LATER_S))) == STATES
    assert allowed(5, lives=((4, LATER_S),)) == STATES
    assert allowed(5, lives=()) == STATES


def test_what_may_be_behind_readings_that_wait_for_utc_has_any_state():
    """Few are stored at once."""
    assert allowed(5, known=((2, LATER_S),), are_held_up=True) == STATES
    assert allowed(5, known=((2, LATER_S),)) == {"bounded"}
    assert allowed(5, known=((0, LATER_S),), are_held_up=True) == {"bounded"}


def test_with_a_slow_disk_a_sample_may_be_older():
    assert allowed(12, known=((0, 10),)) == {"free-running"}
    assert allowed(12, known=((0, 10),), disk_s=0.5) == STATES


def test_a_unit_belongs_to_a_kind():
    """That of a measure to who made it: a sensor, or a rule of the gateway."""
    assert broken(5, kind="gap", unit="{readings}") == []
    [text] = broken(5, unit="mm")
    assert "has the unit mm, expected None" in text
    assert len(broken(5, kind="gap")) == 1
    assert broken(5, kind="measure", unit="Cel") == []
    [text] = broken(5, kind="measure", unit="[ppm]")
    assert "expected Cel" in text
    assert broken(5, stream="$rule/near", kind="measure", unit="[ppm]") == []


def test_what_waits_until_utc_is_known_has_a_time():
    """Unless its machine is started again, or too much waits."""
    unknown = ((10, LATER_S),)
    assert allowed(5, known=unknown, patient={("hall", "gw-1")}) == {"bounded", "free-running"}
    assert allowed(5, known=unknown, patient={("shop", "gw-1")}) == STATES
