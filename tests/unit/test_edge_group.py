"""The group's parts one by one: conditions, detection, dense clock, views, what peers can be believed, the whole process."""

import pytest

from whenabouts_edge.group.conditions import Presence, Threshold
from whenabouts_edge.group.dense_clock import MAX_LATER, DenseClock, joined
from whenabouts_edge.group.detection import MAX_OPEN, MAX_WAITING, Detection
from whenabouts_edge.group.membership import MAX_PAST_BOOTS, Membership
from whenabouts_edge.group.peers import MAX_JUMP, MAX_STATE_BYTES, MAX_STATES, PeerError, believed, decode_state
from whenabouts_edge.group.process import MAX_HELD, SETTLE_US, GroupProcess
from whenabouts_protocol import Reading, encode_batch
from whenabouts_protocol.group_state import attrs_of, view_number


def presence(reads=1, key=None, leave_us=100):
    found = Presence("here", "tags", key, reads, leave_us)
    found.start(0)
    return found


def threshold(on_at=30, off_at=20, hold_us=0, attr=None):
    return Threshold("hot", "probe", None, attr, on_at, off_at, hold_us)


def message(view, process, clock, gateway="a", boot=5, site="hall", group="office", count=1, **more):
    return encode_batch([
        Reading(site=site, gateway=gateway, boot=boot, seq=n, stream="s", kind="state", t_min=0, t_max=1, vclock=clock,
                attrs=attrs_of(group, view, process, {}), **more)
        for n in range(count)
    ])  # fmt: skip


# Conditions.


def test_a_tag_is_unknown_then_present_then_gone():
    """It comes with its first read and goes leave_us after the last; intervals are those of the reads, moved.

    read        [10..14]   [60..62]
    leave                                      [160..162]
    """
    here = presence()
    assert here.earliest() == 100  # it may turn out that there was none
    assert here.feed(10, 14, None, {}) == [(10, 14, True)]
    assert here.feed(60, 62, None, {}) == []
    assert here.advance(162) == []
    assert here.earliest() == 160
    assert here.advance(163) == [(160, 162, False)]
    assert (here.earliest(), here.advance(10_000)) == (None, [])


def test_without_any_read_a_tag_is_known_to_be_absent_after_the_leave_time():
    """Counted from the start."""
    here = presence()
    assert here.advance(100) == []
    assert here.advance(101) == [(100, 100, False)]


def test_a_pause_that_is_not_sure_is_none():
    """The next read begins at the latest moment of the leave: it may be in time. One microsecond later it is not."""
    here = presence()
    here.feed(0, 10, None, {})
    assert here.feed(110, 115, None, {}) == []
    assert here.feed(216, 220, None, {}) == [(210, 215, False), (216, 220, True)]


def test_presence_after_several_reads_lies_where_the_last_of_them_may():
    """Reads without a pause are counted; the interval is from the k-th earliest moment to the latest of all."""
    here = presence(reads=3)
    assert here.feed(0, 40, None, {}) == []
    assert here.feed(10, 20, None, {}) == []
    assert here.feed(30, 35, None, {}) == [(30, 40, True)]
    alone = presence(reads=2)
    assert alone.feed(0, 10, None, {}) == []
    assert alone.feed(200, 210, None, {}) == [(100, 110, False)]  # a pause: counted anew
    assert alone.feed(220, 230, None, {}) == [(220, 230, True)]


def test_conditions_want_their_stream_and_their_tag():
    """Without a key any tag counts."""
    assert presence().wants("tags", "E1")
    assert not presence().wants("other", "E1")
    assert presence(key="E1").wants("tags", "E1")
    assert not presence(key="E1").wants("tags", "E2")
    assert threshold().wants("probe", None)


