"""The law of local states: when a badge had left is judged by when its reader truly saw it last."""

import json

from whenabouts_protocol.group_state import attrs_of
from whenabouts_sim.chaos.checks.gateways.states import broken_states, latest_begins
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.parts.gateway_part import LEAVE_MS
from whenabouts_sim.chaos.parts.job_rules import STATE
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

MS = 1000
SEEN = [Sighting(at * MS, "badge1", at, "BA") for at in (2000, 2060, 2120, 5000)]
LEFT_MS = 2120 + LEAVE_MS


def state(number, begin_ms, end_ms, present, view=7):
    attrs = attrs_of("staff", view, 0, {} if present is None else {STATE: present}, is_heartbeat=present is None)
    return LandedReading(
        FileId(0, 1), "hall", "gw-1", 7, number, "gw-1/state", "state", None,
        EPOCH_US + begin_ms * MS, EPOCH_US + end_ms * MS, None, json.dumps(attrs), (number, 0),
    )  # fmt: skip


def broken(*states, rotten=()):
    return list(broken_states([("hall", "gw-1")], SEEN, Landed([*states], []), rotten))


THERE = state(1, 1990, 2010, present=True)


def test_a_state_without_the_badge_begins_when_it_has_left():
    """Its gateway's clock may be slewed by a twelfth; a stamp around another time, as after twice as long, is told."""
    assert broken(THERE, state(2, LEFT_MS - 10, LEFT_MS + 10, present=False)) == []
    assert broken(THERE, state(2, LEFT_MS + 50, LEFT_MS + 60, present=False)) == []
    [text] = broken(THERE, state(2, LEFT_MS + LEAVE_MS - 10, LEFT_MS + LEAVE_MS + 10, present=False))
    assert "begins when no badge had left" in text


def test_only_a_change_within_a_view_is_judged():
    """The first state of a view, one after a state that is missing, a clock heartbeat, a gateway with a damaged spool."""
    wrong = state(2, 9000, 9010, present=False)
    assert broken(wrong) == broken(THERE, wrong._replace(vclock=(3, 0))) == []
    assert broken(THERE, state(2, 9000, 9010, present=False, view=8)) == []
    assert broken(THERE, state(2, 9000, 9010, present=None)) == []
    assert broken(THERE, wrong, rotten={("hall", "gw-1")}) == []
    assert len(broken(THERE, wrong)) == 1


def test_no_two_states_of_a_gateway_have_a_number_in_a_view():
    """Heartbeats repeat that of the last state."""
    assert broken(THERE, THERE._replace(seq=8, attrs=state(1, 0, 0, present=None).attrs)) == []
    [text] = broken(THERE, THERE._replace(seq=8))
    assert text == "2 states of hall/gw-1 have the number 1 in view 7"


def begins(*states):
    found = latest_begins([("hall", "gw-1")], SEEN, Landed([*states], []))
    return {identity[-1]: (us - EPOCH_US) / MS for identity, us in found}


def test_a_presence_begins_with_the_sighting_after_a_pause_and_ends_a_while_after_the_last():
    """Of several moments in a stamp the latest counts; a stamp around none, and a first state, tell nothing."""
    gone = state(2, LEFT_MS - 10, LEFT_MS + 100, present=False)
    assert begins(THERE, gone, state(3, 4900, 5100, present=True)) == {2: LEFT_MS + LEAVE_MS / 5, 3: 5000}
    assert begins(THERE, gone._replace(t_max=EPOCH_US + LEFT_MS * MS)) == {2: LEFT_MS + LEAVE_MS / 5}
    assert begins(state(1, 1, 2, present=False), state(2, 2010, 2130, present=True)) == {}
    assert begins(state(3, 4900, 5100, present=True)) == {}
