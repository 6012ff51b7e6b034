"""Schedules in which old hours are deleted: jobs have read them, a restart needs nothing of them, and the laws see all."""

from dataclasses import replace

import pytest

from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.schedule.fault import CLOUD, WHOLE, Fault
from whenabouts_sim.chaos.schedule.schedule import ALONE, draw
from whenabouts_sim.chaos.schedule_run import run
from whenabouts_sim.chaos.upkeep import Upkeep
from whenabouts_sim.world.world import SECOND_US


@pytest.fixture(scope="module")
def schedule():
    """Without faults; in the hour that has begun there is much, and the ledger has a snapshot."""
    found = next(one for one in map(draw, range(100)) if one.active_us > 6 * SECOND_US and not one.gateways[0].group)
    return replace(found.only([]), ingests=ALONE, snapshot_every=2, liar="")


def with_faults(schedule, *faults):
    return replace(schedule, faults=faults, numbers=tuple(range(len(faults))))


def said(outcome, text):
    return [what for _, _, what in outcome.events if text in what]


@pytest.mark.parametrize("count", [WHOLE, 0, 2, 5])
def test_hours_that_were_read_are_deleted_and_a_restart_goes_on(schedule, count):
    """Also if the deletion is killed, and done again."""
    faults = [Fault("retain", at_us, 0, CLOUD, one) for at_us, one in ((6_000_000, count), (6_400_000, WHOLE))]
    outcome = run(with_faults(schedule, *faults, Fault("kill", 6_500_000, 100_000, CLOUD)))
    assert outcome.broken == []
    assert outcome.landed > 60
    counts = [int(text.split()[0]) for text in said(outcome, "old files are deleted")]
    assert sum(counts) > 4
    assert counts[0] > 0 or count == 0


def test_what_was_deleted_is_brought_back_with_its_time_and_replaces_nothing(tmp_path):
    upkeep, gone, there = Upkeep(VirtualLoop(), {}), tmp_path / "hour=13" / "gone", tmp_path / "there"
    there.write_bytes(b"new")
    upkeep.deleted = {gone: (b"old", 5_000), there: (b"old", 5_000)}
    upkeep.bring_back()
    assert (gone.read_bytes(), gone.stat().st_mtime_ns, there.read_bytes()) == (b"old", 5_000, b"new")


def test_hours_that_a_job_has_not_read_stay(schedule):
    faults = Fault("kill", 2_000_000, 5_000_000, "jobs"), Fault("retain", 6_000_000, 0, CLOUD, WHOLE)
    outcome = run(with_faults(schedule, *faults))
    assert outcome.broken == []
    assert said(outcome, "hours stay")
    assert not said(outcome, "old files are deleted")
