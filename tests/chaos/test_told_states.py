"""The law that peers soon tell of a state, on reports that land by hand."""

import json
from dataclasses import replace

import pytest

from whenabouts_protocol.group_state import attrs_of
from whenabouts_sim.chaos.checks.clocks.told_states import AFTER_US, BEFORE_US, WITHIN_US, broken_reports
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.chaos.schedule.fault import Fault
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.world.clocks import EPOCH_US

EVER = [[0, 1 << 62]]
AT_US = EPOCH_US + 10_000_000  # the state begins, and its stamp ends
LATEST_US = AT_US + WITHIN_US
DRAWN = next(one for one in map(draw, range(100)) if len(one.gateways) == 2 and one.gateways[0].group)
PLANS = tuple(
    replace(one, site="hall", name=f"gw-{n}", clock=replace(one.clock, known=((-(1 << 60), 1 << 60, 1000),)))
    for n, one in enumerate(DRAWN.gateways)
)


def told(process, clock, at_us, is_heartbeat=False, view=7, boot=1):
    """A report of gateway gw-<process>."""
    attrs = json.dumps(attrs_of("staff", view, process, {}, is_heartbeat))
    name = f"gw-{process}"
    return LandedReading(
        FileId(0, 1), "hall", name, boot, at_us, f"{name}/state", "state", None, at_us, at_us, None, attrs, clock
    )


BEGUN = told(1, (0, 0), AT_US - 3_000_000), told(0, (0, 0), AT_US - 3_000_000)
STATE = told(1, (0, 1), AT_US)


def broken(*readings, faults=(), lives=None, links=None, end_us=1 << 62, plans=PLANS):
    schedule = replace(DRAWN, gateways=plans, faults=tuple(faults), numbers=tuple(range(len(faults))))
    spans = {one.readers[0][0]: (lives or {}).get(one.name, EVER) for one in plans}
    links = {f"hall/{one.name}": (links or {}).get(one.name, EVER) for one in plans}
    found = list(broken_reports(schedule, Landed([*BEGUN, STATE, *readings], []), spans, links, end_us))
    return len(found)


def test_a_peer_tells_of_a_state_in_time_by_a_state_or_a_clock_heartbeat():
    assert broken() == 1
    for is_heartbeat in (True, False):
        assert broken(told(0, (0, 1), LATEST_US, is_heartbeat)) == 0
        assert broken(told(0, (0, 1), LATEST_US + 1, is_heartbeat)) == 1
        assert broken(told(0, (0, 0), LATEST_US, is_heartbeat)) == 1


@pytest.mark.parametrize("gateway", ["gw-0", "gw-1"])
@pytest.mark.parametrize("what", ["lives", "links"])
def test_both_ends_must_be_well_and_connected_all_the_time(gateway, what):
    since_us, until_us = AT_US - BEFORE_US, LATEST_US + AFTER_US
    assert broken(**{what: {gateway: [[since_us, until_us]]}}) == 1
    for span in ([since_us + 1, until_us], [since_us, until_us - 1]):
        assert broken(**{what: {gateway: [span]}}) == 0


def test_a_slow_or_refusing_network_excuses_it_and_other_faults_do_not():
    at_us = AT_US - EPOCH_US
    for kind, is_broken in (("slow", False), ("refuses", False), ("landing_rot", True)):
        assert broken(faults=[Fault(kind, at_us, 1000)]) == is_broken
        assert broken(faults=[Fault(kind, at_us - BEFORE_US - 2000, 1000)]) == 1
    assert broken(faults=[Fault("upgrade", 0, 1000, "hall/gw-0")]) == 0


def test_a_state_that_waits_for_utc_is_not_published():
    unknown = replace(PLANS[1].clock, known=((AT_US - EPOCH_US, 1 << 60, 1000),))
    assert broken(plans=(PLANS[0], replace(PLANS[1], clock=unknown))) == 0


def test_a_peer_in_another_view_need_not_tell_nor_one_that_refuses_or_is_at_its_end():
    assert broken(told(0, (0, 0), LATEST_US, view=8)) == 0
    assert broken(told(0, (0, 0), LATEST_US + 1, view=8)) == 1
    assert broken(told(0, (0, 0), AT_US)._replace(kind="gap")) == 0
    assert broken(end_us=LATEST_US + AFTER_US - 1) == 0
