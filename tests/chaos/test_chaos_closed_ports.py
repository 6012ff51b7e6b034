"""The law of closed ports: they hold no watermark back."""

from dataclasses import replace

import pytest

from whenabouts_protocol import Heartbeat
from whenabouts_sim.chaos.checks.gateways.closed_ports import SOON_US, broken_closed_ports
from whenabouts_sim.chaos.network.overheard import Said
from whenabouts_sim.chaos.parts.gateway_part import GatewayPlan
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.chaos.schedule.fault import Fault
from whenabouts_sim.world.clocks import EPOCH_US

S = 1_000_000
EVER_US = 1 << 60
PLAN = GatewayPlan("hall", "gw-1", (("door", "door/tags"),), ClockPlan(0, ((-10 * S, EVER_US, 1000),), (), ()))
LOST_US, OPEN_US = EPOCH_US + 20 * S, EPOCH_US + 30 * S
LIFE = (EPOCH_US + 10 * S, EVER_US)


def broken(at_us, frontier_us, plan=PLAN, life=LIFE, faults=()):
    """Of a port that was lost at 20 s and opened at 30 s; the agent runs since 10 s."""
    beat = Heartbeat("hall", "gw-1", 1, frontier_us, {}, "bounded", 0)
    return list(broken_closed_ports(plan, [[(LOST_US, OPEN_US)]], [life], [Said(beat, {}, at_us)], faults))


def test_a_watermark_passes_the_loss_of_a_port_soon():
    due_us = LOST_US + SOON_US
    assert "a port was lost" in broken(due_us, LOST_US)[0]
    assert "a port was lost" in broken(due_us, None)[0]
    assert broken(due_us, LOST_US + 1) == []
    assert broken(due_us - 1, LOST_US) == []
    assert broken(OPEN_US, LOST_US) == []


@pytest.mark.parametrize(
    "excuse",
    [
        {"plan": replace(PLAN, group=("hall/gw-1", "hall/gw-2"))},
        {"plan": replace(PLAN, spool_bytes=400)},
        {"plan": replace(PLAN, clock=ClockPlan(0, ((19 * S, EVER_US, 1000),), (), ()))},
        {"life": (EPOCH_US + 19 * S, EVER_US)},
        {"life": (EPOCH_US + 10 * S, EPOCH_US + 21 * S)},
        {"faults": [Fault("slow_disk", 0, 1, "hall/gw-1")]},
        {"faults": [Fault("slow", 0, 1)]},
    ],
    ids=["a group", "a small spool", "no utc", "a new agent", "an agent that ended", "a slow disk", "a slow network"],
)
def test_what_waits_for_something_else_holds_a_watermark_too(excuse):
    assert broken(LOST_US + SOON_US, LOST_US, **excuse) == []
