"""A broker that refuses a gateway's birth: it is published again while the connection stands."""

from dataclasses import replace

from whenabouts_sim.chaos.schedule.fault import Fault
from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule_run import run


def test_a_birth_that_was_refused_is_published_again():
    """Else no frontier would pass the gateway before its next connection (seed 137)."""
    schedule = next(one for one in map(draw, range(100)) if not one.gateways[0].group)
    names = [f"{one.site}/{one.name}" for one in schedule.gateways]
    faults = tuple(Fault("refuses", 0, 900_000, name, part=1.0) for name in names)
    assert run(replace(schedule, faults=faults, numbers=tuple(range(len(faults))))).broken == []
