"""The law of what vector clocks know, on states that reach a gateway and readings that land, by hand."""

import json

import pytest

from whenabouts_edge.group.peers import MAX_JUMP, MAX_STATES
from whenabouts_protocol import Reading, encode_batch, topic
from whenabouts_protocol.group_state import attrs_of
from whenabouts_sim.chaos.checks.clocks.heard_states import ROUNDED_US, broken_knowledge
from whenabouts_sim.chaos.checks.landed import Landed, LandedReading
from whenabouts_sim.chaos.network.broker_model import Message
from whenabouts_sim.chaos.network.overheard import Arrived
from whenabouts_sim.chaos.parts.landing_files import FileId
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import Sighting

SPAN = 1000, 1200


def came(at_us, process, clock, view=7):
    """A state of a peer that reaches gateway gw-0 at a time."""
    name = f"gw-{process}"
    one = Reading(
        site="hall", gateway=name, boot=1, seq=0, stream=f"{name}/state", kind="state", t_min=0, t_max=1,
        attrs=attrs_of("staff", view, process), vclock=clock,
    )  # fmt: skip
    return Arrived(EPOCH_US + at_us, "hall/gw-0", Message(topic("hall", name, "state"), encode_batch([one]), 1, False))


def read(clock, begin=SPAN[0], end=SPAN[1], boot=1):
    """A read of a tag by gateway gw-0."""
    stamp = EPOCH_US + begin, EPOCH_US + end
    return LandedReading(FileId(0, 1), "hall", "gw-0", boot, begin, "dock/tags", "tag", "K", *stamp, None, None, clock)


def state(clock, begin=SPAN[0], end=SPAN[1], is_heartbeat=False, view=7):
    """A state of gateway gw-0."""
    attrs = json.dumps(attrs_of("staff", view, 0, {}, is_heartbeat))
    return read(clock, begin, end)._replace(stream="gw-0/state", kind="state", key=None, attrs=attrs)


def broken(heard, *readings, sightings=(), liars=frozenset(), rotten=()):
    return len(list(broken_knowledge(Landed(list(readings), []), heard, sightings, liars, rotten)))


@pytest.mark.parametrize(("at_us", "fewest", "most"), [(900, 3, 3), (1100, 0, 3), (1300, 0, 0)])
def test_a_state_counts_for_what_begins_after_its_arrival_and_for_nothing_before(at_us, fewest, most):
    """If it arrives within the stamp, it may count or not."""
    for number in range(5):
        found = broken([came(at_us, 1, (0, 3))], state((1, number)))
        assert found == (not fewest <= number <= most)


def test_the_first_state_of_a_view_and_other_views_know_nothing():
    heard = [came(900, 1, (0, 3))]
    assert broken(heard, state((0, 0))) == 0
    assert broken(heard, state((0, 0), is_heartbeat=True)) == 1
    assert broken(heard, state((1, 0), view=8)) == 0
    assert broken(heard, state((1, 3), view=8)) == 1


def test_third_gateways_are_believed_a_little_beyond_what_is_known():
    heard = [came(900, 1, (0, 3, 1 << 30))]
    assert broken(heard, state((1, 3, MAX_JUMP))) == 0
    assert broken(heard, state((1, 3, MAX_JUMP + 1))) == 1
    assert broken(heard, state((1, 3, MAX_JUMP - 1))) == 1
    assert broken([came(900, 1, (0, MAX_STATES, 0))], state((1, 0, 0))) == 0


def test_nothing_of_a_liar_must_be_believed():
    heard, liars = [came(900, 1, (0, 3, 2))], frozenset({"gw-1"})
    assert broken(heard, state((1, 0, 0)), liars=liars) == 0
    assert broken(heard, state((1, 3, 2)), liars=liars) == 0
    assert broken(heard, state((1, 4, 0)), liars=liars) == 1


def test_reads_of_tags_count_too_in_some_view_of_their_start_or_an_earlier_one():
    """A read that waited for UTC is sent by a later start."""
    heard, own = [came(900, 1, (0, 3))], state((0, 0), 0, 1)
    assert broken(heard, own, read((0, 3))) == 0
    assert broken(heard, own, read((0, 2))) == 1
    assert broken(heard, own, read((0, 2), boot=2)) == 1
    assert broken(heard, own, state((0, 0), 2, 3, view=8), read((0, 0))) == 0
    assert broken(heard, read((0, 2))) == 0
    assert broken(heard, own, read((0, 2)), rotten={("hall", "gw-0")}) == 0
    assert broken(heard, own, read((0, 2))._replace(kind="gap")) == 0


def test_a_tag_is_as_old_as_its_sighting():
    heard, own = [came(1100, 1, (0, 3))], state((0, 0), 0, 1)
    for at_us, is_broken in ((1100 - 2 * ROUNDED_US, True), (1100, False)):
        assert broken(heard, own, read((0, 3)), sightings=[Sighting(at_us, "dock", 0, "K")]) == is_broken


def test_a_reading_counts_no_more_states_of_its_own_gateway_than_it_has_told():
    own = state((2, 0), 0, 1)
    assert broken([], own, read((2, 0))) == 0
    assert broken([], own, read((3, 0))) == 1
    assert broken([], own, state((3, 0), is_heartbeat=True)) == 1
    assert broken([], own, state((9, 0), 2, 3, view=8), read((3, 0))) == 0
