"""States out of changes whose order may be unknown: what begins one, what waits, what is taken at once."""

from support.group.parts import process, settled
from whenabouts_edge.group.conditions import Presence, Threshold
from whenabouts_edge.group.detection import MAX_OPEN, MAX_WAITING, Detection
from whenabouts_edge.group.process import SETTLE_US


def two(leave_us=1000):
    detection = Detection([Presence("a", "tags", "A", 1, leave_us), Presence("b", "tags", "B", 1, leave_us)])
    detection.advance(0)
    return detection


def opened(since_us, reads=1, leave_us=100):
    """A detection that is clear up to 0, while reads that happened before since_us may have been lost."""
    detection = Detection([Presence("a", "s", None, reads, leave_us)])
    assert detection.advance(0, since_us) == []
    return detection


def test_silence_says_nothing_before_all_ports_were_open():
    """They are clear up to an earlier moment, and what came between is lost: the last read may have been any of these."""
    detection = opened(500)
    assert detection.advance(600) == []
    assert detection.advance(601) == [(100, 600, {"a": False})]
    detection = opened(500)
    detection.observe("s", "k", None, {}, 200, 210)
    assert detection.advance(600) == [(200, 210, {"a": True})]
    assert detection.advance(601) == [(300, 600, {"a": False})]


def test_what_was_read_while_ports_were_opened_counts_as_ever():
    """A pause between two reads is one; a read that waited for the first clear moment hides no later opening."""
    detection = opened(500, reads=2)
    for earliest_us in (10, 300):
        detection.observe("s", "k", None, {}, earliest_us, earliest_us + 10)
    assert detection.advance(500) == []
    detection = Detection([Presence("a", "s", None, 1, 100)])
    detection.observe("s", "k", None, {}, 0, 10)
    assert detection.advance(5, 5000) == []
    assert detection.advance(5100) == [(0, 10, {"a": True})]
    assert detection.advance(5101) == [(100, 5100, {"a": False})]


def test_a_measure_has_not_held_before_all_ports_were_open():
    detection = Detection([Threshold("a", "s", None, None, 5, 2, 100)])
    detection.advance(0, 500)
    detection.observe("s", None, 9, {}, 10, 20)
    assert detection.advance(600) == []
    assert detection.advance(601) == [(110, 600, {"a": True})]


def test_reads_that_waited_for_the_first_clear_moment_count_from_when_they_happened():
    """Another port was slow to report: a may have left from 1010 on, long before the moment that is clear at first.

    a   [10..20]      leave [1010..1020]      first clear moment: 5000
    """
    detection = Detection([Presence("a", "tags", "A", 1, 1000), Presence("b", "tags", "B", 1, 1000)])
    detection.observe("tags", "A", None, {}, 10, 20)
    assert detection.advance(5000) == [(10, 20, {"a": True}), (1010, 1020, {"a": False})]
    assert detection.sure_until() == 5000


def test_changes_that_are_apart_begin_a_state_each():
    """For any order in which their readings come.

    a   [10..20]
    b             [30..40]     came first
    """
    detection = two()
    detection.observe("tags", "B", None, {}, 30, 40)
    detection.observe("tags", "A", None, {}, 10, 20)
    assert detection.advance(20) == []
    assert detection.advance(21) == [(10, 20, {"a": True})]
    assert detection.sure_until() == 21
    assert detection.advance(35) == []
    assert detection.sure_until() == 30  # b may have changed
    assert detection.advance(41) == [(30, 40, {"a": True, "b": True})]


def test_changes_whose_order_is_unknown_begin_one_state_after_one_of_an_unknown_kind():
    """Touching intervals count as overlapping; the hull contains both moments.

    a   [10....20]
    b            [20....30]
    """
    detection = two()
    detection.observe("tags", "A", None, {}, 10, 20)
    detection.observe("tags", "B", None, {}, 20, 30)
    assert detection.advance(25) == []
    assert detection.advance(31) == [(10, 30, {}), (10, 30, {"a": True, "b": True})]
    assert detection.unsure == 1


def test_a_change_waits_while_another_may_have_been_before_it():
    """b may have left before a came: the order is certain only later.

    b      [0..50]                    leave [1000.......1050]
    a                                            [1010..1011]
    """
    detection = two()
    detection.observe("tags", "B", None, {}, 0, 50)
    detection.advance(60)
    detection.observe("tags", "A", None, {}, 1010, 1011)
    assert [values for _, _, values in detection.advance(1040)] == []
    begun = detection.advance(1051)
    assert begun[-1] == (1000, 1050, {"a": True, "b": False})


def test_more_than_can_wait_is_taken_at_once_and_counted():
    """The oldest reading goes first; a stalled port does not fill the memory."""
    detection = two(leave_us=1)
    for n in range(MAX_WAITING + 3):
        detection.observe("tags", "A", None, {}, 10 * n, 10 * n)
    assert detection.hurried == 3
    assert detection.advance(10**9)[-1][2]["a"] is False
    many = Detection([Presence("a", "tags", None, 1, 1), Presence("slow", "other", None, 1, 10**9)])
    many.advance(0)
    for n in range(3 * MAX_OPEN):  # a comes and goes; the other keeps everything open from its leave on
        many.observe("tags", "A", None, {}, 10 * n, 10 * n)
    many.advance(10**6)
    assert len(many._open) <= MAX_OPEN


def test_time_does_not_go_back():
    """A moment that is older than the last changes nothing."""
    detection = two()
    detection.observe("tags", "A", None, {}, 10, 20)
    assert len(detection.advance(100)) == 1
    assert detection.advance(50) == []
    assert detection.sure_until() == 100
    assert detection.late == 0
    detection.observe("tags", "A", None, {}, 99, 110)
    assert detection.late == 1
    whole = process()
    settled(whole)
    whole.advance(1000, 20 * SETTLE_US)
    whole.born("a", 5, "office", 20 * SETTLE_US)
    [report] = whole.advance(500, 30 * SETTLE_US)
    assert (report.earliest_us, report.latest_us) == (1000, 1000)
