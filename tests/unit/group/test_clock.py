"""A gateway's knowledge of the others' states: its dense clock, views, and which peers it accepts."""

import pytest

from support.group.parts import message
from whenabouts_edge.group.dense_clock import MAX_LATER, DenseClock, joined
from whenabouts_edge.group.membership import MAX_PAST_BOOTS, Membership
from whenabouts_edge.group.peers import MAX_JUMP, MAX_STATE_BYTES, MAX_STATES, PeerError, believed, decode_state
from whenabouts_protocol.group_state import view_number

# The dense clock.


def test_a_message_counts_for_events_that_certainly_happened_after_it():
    """An event dated back before the message does not follow from it.

    heard (0, 3)          |100
    event        [90......110]     does not know it
    event                 [100..]  knows it
    """
    clock = DenseClock(0, 2)
    assert clock.received(100, (0, 3))
    assert not clock.received(200, (0, 2))
    assert (clock.at(99), clock.at(100)) == ((0, 0), (0, 3))
    assert clock.begin(90, 110) == (1, 0)
    assert clock.at(109) == (0, 3)  # the new state had not certainly begun
    assert clock.at(110) == (1, 3)
    assert clock.begin(120, 130) == (2, 3)
    clock.settle(115)
    assert (clock.at(0), clock.newest, clock.number) == ((1, 3), (2, 3), 2)


def test_steps_beyond_the_limit_count_later_not_earlier():
    """A joined clock counts from the later of both moments."""
    clock = DenseClock(0, 2)
    for n in range(1, MAX_LATER + 3):
        clock.received(10 * n, (0, n))
    last = 10 * (MAX_LATER + 2)
    assert clock.at(last) == (0, MAX_LATER + 2)
    assert clock.at(last - 1) == (0, MAX_LATER - 1)
    assert joined((1, 5), (3, 2)) == (3, 5)


# Views.


def test_members_are_those_whose_birth_names_the_group():
    """In the order of names, whoever came first; strangers and other groups are none."""
    membership = Membership("office", "m", 7, ["z", "a", "x"])
    assert membership.view().members == [("m", 7)]
    assert membership.born("z", 1, "office")
    assert membership.born("a", 2, "office")
    assert membership.born("x", 3, "garage")
    assert not membership.born("stranger", 3, "office")
    view = membership.view()
    assert (view.members, view.own) == ([("a", 2), ("m", 7), ("z", 1)], 1)
    assert view.number == view_number(view.members, [("x", 3)])
    assert not membership.born("z", 1, "office")


def test_leaves_and_reboots_make_views_that_never_come_back():
    """Stopped, removed, another group, a new boot: each is a new number, also with members as before."""
    membership = Membership("office", "m", 7, ["a"])
    numbers = [membership.view().number]

    def step(changed):
        assert changed
        numbers.append(membership.view().number)

    step(membership.born("a", 1, "office"))
    step(membership.stopped("a", 1))
    assert not membership.born("a", 1, "office")  # its birth again: it stays gone
    step(membership.born("a", 2, "office"))
    step(membership.removed("a"))
    step(membership.born("a", 3, "office"))
    assert not membership.born("a", 1, "office")
    assert not membership.born("a", 2, "office")
    assert membership.old_boots == 2
    step(membership.born("a", 4, None))
    step(membership.born("a", 5, "office"))
    step(membership.born("a", 5, "garage"))
    assert len(set(numbers)) == len(numbers)
    assert membership.view().members == [("m", 7)]


def test_an_end_may_come_before_its_birth_and_counts_only_for_its_boot():
    """Kept messages of several topics come in any order."""
    membership = Membership("office", "m", 7, ["a"])
    assert not membership.stopped("a", 1)
    membership.born("a", 1, "office")
    assert membership.view().members == [("m", 7)]
    membership.born("a", 2, "office")
    assert not membership.stopped("a", 1)
    assert membership.view().members == [("a", 2), ("m", 7)]
    assert not membership.stopped("stranger", 1)
    assert not membership.removed("stranger")
    for boot in range(3, 3 + 2 * MAX_PAST_BOOTS):
        membership.born("a", boot, "office")
    assert len(membership._past["a"]) == MAX_PAST_BOOTS


def test_members_with_the_same_knowledge_agree():
    """Each counts itself among the others."""
    names = ["a", "b", "c"]
    views = []
    for own in names:
        membership = Membership("office", own, 5, [n for n in names if n != own])
        for other in reversed(names):
            membership.born(other, 5, "office")
        views.append(membership.view())
    assert len({v.number for v in views}) == 1
    assert [v.own for v in views] == [0, 1, 2]


# Peers.


def refused(payload, site="hall", gateway="a"):
    with pytest.raises(PeerError) as caught:
        decode_state(payload, site, gateway)
    return caught.value.reason


def test_a_state_message_is_one_reading_of_that_gateway():
    """Size, noise, several readings, no state, another's name."""
    assert decode_state(message(9, 0, (3, 0)), "hall", "a")[0] == 5
    assert refused(b"\xff") == "malformed"
    assert refused(bytes(MAX_STATE_BYTES + 1)) == "malformed"
    assert refused(message(9, 0, (3, 0), count=2)) == "malformed"
    assert refused(message(9, 5, (3, 0))) == "malformed"
    assert refused(message(9, 0, (3, 0)), gateway="b") == "foreign"
    assert refused(message(9, 0, (3, 0)), site="other") == "foreign"


def test_a_peer_is_believed_of_itself_and_a_little_of_others():
    """Its own number as sent; for a third member at most MAX_JUMP states ahead; for this gateway only begun states."""
    membership = Membership("office", "b", 7, ["a", "c"])
    membership.born("a", 5, "office")
    membership.born("c", 6, "office")
    view, clock = membership.view(), DenseClock(1, 3)
    clock.begin(0, 0)

    def reported(process, counts, gateway="a", boot=5):
        _, state = decode_state(message(view.number, process, counts, gateway, boot), "hall", gateway)
        return believed(gateway, boot, state, view, clock)

    assert reported(0, (1000, 1, 3)) == (1000, 1, 3)
    assert reported(0, (1, 9, MAX_JUMP + 50)) == (1, 1, MAX_JUMP)
    for process, counts, boot, reason in (
        (0, (MAX_STATES, 0, 0), 5, "impossible"), (2, (1, 0, 0), 5, "foreign"), (1, (1, 0, 0), 5, "foreign"),
        (0, (1, 0, 0), 4, "foreign"), (0, (1, 0), 5, "foreign"), (0, (1, 0, 0, 0), 5, "foreign"),
    ):  # fmt: skip
        with pytest.raises(PeerError) as caught:
            reported(process, counts, boot=boot)
        assert caught.value.reason == reason
