"""Schedules of the whole system on virtual time: no law is broken, whatever fails."""

from dataclasses import replace

import pytest

from support.search import SEED
from whenabouts_sim.chaos.checks.landed import read_landing
from whenabouts_sim.chaos.report import command, lines
from whenabouts_sim.chaos.schedule.fault import CLOUD, JOBS, KINDS, SECOND, Fault
from whenabouts_sim.chaos.schedule.schedule import ALONE, TWO, draw
from whenabouts_sim.chaos.schedule_run import run

SCHEDULES, PARTS = (3000 if SEED else 300), 12


@pytest.mark.parametrize("part", range(PARTS))
def test_no_law_is_broken_in_any_schedule(part):
    first = int(SEED or 0)
    for seed in range(first + part, first + SCHEDULES, PARTS):
        outcome = run(draw(seed))
        assert not outcome.broken, "\n".join(lines(outcome))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind_of_fault_alone_breaks_no_law_at_any_machine(kind):
    schedule = draw(7)
    gateway = schedule.gateways[0]
    for ingests, target in ((ALONE, CLOUD), (ALONE, JOBS), (ALONE, f"{gateway.site}/{gateway.name}"), (TWO, SECOND)):
        if kind == "sites_move" and ingests is not TWO:
            continue
        faults = tuple(Fault(kind, at_us, 300_000, target, 2, 0.5) for at_us in (200_000, 1_500_000))
        outcome = run(replace(schedule, faults=faults, numbers=(0, 1), ingests=ingests))
        assert not outcome.broken, "\n".join(lines(outcome))


def test_without_faults_everything_lands_and_results_are_told():
    drawn = (one for one in map(draw, range(100)) if not one.gateways[0].group and not one.has_owners)
    schedule = next(drawn).only([])
    outcome = run(schedule)
    assert not outcome.broken
    assert outcome.landed == len(schedule.sightings)
    assert outcome.told


def test_a_schedule_runs_the_same_way_each_time():
    schedule = draw(12)
    one, two = run(schedule), run(schedule)
    assert one.events == two.events
    assert (one.landed, one.told, one.calm_us) == (two.landed, two.told, two.calm_us)


def test_a_shorter_schedule_keeps_the_numbers_of_its_faults():
    schedule = next(one for one in map(draw, range(100)) if len(one.faults) >= 4)
    shorter = schedule.only([1, 3], 20)
    assert shorter.faults == (schedule.faults[1], schedule.faults[3])
    assert len(shorter.sightings) == 20
    assert command(shorter) == f"whenabouts-sim chaos --seed {schedule.seed} --faults 1,3 --readings 20"


def test_readings_of_a_site_that_moves_land_in_the_parts_of_both_ingests_and_count_once(tmp_path):
    schedule = next(
        one for one in map(draw, range(100)) if {gateway.site for gateway in one.gateways} == {"hall", "shop"}
    )
    moves = tuple(Fault("sites_move", at_us, 100_000) for at_us in (1_000_000, 2_000_000))
    outcome = run(replace(schedule, faults=moves, numbers=(0, 1), ingests=TWO), tmp_path / "disks")
    assert not outcome.broken, "\n".join(lines(outcome))
    landed = read_landing(tmp_path / "disks" / CLOUD / "landing")
    parts = {(one.file.part, one.site) for one in landed.readings}
    assert len(parts) > 2, "a site has readings in both parts"
    assert len(landed.readings) == outcome.landed
