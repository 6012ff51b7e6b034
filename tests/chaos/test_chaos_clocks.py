"""The law of vector clocks, on states that land by hand."""

import json

from whenabouts_protocol.group_state import attrs_of
from whenabouts_sim.chaos.checks.clocks.vector_clocks import broken_clocks
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.parts.gateway_part import badge_key, badge_of
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting


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


def read(clock, begin, end, boot=1):
    """A read of a tag by process 0, which does not name its view."""
    return state(0, clock, begin, end)._replace(kind="tag", stream="dock/tags", key="K", attrs=None, boot=boot)


def test_a_read_before_the_first_state_of_its_start_may_be_of_an_earlier_start():
    """It waited for UTC. Of the views of both starts."""
    begun = state(1, (0, 3), 100, 120), state(1, (0, 3), 10, 20, view=8)
    earlier, own = state(0, (1, 0), 5, 6, view=8)._replace(boot=1), state(0, (1, 0), 95, 96)._replace(boot=2)

    def broken(seq, *states):
        one = read((1, 3), 90, 99, boot=2)._replace(seq=seq)
        return len(list(broken_clocks(Landed([*begun, *states, one], []))))

    assert broken(97, earlier, own) == 1
    assert broken(90, earlier, own) == 0
    assert broken(90, own) == 1


def test_reads_of_tags_know_no_such_state_either():
    """In whichever view of the same start; if the views are not known, nothing is told."""
    begun, own = state(1, (0, 3), 100, 120), state(0, (1, 0), 10, 20)

    def broken(one, *others, rotten=()):
        return len(list(broken_clocks(Landed([begun, own, one, *others], []), rotten)))

    assert broken(read((1, 3), 90, 99)) == 1
    assert broken(read((1, 3), 90, 100)) == 0
    assert broken(read((1, 0), 90, 99)) == 0
    assert broken(read((), 90, 99)) == 0
    assert broken(read((1, 3), 90, 99, boot=2)) == 0
    assert broken(read((1, 3), 90, 99), state(0, (0, 0), 30, 40, view=8)) == 0
    assert broken(read((1, 3), 90, 99), state(0, (0, 0, 0), 30, 40, view=8)) == 1
    assert broken(read((1, 3), 90, 99), rotten={("hall", "gw-0")}) == 0
    assert broken(read((1, 3), 90, 99), read((1, 0), 0, 9)._replace(kind="gap")) == 0


def test_what_truly_happened_decides_where_stamps_leave_it_open():
    """A tag is as old as its sighting, and the state of a badge that is present begins with one of its own."""
    own, long = state(0, (1, 0), 10, 20), read((1, 3), 0, 200)
    came, went = (state(1, (0, 3), 100, 120)._replace(value=value) for value in ("true", "false"))

    def broken(begun, tag_us, badge_us):
        sightings = [Sighting(tag_us, "dock", 0, "K"), Sighting(badge_us, badge_of("gw-1"), 0, badge_key("gw-1"))]
        at = [one._replace(t_min=EPOCH_US + one.t_min, t_max=EPOCH_US + one.t_max) for one in (own, long, begun)]
        return len(list(broken_clocks(Landed(at, []), (), sightings)))

    assert broken(came, 109, 110) == 1
    assert broken(came, 111, 110) == 0
    assert broken(came, 99, 130) == 1
    assert broken(came, 100, 130) == 0
    assert broken(went, 109, 110) == 0
    assert broken(went, 99, 110) == 1


def test_a_state_whose_begin_is_known_knows_of_none_that_began_after_it():
    """Though its stamp ends later."""
    begun, own = state(1, (0, 3), 100, 120), state(0, (5, 3), 90, 130)
    assert list(broken_clocks(Landed([begun, own], []))) == []
    assert len(list(broken_clocks(Landed([begun, own], []), begins={own.identity: 99}))) == 1
    assert list(broken_clocks(Landed([begun, own], []), begins={own.identity: 100})) == []
