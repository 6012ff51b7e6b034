"""The law of vector clocks, on states that land by hand."""

import json

from whenabouts_protocol.group_state import attrs_of
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.checks.vector_clocks import broken_clocks
from whenabouts_sim.chaos.parts.landing_files import FileId


def state(process, clock, begin, end, is_heartbeat=False, view=7):
    attrs = json.dumps(attrs_of("staff", view, process, {}, is_heartbeat))
    return LandedReading(
        FileId(0, 1),
        "hall",
        f"gw-{process}",
        1,
        begin,
        f"gw-{process}/state",
        "state",
        None,
        begin,
        end,
        None,
        attrs,
        clock,
    )


def test_nobody_knows_of_a_state_that_certainly_began_later():
    """Stamps that touch leave it open; states of other views, and numbers that did not land, say nothing."""
    begun = state(1, (0, 3), 100, 120)
    for other, is_broken in (
        (state(0, (5, 3), 90, 99), True),
        (state(0, (5, 3), 90, 99, is_heartbeat=True), True),
        (state(0, (5, 3), 90, 100), False),
        (state(0, (5, 2), 90, 99), False),
        (state(0, (5, 3), 90, 99, view=8), False),
    ):
        assert len(list(broken_clocks(Landed([begun, other], [])))) == is_broken


def test_all_know_of_states_0_before_they_begin():
    assert list(broken_clocks(Landed([state(1, (0, 0), 100, 120), state(0, (5, 0), 90, 99)], []))) == []