def test_a_measure_has_two_thresholds():
    """On at 30, off at 20; what begins between is off; a change is sure when nothing later can lie before it."""
    hot = threshold()
    assert hot.feed(0, 2, 25, {}) == []
    assert hot.feed(10, 12, 30, {}) == [(0, 2, False)]
    assert hot.feed(20, 22, 21, {}) == [(10, 12, True)]
    assert hot.advance(1000) == []  # 21 is not off yet
    assert hot.feed(1000, 1002, 20.0, {}) == []
    assert (hot.earliest(), hot.advance(1003)) == (1000, [(1000, 1002, False)])


def test_a_measure_can_be_on_when_it_is_low():
    """on_at below off_at."""
    cold = threshold(on_at=2, off_at=5)
    cold.feed(0, 0, 1, {})
    assert cold.advance(1) == [(0, 0, True)]
    cold.feed(10, 10, 4, {})
    cold.feed(20, 20, 5, {})
    assert cold.advance(21) == [(20, 20, False)]


def test_a_measure_must_hold():
    """The change comes hold_us after the first reading beyond; a reading back in between ends it.

    30 or more    [10]  [50]          [200]      [260]
    less                      [90]
    on                                                   [300] = 200 + 100
    """
    hot = threshold(hold_us=100)
    hot.feed(-500, -500, 0, {})
    for at, value in ((10, 31), (50, 35), (90, 25), (200, 31), (260, 30)):
        assert [change for change in hot.feed(at, at, value, {}) if change[2]] == []
    assert hot.advance(300) == []
    assert hot.advance(301) == [(300, 300, True)]


def test_a_reading_beyond_that_may_be_older_than_one_against_it_does_not_count():
    """Overlapping stamps leave the order open; the next one that is surely later counts."""
    hot = threshold()
    hot.feed(0, 50, 0, {})
    hot.feed(40, 60, 40, {})
    assert hot.advance(1000) == []
    hot.feed(1000, 1010, 41, {})
    assert hot.advance(2000) == [(1000, 1010, True)]


def test_what_is_no_number_is_counted():
    """Of the value or of the attribute that is compared."""
    hot = threshold(attr="rssi")
    for attrs in ({}, {"rssi": "x"}, {"rssi": True}):
        assert hot.feed(0, 0, 99, attrs) == []
    assert hot.unusable == 3
    hot.feed(0, 0, None, {"rssi": 40})
    assert hot.advance(1) == [(0, 0, True)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Presence("x", "s", None, 0, 1),
        lambda: Presence("x", "s", None, 1, 0),
        lambda: Threshold("x", "s", None, None, 1, 1, 0),
        lambda: Threshold("x", "s", None, None, 1, 2, -1),
    ],
)
def test_conditions_refuse_what_has_no_meaning(make):
    """The text says what was found."""
    with pytest.raises(ValueError, match="found"):
        make()


# Detection.


def two(leave_us=1000):
    found = Detection([Presence("a", "tags", "A", 1, leave_us), Presence("b", "tags", "B", 1, leave_us)])
    found.advance(0)
    return found


def test_changes_that_are_apart_begin_a_state_each():
    """Whatever the order in which their readings come.

    a   [10..20]
    b             [30..40]     came first
    """
    found = two()
    found.observe("tags", "B", None, {}, 30, 40)
    found.observe("tags", "A", None, {}, 10, 20)
    assert found.advance(20) == []
    assert found.advance(21) == [(10, 20, {"a": True})]
    assert found.sure_until() == 21
    assert found.advance(35) == []
    assert found.sure_until() == 30  # b may have changed
    assert found.advance(41) == [(30, 40, {"a": True, "b": True})]


def test_changes_whose_order_is_unknown_begin_one_state_after_one_of_an_unknown_kind():
    """Touching intervals count as overlapping; the hull contains both moments.

    a   [10....20]
    b            [20....30]
    """
    found = two()
    found.observe("tags", "A", None, {}, 10, 20)
    found.observe("tags", "B", None, {}, 20, 30)
    assert found.advance(25) == []
    assert found.advance(31) == [(10, 30, {}), (10, 30, {"a": True, "b": True})]
    assert found.unsure == 1


