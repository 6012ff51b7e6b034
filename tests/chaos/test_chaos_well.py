"""When an agent is well: what a fault of its machine excuses, and until when."""

import pytest

from whenabouts_sim.chaos.checks.well import well_spans
from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.chaos.schedule.fault import Fault
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import SECOND_US

ALWAYS = ((0, 1 << 30),)


def spans(kind, lives, known=ALWAYS, disk_s=0.0):
    """Whole seconds in which an agent is well that has a fault from 5 s to 6 s. lives, known: spans of seconds."""
    clock = ClockPlan(known=tuple((begin * SECOND_US, end * SECOND_US, 1000) for begin, end in known))
    alive = [[int(EPOCH_US + at_s * SECOND_US) for at_s in life] for life in lives]
    found = well_spans(alive, [Fault(kind, 5 * SECOND_US, SECOND_US)], clock, disk_s)
    return [((begin - EPOCH_US) // SECOND_US, (end - EPOCH_US) // SECOND_US) for begin, end in found if begin < end]


def test_while_its_disk_is_slow_and_a_while_after_it_may_lose_readings():
    assert spans("slow_disk", [(0, 60)]) == [(0, 5), (12, 60)]
    assert spans("slow_threads", [(0, 60)]) == [(0, 5), (9, 60)]
    assert spans("kill", [(0, 60)]) == [(0, 60)]


def test_all_that_was_in_a_damaged_spool_may_be_lost():
    assert spans("bit_rot", [(0, 5), (5, 60)]) == [(6, 60)]


@pytest.mark.parametrize(("known", "begin_s"), [(ALWAYS, 5), (((4, 60),), 0), (((1, 60),), 5), (((0, 3), (30, 60)), 3)])
def test_what_a_full_disk_refused_may_be_lost_by_a_kill_soon_after(known, begin_s):
    """What waited for UTC too, though it had been read before: its row may be gone with UTC, and its message refused."""
    life = [(0, 7), (7, 60)]
    before = [(0, begin_s)] if begin_s else []
    assert spans("disk_full", life, known) == [*before, (6, 7), (7, 60)]


def test_what_a_full_disk_refused_is_on_the_disk_soon_after():
    """Within a second and some more, and nothing that happens later excuses its loss."""
    unknown = ((30, 60),)
    assert spans("disk_full", [(0, 8), (8, 60)], unknown) == [(0, 8), (8, 60)]
    assert spans("disk_full", [(0, 7.5), (8, 60)], unknown) == [(6, 7), (8, 60)]
    assert spans("disk_full", [(0, 8), (8, 60)], unknown, disk_s=0.3) == [(6, 8), (8, 60)]
