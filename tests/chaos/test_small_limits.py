"""Small limits of a schedule: they hold while it runs, and a reader's thread that has no room waits."""

import threading
from collections import Counter
from dataclasses import replace

import pytest

from whenabouts_cloud.ingest import bridge
from whenabouts_edge.agent import agent, timekeeping
from whenabouts_edge.readers import thread
from whenabouts_edge.store import intake, undated
from whenabouts_protocol import layout
from whenabouts_sim.chaos.checks.landed import read_landing
from whenabouts_sim.chaos.limits_in_place import limited
from whenabouts_sim.chaos.machine.room import THREADING, Full, Room
from whenabouts_sim.chaos.schedule.fault import CLOUD, Fault
from whenabouts_sim.chaos.schedule.schedule import ALONE, draw
from whenabouts_sim.chaos.schedule_run import run


def limits():
    return (
        intake.MAX_WAITING, agent.MAX_WAITING, timekeeping.MAX_WAITING, undated.AT_ONCE, layout.MAX_MESSAGE_BYTES,
        thread.MAX_WAITING, intake.threading, undated.KEPT_US, undated.LIMIT, bridge.FRONTIER_EVERY_US,
        agent.CLOCK_EVERY_S,
    )  # fmt: skip


def test_a_schedule_has_its_limits_in_place_of_the_usual_ones_while_it_runs():
    before = limits()
    none = replace(draw(1), message_bytes=0, most_waiting=0, undated_us=0, most_undated=0, frontier_us=0, clock_s=0.0)
    with limited(none):
        assert limits() == before
    small = replace(none, message_bytes=1500, most_waiting=20, undated_us=7, most_undated=5, frontier_us=9, clock_s=3.0)
    with limited(small):
        assert limits() == (20, 20, 20, 10, 1500, 20, THREADING, 7, 5, 9, 3.0)
    assert limits() == before
    assert intake.threading is threading


def test_room_is_given_until_there_is_none_and_who_would_wait_gets_nothing():
    room = Room(3)
    assert room.acquire(blocking=False)
    Room.got = 0
    assert room.acquire()
    assert room.acquire()
    with pytest.raises(Full):
        room.acquire()
    assert room._value == 2
    assert [room.acquire(blocking=False) for _ in range(3)] == [True, True, False]
    room.release(2)
    assert room._value == 2


@pytest.mark.parametrize(("name", "limit"), [("most_waiting", 6), ("message_bytes", 700)])
def test_a_schedule_with_a_small_limit_breaks_no_law(name, limit):
    """Readings pile up behind a slow disk, and agents start again and again."""
    schedule = next(one for one in map(draw, range(100)) if not one.gateways[0].group and not one.liar)
    gateway = f"{schedule.gateways[0].site}/{schedule.gateways[0].name}"
    slow = Fault("slow_disk", 500_000, 1_000_000, gateway, part=0.3)
    kills = (Fault("kill", at_us, 200_000, gateway) for at_us in (2_000_000, 2_600_000, 3_200_000))
    faults = slow, *kills
    outcome = run(replace(schedule, faults=faults, numbers=(0, 1, 2, 3), **{name: limit}))
    assert outcome.broken == []
    assert outcome.landed > 60


@pytest.mark.parametrize(("name", "limit"), [("undated_us", 200_000), ("most_undated", 5)])
def test_readings_that_cannot_wait_for_utc_land_without_a_time(name, limit, tmp_path):
    drawn = next(one for one in map(draw, range(100)) if not one.gateways[0].group and one.ingests == ALONE)
    clock = replace(drawn.gateways[0].clock, known=((2_000_000, 1 << 60, 1000),))
    schedule = replace(
        drawn, gateways=tuple(replace(one, clock=clock) for one in drawn.gateways), faults=(), numbers=()
    )
    outcome = run(replace(schedule, **{name: limit}), tmp_path)
    assert outcome.broken == []
    states = Counter(one.clock_state for one in read_landing(tmp_path / CLOUD / "landing").readings)
    assert states["unbounded"] > 10
    assert states["bounded"] > 10
