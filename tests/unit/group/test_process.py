"""A whole process of a group: its views, its reports and their times, messages it holds or refuses."""

from support.group.parts import message, process, settled
from whenabouts_edge.group.peers import MAX_STATES
from whenabouts_edge.group.process import MAX_HELD, SETTLE_US
from whenabouts_protocol.group_state import view_number


def test_a_view_begins_when_its_members_have_settled():
    """Births that come one after the other make one view; readings before it carry no clock."""
    member = process(["a", "c"])
    assert member.advance(0, 100) == []
    assert member.observe("tags", "E", None, {}, 0, 0) == ()
    member.born("a", 5, "office", 200)
    member.born("c", 5, "office", SETTLE_US)
    assert member.advance(1, SETTLE_US + 150) == []
    [first] = member.advance(2, 2 * SETTLE_US)
    assert (first.clock, first.process, first.values, first.earliest_us, first.latest_us) == (
        (0, 0, 0), 1, {"here": True}, 2, 2,
    )  # fmt: skip
    assert first.view == view_number([("a", 5), ("b", 7), ("c", 5)])
    assert member.observe("other", "E", None, {}, 0, 0) == (0, 0, 0)
    assert member.advance(3, 9 * SETTLE_US) == []


def test_a_new_view_begins_with_state_0_and_the_values_there_are():
    """Numbers and clocks start again at 0; the states before belong to the old view."""
    member = process()
    member.born("a", 5, "office", 0)
    settled(member)
    member.observe("tags", "E", None, {}, 5, 6)
    [state] = member.advance(10, 10 * SETTLE_US)
    assert (state.clock, state.values, state.earliest_us, state.latest_us) == ((0, 1), {"here": True}, 5, 6)
    member.stopped("a", 5, 20 * SETTLE_US)
    [alone] = member.advance(11, 21 * SETTLE_US)
    assert (alone.clock, alone.process, alone.values) == ((0,), 0, {"here": True})
    assert alone.view != state.view
    assert member.views == 2


def test_a_merge_gives_a_clock_heartbeat_when_it_is_certain():
    """Once, with the newest clock, when all ports are known up to the message; not for a clock without news.

    message           |500
    ports known to        499 501
    """
    member = process(clock_heartbeat_us=100)
    member.born("a", 5, "office", 0)
    view = settled(member).view
    now_us = 10 * SETTLE_US
    for number in (1, 2, 2, 1):
        assert member.receive("hall", "a", message(view, 0, (number, 0)), 500) is None
    assert member.merged == 2
    assert member.advance(499, now_us + 1000) == []
    [report] = member.advance(501, now_us + 2000)
    assert (report.is_heartbeat, report.clock, report.values) == (True, (2, 0), {})
    assert report.earliest_us <= report.latest_us == 501
    member.receive("hall", "a", message(view, 0, (3, 0)), 600)
    assert member.advance(700, now_us + 2050) == []  # too soon after the last
    assert [r.clock for r in member.advance(701, now_us + 2100)] == [(3, 0)]
    assert member.advance(800, now_us + 9000) == []


def test_a_state_that_follows_a_message_has_it_in_its_clock():
    """So no clock heartbeat is needed; a state that began before the message needs one."""
    member = process()
    member.born("a", 5, "office", 0)
    view = settled(member).view
    member.receive("hall", "a", message(view, 0, (4, 0)), 500)
    member.observe("tags", "E", None, {}, 450, 520)
    state, heartbeat = [*member.advance(521, 20 * SETTLE_US), *member.advance(522, 21 * SETTLE_US)]
    assert (state.clock, heartbeat.clock, heartbeat.is_heartbeat) == ((0, 1), (4, 1), True)
    after = process()
    after.born("a", 5, "office", 0)
    view = settled(after).view
    after.receive("hall", "a", message(view, 0, (4, 0)), 500)
    after.observe("tags", "E", None, {}, 500, 520)
    assert [r.clock for r in after.advance(521, 20 * SETTLE_US)] == [(4, 1)]


def test_states_of_the_next_view_wait_for_it_and_hasten_it():
    """A peer that knows the view already is not made to wait; others' views are counted, and only so many kept."""
    member = process()
    settled(member)
    member.born("a", 5, "office", 20 * SETTLE_US)
    number = view_number([("a", 5), ("b", 7)])
    assert member.advance(2, 20 * SETTLE_US + 5) == []
    member.receive("hall", "a", message(number, 0, (3, 0)), 20 * SETTLE_US + 6)
    [first] = member.advance(3, 20 * SETTLE_US + 6)
    assert (first.view, first.clock, member.merged) == (number, (0, 0), 1)
    assert member.clock.newest == (3, 0)
    for n in range(2 * MAX_HELD):
        member.receive("hall", "a", message(n, 0, (3, 0)), 7)
    assert (len(member._held), member.counters["other_view"]) == (MAX_HELD, 2 * MAX_HELD + 1)


def test_what_is_not_believed_is_counted_by_reason_and_changes_nothing():
    """Noise, another group, another gateway's index, impossible numbers; what is cut off is counted too."""
    member = process(["a", "c"])
    member.born("a", 5, "office", 0)
    member.born("c", 5, "office", 0)
    view = settled(member).view
    for payload in (
        b"", message(view, 0, (1, 0, 0), group="garage"), message(view, 2, (1, 0, 0)),
        message(view, 0, (MAX_STATES, 0, 0)), message(view, 0, (2, 5, 1)),
    ):  # fmt: skip
        member.receive("hall", "a", payload, 0)
    member.born("a", 6, "office", 0)
    member.born("a", 5, "office", 0)
    assert member.counters == {
        "malformed": 1, "foreign": 2, "impossible": 1, "other_view": 0, "old_boots": 1, "cut_off": 1,
    }  # fmt: skip
    assert member.clock.newest == (2, 0, 1)