def test_a_change_waits_while_another_may_have_been_before_it():
    """b may have left before a came: that is sure only later.

    b      [0..50]                    leave [1000.......1050]
    a                                            [1010..1011]
    """
    found = two()
    found.observe("tags", "B", None, {}, 0, 50)
    found.advance(60)
    found.observe("tags", "A", None, {}, 1010, 1011)
    assert [values for _, _, values in found.advance(1040)] == []
    begun = found.advance(1051)
    assert begun[-1] == (1000, 1050, {"a": True, "b": False})


def test_more_than_can_wait_is_taken_at_once_and_counted():
    """The oldest reading goes first; a stalled port does not fill the memory."""
    found = two(leave_us=1)
    for n in range(MAX_WAITING + 3):
        found.observe("tags", "A", None, {}, 10 * n, 10 * n)
    assert found.hurried == 3
    assert found.advance(10**9)[-1][2]["a"] is False
    many = Detection([Presence("a", "tags", None, 1, 1), Presence("slow", "other", None, 1, 10**9)])
    many.advance(0)
    for n in range(3 * MAX_OPEN):  # a comes and goes; the other keeps everything open from its leave on
        many.observe("tags", "A", None, {}, 10 * n, 10 * n)
    many.advance(10**6)
    assert len(many._open) <= MAX_OPEN


def test_time_does_not_go_back():
    """A moment that is older than the last changes nothing."""
    found = two()
    found.observe("tags", "A", None, {}, 10, 20)
    assert len(found.advance(100)) == 1
    assert found.advance(50) == []
    assert found.sure_until() == 100


# The dense clock.


def test_a_message_counts_for_what_surely_happened_after_it():
    """An event dated back before the message does not follow from it.

    heard (0, 3)          |100
    event        [90......110]     knows nothing
    event                 [100..]  knows it
    """
    clock = DenseClock(0, 2)
    assert clock.received(100, (0, 3))
    assert not clock.received(200, (0, 2))
    assert (clock.at(99), clock.at(100)) == ((0, 0), (0, 3))
    assert clock.begin(90, 110) == (1, 0)
    assert clock.at(109) == (0, 3)  # the new state had not surely begun
    assert clock.at(110) == (1, 3)
    assert clock.begin(120, 130) == (2, 3)
    clock.settle(115)
    assert (clock.at(0), clock.newest, clock.number) == ((1, 3), (2, 3), 2)


def test_steps_beyond_the_limit_count_later_not_earlier():
    """What is joined counts from the later of both moments."""
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
    found = Membership("office", "m", 7, ["z", "a", "x"])
    assert found.view().members == [("m", 7)]
    assert found.born("z", 1, "office")
    assert found.born("a", 2, "office")
    assert found.born("x", 3, "garage")
    assert not found.born("stranger", 3, "office")
    view = found.view()
    assert (view.members, view.own) == ([("a", 2), ("m", 7), ("z", 1)], 1)
    assert view.number == view_number(view.members, [("x", 3)])
    assert not found.born("z", 1, "office")


def test_leaves_and_reboots_make_views_that_never_come_back():
    """Stopped, removed, another group, a new boot: each is a new number, also with members as before."""
    found = Membership("office", "m", 7, ["a"])
    numbers = [found.view().number]

    def step(changed):
        assert changed
        numbers.append(found.view().number)

    step(found.born("a", 1, "office"))
    step(found.stopped("a", 1))
    assert not found.born("a", 1, "office")  # its birth again: it stays gone
    step(found.born("a", 2, "office"))
    step(found.removed("a"))
    step(found.born("a", 3, "office"))
    assert not found.born("a", 1, "office")
    assert not found.born("a", 2, "office")
    assert found.old_boots == 2
    step(found.born("a", 4, None))
    step(found.born("a", 5, "office"))
    step(found.born("a", 5, "garage"))
    assert len(set(numbers)) == len(numbers)
    assert found.view().members == [("m", 7)]


