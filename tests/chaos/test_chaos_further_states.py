"""The laws of further values of a state: by when a badge was truly read, and what a sensor truly measured."""

import json
from dataclasses import replace
from random import Random

from whenabouts_protocol.group_state import attrs_of
from whenabouts_sim.chaos.checks.gateways.further_states import broken_further_states
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan, badge_key
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.parts.state_form import Stays, Warm
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule.state_forms import with_further_states
from whenabouts_sim.chaos.schedule_run import run
from whenabouts_sim.readers.line import temperature
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

MS = 1000
BADGE = badge_key("gw-1")
SEEN = [Sighting(at * MS, "badge1", at, BADGE) for at in (2000, 2060, 2120, 5000)]
READERS = ("dock", "dock/tags"), ("badge1", "badge1/tags")
PLAN = GatewayPlan("hall", "gw-1", READERS, ClockPlan(), has_sensors=True, group=("hall/gw-1",))
STAYS, LEAVE_MS = Stays(2, 500), 500
SEED = 3


def state(number, begin_ms, end_ms, **values):
    attrs = attrs_of("staff", 7, 0, {name: value for name, value in values.items() if value is not None}, False)
    return LandedReading(
        FileId(0, 1), "hall", "gw-1", 7, number, "gw-1/state", "state", None,
        EPOCH_US + begin_ms * MS, EPOCH_US + end_ms * MS, None, json.dumps(attrs), (number, 0),
    )  # fmt: skip


def read(one):
    """The reading of a sighting, with a stamp of 20 ms."""
    stamp = EPOCH_US + one.true_us - 10 * MS, EPOCH_US + one.true_us + 10 * MS
    stream = f"{one.reader}/tags"
    return LandedReading(
        FileId(0, 1), "hall", "gw-1", 7, one.number, stream, "tag", one.key, *stamp, None, None, None
    )  # fmt: skip


def broken(*states, form=STAYS, seen=SEEN, rotten=()):
    landed = Landed([*states, *map(read, seen)], [])
    return list(broken_further_states([replace(PLAN, further=(form,))], seen, landed, rotten, SEED))


def test_a_presence_begins_with_a_read_before_which_enough_came_without_a_pause():
    away = state(1, 100, 200, stays=False)
    assert broken(away, state(2, 2050, 2070, stays=True)) == []
    assert broken(away, state(2, 2110, 2130, stays=True)) == [
        f"gw-1: stays is False in {away.identity}, and its badge had been read 2 times by {EPOCH_US + 2060 * MS}"
    ]
    [text] = broken(away, state(2, 1990, 2010, stays=True))
    assert text.endswith("on, and did not change then")
    assert len(broken(away, state(2, 4990, 5010, stays=True))) == 2


def test_a_presence_ends_after_its_last_read():
    """Also if several states lie between: the value is the same in them."""
    there, left_ms = state(1, 2050, 2070, stays=True), 2120 + LEAVE_MS
    assert broken(there, state(2, left_ms - 10, left_ms + 10, stays=False)) == []
    assert broken(there, state(2, 2300, 2310, stays=True), state(3, left_ms - 10, left_ms + 10, stays=False)) == []
    [text] = broken(there, state(2, 2200, 2300, stays=False))
    assert text.endswith("on, and did not change then")
    [text] = broken(there, state(2, 4000, 4010, stays=True))
    assert "its badge had left by" in text


def test_no_state_begins_with_two_changes():
    """Which of them came first is not known; a state without these values comes before it."""
    there, gone = {"present": True, "stays": True}, {"present": False, "stays": False}
    before, after = state(1, 2050, 2070, **there), state(3, 2610, 2630, **gone)
    assert broken(before, state(2, 2610, 2630), after) == []
    [text] = broken(before, after._replace(seq=2, vclock=(2, 0)))
    assert "begins with ['" in text
    assert text.endswith("of which one may have changed first")


def test_what_a_sensor_measures_is_beyond_a_threshold_for_long_enough():
    """It is high once, and lower before and afterwards."""
    measured = {at: temperature(SEED, "dock", at, EPOCH_US + at * MS) for at in range(1000, 8000, 100)}
    highest = max(measured, key=lambda at: measured[at])
    seen = [Sighting(at * MS, "dock", at, f"K{at}") for at in (highest - 100, highest, highest + 100)]
    values = [measured[one.number] for one in seen]
    on_at, off_at = max(values), min(values) - 1
    assert values[0] < on_at > values[2]
    cold = state(1, 100, 200, warm=False)
    at_once, held = Warm("dock/tags", on_at, off_at, 0), Warm("dock/tags", on_at, off_at, 300)
    assert broken(cold, state(2, highest - 10, highest + 10, warm=True), form=at_once, seen=seen) == []
    [text] = broken(cold, state(2, highest + 290, highest + 310, warm=True), form=held, seen=seen)
    assert text.endswith("on, and did not change then")
    [text] = broken(cold, state(2, highest + 500, highest + 600), form=at_once, seen=seen)
    assert "says the other for 0 us" in text
    assert broken(cold, state(2, highest + 500, highest + 600), form=held, seen=seen) == []
    whole = held._replace(on_at=min(values))
    assert broken(cold, state(2, highest + 190, highest + 210, warm=True), form=whole, seen=seen) == []
    [text] = broken(cold, state(2, highest + 900, highest + 910), form=whole, seen=seen)
    assert "says the other for 300000 us" in text


def test_a_gateway_that_may_have_forgotten_states_is_not_judged():
    away = state(1, 100, 200, stays=False)
    assert broken(away, state(2, 1990, 2010, stays=True), rotten={("hall", "gw-1")}) == []


def test_only_gateways_of_a_group_have_further_values_and_measures_are_of_sensors():
    assert with_further_states(Random(1), (replace(PLAN, group=()),)) == (replace(PLAN, group=()),)
    found = [with_further_states(Random(seed), (PLAN,))[0].further for seed in range(40)]
    assert {type(form) for forms in found for form in forms} == {Stays, Warm}
    assert () in found
    plain = replace(PLAN, has_sensors=False)
    found = [with_further_states(Random(seed), (plain,))[0].further for seed in range(40)]
    assert {type(form) for forms in found for form in forms} == {Stays}


def test_schedules_have_further_values_of_both_kinds():
    drawn = [one for one in map(draw, range(120)) if any(plan.further for plan in one.gateways)]
    kinds = {type(form) for one in drawn for plan in one.gateways for form in plan.further}
    assert kinds == {Stays, Warm}
    outcome = run(replace(drawn[0], faults=(), numbers=()))
    assert outcome.broken == []
