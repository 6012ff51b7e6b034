"""Faults that are drawn beside the others: unplugged readers, a broker that refuses messages, repairs."""

from dataclasses import replace

import pytest

from whenabouts_sim.chaos.schedule.fault import ALL_READERS, CLOUD, Fault
from whenabouts_sim.chaos.schedule.gateway_forms import DAMAGE
from whenabouts_sim.chaos.schedule.more_faults import more_faults
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule_run import run
from whenabouts_sim.world.world import SECOND_US


def test_a_seed_decides_them_and_each_kind_is_drawn_for_some():
    drawn = {seed: list(more_faults(seed, ["hall/gw-1"], [CLOUD], 3 * SECOND_US)) for seed in range(60)}
    assert drawn[7] == list(more_faults(7, ["hall/gw-1"], [CLOUD], 3 * SECOND_US))
    kinds = [{fault.kind for fault in faults} for faults in drawn.values()]
    assert set().union(*kinds) == {
        "clock_back",
        "compact",
        "cut",
        "end",
        "fails_at_write",
        "forgotten_stream",
        "kill",
        "kill_at_commit",
        "kill_at_sync",
        "kill_at_write",
        "landing_rot",
        "power_cut",
        "power_cut_at_commit",
        "refuses",
        "repair",
        "sync_fails",
        "unplugged",
    }
    assert set() in kinds


@pytest.mark.parametrize(("kind", "targets"), [("unplugged", ["gateway"]), ("refuses", ["gateway", CLOUD])])
def test_each_of_them_alone_breaks_no_law(kind, targets):
    schedule = draw(7)
    gateway = f"{schedule.gateways[0].site}/{schedule.gateways[0].name}"
    for target in targets:
        name = gateway if target == "gateway" else target
        faults = tuple(Fault(kind, at_us, 900_000, name, part=1.0) for at_us in (200_000, 1_500_000))
        outcome = run(replace(schedule, faults=faults, numbers=(0, 1)))
        assert outcome.broken == []
        assert outcome.landed > 60


def test_what_is_lost_on_damaged_lines_or_while_a_reader_is_unplugged_need_not_land():
    """And all else must."""
    schedule = next(one for one in map(draw, range(100)) if not one.gateways[0].group and not one.has_owners).only([])
    damaged = replace(schedule, gateways=tuple(replace(one, damage=DAMAGE) for one in schedule.gateways))
    outcome = run(damaged)
    assert outcome.broken == []
    assert outcome.landed < len(schedule.sightings)


def test_a_fault_names_what_it_is_about():
    assert str(Fault("unplugged", 0, 1000, "hall/gw-1", 2)) == "unplugged of hall/gw-1 reader 2 for 0.001 s"
    assert str(Fault("clock_back", 0, 2000, CLOUD, 50)) == "clock back of cloud by 0.050 s for 0.002 s"
    assert str(Fault("sync_fails", 0, 0, CLOUD, 1)) == "sync fails of cloud of folder 2"
    assert str(Fault("kill_at_sync", 0, 0, CLOUD)) == "kill at sync of cloud of folder 1"
    assert str(Fault("unplugged", 0, 0, "hall/gw-1", ALL_READERS)) == "unplugged of hall/gw-1 all readers"