def test_an_end_may_come_before_its_birth_and_counts_only_for_its_boot():
    """Kept messages of several topics come in any order."""
    found = Membership("office", "m", 7, ["a"])
    assert not found.stopped("a", 1)
    found.born("a", 1, "office")
    assert found.view().members == [("m", 7)]
    found.born("a", 2, "office")
    assert not found.stopped("a", 1)
    assert found.view().members == [("a", 2), ("m", 7)]
    assert not found.stopped("stranger", 1)
    assert not found.removed("stranger")
    for boot in range(3, 3 + 2 * MAX_PAST_BOOTS):
        found.born("a", boot, "office")
    assert len(found._past["a"]) == MAX_PAST_BOOTS


def test_members_with_the_same_knowledge_agree():
    """Each counts itself among the others."""
    names = ["a", "b", "c"]
    views = []
    for own in names:
        found = Membership("office", own, 5, [n for n in names if n != own])
        for other in reversed(names):
            found.born(other, 5, "office")
        views.append(found.view())
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
    """Its own number as it says; of a third MAX_JUMP states ahead; of this gateway what has begun."""
    found = Membership("office", "b", 7, ["a", "c"])
    found.born("a", 5, "office")
    found.born("c", 6, "office")
    view, clock = found.view(), DenseClock(1, 3)
    clock.begin(0, 0)

    def told(process, counts, gateway="a", boot=5):
        _, state = decode_state(message(view.number, process, counts, gateway, boot), "hall", gateway)
        return believed(gateway, boot, state, view, clock)

    assert told(0, (1000, 1, 3)) == (1000, 1, 3)
    assert told(0, (1, 9, MAX_JUMP + 50)) == (1, 1, MAX_JUMP)
    for process, counts, boot, reason in (
        (0, (MAX_STATES, 0, 0), 5, "impossible"), (2, (1, 0, 0), 5, "foreign"), (1, (1, 0, 0), 5, "foreign"),
        (0, (1, 0, 0), 4, "foreign"), (0, (1, 0), 5, "foreign"), (0, (1, 0, 0, 0), 5, "foreign"),
    ):  # fmt: skip
        with pytest.raises(PeerError) as caught:
            told(process, counts, boot=boot)
        assert caught.value.reason == reason


# The process.


def process(peers=("a",), conditions=None, evidence_us=0):
    conditions = [Presence("here", "tags", None, 1, 1000)] if conditions is None else conditions
    return GroupProcess("office", "b", 7, list(peers), Detection(conditions), evidence_us)


def settled(found, now_us=10 * SETTLE_US):
    """Its first view, taken up; the report of state 0."""
    found.advance(0, 0)
    [report] = found.advance(1, now_us)
    assert not report.evidence
    assert set(report.clock) == {0}
    return report


def test_a_view_begins_when_its_members_have_settled():
    """Births that come one after the other make one view; readings before it carry no clock."""
    found = process(["a", "c"])
    assert found.advance(0, 100) == []
    assert found.observe("tags", "E", None, {}, 0, 0) == ()
    found.born("a", 5, "office", 200)
    found.born("c", 5, "office", SETTLE_US)
    assert found.advance(1, SETTLE_US + 150) == []
    [first] = found.advance(2, 2 * SETTLE_US)
    assert (first.clock, first.process, first.values, first.earliest_us, first.latest_us) == (
        (0, 0, 0), 1, {"here": True}, 2, 2,
    )  # fmt: skip
    assert first.view == view_number([("a", 5), ("b", 7), ("c", 5)])
    assert found.observe("other", "E", None, {}, 0, 0) == (0, 0, 0)
    assert found.advance(3, 9 * SETTLE_US) == []


def test_a_new_view_begins_with_state_0_and_the_values_there_are():
    """Numbers and clocks start anew; the states before belong to the old view."""
    found = process()
    found.born("a", 5, "office", 0)
    settled(found)
    found.observe("tags", "E", None, {}, 5, 6)
    [state] = found.advance(10, 10 * SETTLE_US)
    assert (state.clock, state.values, state.earliest_us, state.latest_us) == ((0, 1), {"here": True}, 5, 6)
    found.stopped("a", 5, 20 * SETTLE_US)
    [alone] = found.advance(11, 21 * SETTLE_US)
    assert (alone.clock, alone.process, alone.values) == ((0,), 0, {"here": True})
    assert alone.view != state.view
    assert found.views == 2


def test_a_merge_is_told_by_a_clock_only_report_when_it_is_sure():
    """Once, with the newest clock, when all ports are known up to the message; not for what says nothing new.

    message           |500
    ports known to        499 501
    """
    found = process(evidence_us=100)
    found.born("a", 5, "office", 0)
    view = settled(found).view
    now_us = 10 * SETTLE_US
    for number in (1, 2, 2, 1):
        assert found.receive("hall", "a", message(view, 0, (number, 0)), 500) is None
    assert found.merged == 2
    assert found.advance(499, now_us + 1000) == []
    [report] = found.advance(501, now_us + 2000)
    assert (report.evidence, report.clock, report.values) == (True, (2, 0), {})
    assert report.earliest_us <= report.latest_us == 501
    found.receive("hall", "a", message(view, 0, (3, 0)), 600)
    assert found.advance(700, now_us + 2050) == []  # too soon after the last
    assert [r.clock for r in found.advance(701, now_us + 2100)] == [(3, 0)]
    assert found.advance(800, now_us + 9000) == []


def test_a_state_that_follows_a_message_tells_it_itself():
    """Its clock has the message, so no clock-only report is needed; one that began before has not."""
    found = process()
    found.born("a", 5, "office", 0)
    view = settled(found).view
    found.receive("hall", "a", message(view, 0, (4, 0)), 500)
    found.observe("tags", "E", None, {}, 450, 520)
    state, evidence = [*found.advance(521, 20 * SETTLE_US), *found.advance(522, 21 * SETTLE_US)]
    assert (state.clock, evidence.clock, evidence.evidence) == ((0, 1), (4, 1), True)
    after = process()
    after.born("a", 5, "office", 0)
    view = settled(after).view
    after.receive("hall", "a", message(view, 0, (4, 0)), 500)
    after.observe("tags", "E", None, {}, 500, 520)
    assert [r.clock for r in after.advance(521, 20 * SETTLE_US)] == [(4, 1)]


def test_states_of_the_next_view_wait_for_it_and_hasten_it():
    """A peer that knows the view already is not made to wait; others' views are counted, and only so many kept."""
    found = process()
    settled(found)
    found.born("a", 5, "office", 20 * SETTLE_US)
    number = view_number([("a", 5), ("b", 7)])
    assert found.advance(2, 20 * SETTLE_US + 5) == []
    found.receive("hall", "a", message(number, 0, (3, 0)), 20 * SETTLE_US + 6)
    [first] = found.advance(3, 20 * SETTLE_US + 6)
    assert (first.view, first.clock, found.merged) == (number, (0, 0), 1)
    assert found.clock.newest == (3, 0)
    for n in range(2 * MAX_HELD):
        found.receive("hall", "a", message(n, 0, (3, 0)), 7)
    assert (len(found._held), found.counters["other_view"]) == (MAX_HELD, 2 * MAX_HELD + 1)


def test_what_is_not_believed_is_counted_by_reason_and_changes_nothing():
    """Noise, another group, another gateway's index, impossible numbers; what is cut off is counted too."""
    found = process(["a", "c"])
    found.born("a", 5, "office", 0)
    found.born("c", 5, "office", 0)
    view = settled(found).view
    for payload in (
        b"", message(view, 0, (1, 0, 0), group="garage"), message(view, 2, (1, 0, 0)),
        message(view, 0, (MAX_STATES, 0, 0)), message(view, 0, (2, 5, 1)),
    ):  # fmt: skip
        found.receive("hall", "a", payload, 0)
    found.born("a", 6, "office", 0)
    found.born("a", 5, "office", 0)
    assert found.counters == {
        "malformed": 1, "foreign": 2, "impossible": 1, "other_view": 0, "old_boots": 1, "cut_off": 1,
    }  # fmt: skip
    assert found.clock.newest == (2, 0, 1)
