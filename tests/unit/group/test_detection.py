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
    detection.scanned("port", "s", since_us)
    assert detection.advance(0) == []
    return detection


def seen(since_us, reads=1, leave_us=100):
    """A detection with a read in [0, 10], whose reader has scanned from since_us to 50."""
    detection = opened(since_us, reads, leave_us)
    detection.scanned("port", "s", since_us, 50)
    detection.observe("s", "k", None, {}, 0, 10)
    assert detection.advance(50) == [(0, 10, {"a": True})]
    return detection


def test_silence_says_nothing_before_all_ports_were_open():
    """They are clear up to an earlier moment, and what came between is lost: the last read may have been any of these."""
    detection = opened(500)
    assert detection.advance(600) == []
    assert detection.advance(601) == [(600, 600, {"a": False})]
    detection = opened(500)
    detection.observe("s", "k", None, {}, 200, 210)
    assert detection.advance(600) == [(200, 210, {"a": True}), (300, 310, {})]
    assert detection.advance(601) == [(600, 600, {"a": False})]


def test_a_port_of_another_stream_says_nothing_of_this_one():
    detection = opened(500)
    detection.scanned("other", "t", 9000, 9000)
    assert detection.advance(601) == [(600, 600, {"a": False})]


def test_while_a_port_is_closed_nobody_is_said_to_be_there_or_not():
    """It was open until 50. A tag that was there counts as there for as long as its last read says."""
    detection = seen(0)
    for now_us in range(60, 1000, 10):
        detection.scanned("port", "s", now_us, now_us)
        changes = detection.advance(now_us)
        assert changes == ([(100, 110, {})] if now_us == 120 else [])
        assert detection.sure_until() >= now_us - 10, "a closed port holds no watermark back"
    detection.scanned("port", "s", 1000, 1050)
    assert detection.advance(1100) == [], "its reader has said nothing since 1050"
    detection.scanned("port", "s", 1000, 1200)
    assert detection.advance(1200) == [(1100, 1100, {"a": False})]
    detection.scanned("port", "s", 1300, 1300)
    assert detection.advance(1300) == [(1200, 1200, {})], "it may have come at once"


def test_what_a_reader_that_was_lost_for_a_moment_has_read_last_may_have_been_later():
    """The pause of the port is shorter than that of a tag that leaves."""
    detection = seen(0)
    detection.scanned("port", "s", 80, 90)
    assert detection.advance(90) == []
    detection.scanned("port", "s", 80, 180)
    assert detection.advance(180) == [(100, 110, {})]
    detection.scanned("port", "s", 80, 181)
    assert detection.advance(181) == [(180, 180, {"a": False})]
    detection = seen(0)
    detection.scanned("port", "s", 80, 105)
    detection.observe("s", "k", None, {}, 100, 105)
    assert detection.advance(200) == [], "it was there all the time"


def test_a_value_lasts_until_its_reader_has_surely_scanned():
    """The reader sends keep-alives, the last at 150; the port was clear up to 400 when it fell silent."""
    detection = opened(0)
    detection.scanned("port", "s", 0, 150)
    assert detection.advance(150) == [(100, 100, {"a": False})]
    assert detection.advance(400) == []
    assert detection.sure_until() == 150
    detection.scanned("port", "s", 500, 500)
    assert detection.advance(500) == [(150, 150, {})]
    assert detection.sure_until() == 500


def test_readings_before_a_port_was_lost_are_taken_before():
    """Another port holds all of them up. a comes back at 210, so its port was lost while it was surely away.

    a   [0..10]        left [100..110]    lost [150    200]    read [210..220]
    """
    detection = Detection([Presence("a", "s", None, 1, 100), Presence("b", "t", None, 1, 10**6)])
    for port, stream in (("p", "s"), ("q", "t")):
        detection.scanned(port, stream, 0, 0)
    detection.advance(0)
    detection.observe("s", "k", None, {}, 0, 10)
    detection.scanned("p", "s", 0, 150)
    for now_us in (160, 180, 200):
        detection.scanned("p", "s", now_us, now_us)
    detection.observe("s", "k", None, {}, 210, 220)
    assert detection.advance(300) == [
        (0, 10, {"a": True}), (100, 110, {"a": False}), (150, 150, {}), (210, 220, {"a": True})
    ]  # fmt: skip


def test_two_readers_of_a_stream_must_both_have_scanned():
    detection = Detection([Presence("a", "s", None, 1, 100)])
    detection.scanned("p", "s", 0, 0)
    detection.scanned("q", "s", 0, 0)
    detection.advance(0)
    detection.scanned("p", "s", 0, 1000)
    detection.scanned("q", "s", 70, 70)
    assert detection.advance(1000) == []
    detection.scanned("q", "s", 70, 1000)
    assert detection.advance(1000) == [(170, 170, {"a": False})]


def test_a_read_at_one_reader_says_nothing_of_what_another_one_of_the_stream_lost():
    """p sends keep-alives, the last at 150; it does not scan any more."""
    detection = Detection([Presence("a", "s", None, 1, 100)])
    for port in "pq":
        detection.scanned(port, "s", 0, 0)
    detection.advance(0)
    detection.scanned("p", "s", 0, 150)
    detection.scanned("q", "s", 0, 420)
    detection.observe("s", "k", None, {}, 400, 410)
    assert detection.advance(420) == [(100, 100, {"a": False})]
    assert detection.sure_until() == 150
    detection.scanned("p", "s", 430, 430)
    assert detection.advance(430) == [(150, 150, {}), (400, 410, {"a": True})]


def test_two_losses_of_a_port_are_not_one_though_another_port_holds_both_up():
    detection = Detection([Presence("a", "s", None, 1, 100), Presence("b", "t", None, 1, 10**6)])
    for port, stream in (("p", "s"), ("q", "t")):
        detection.scanned(port, stream, 0, 0)
    detection.advance(0)
    for since_us, sure_us in ((0, 900), (1000, 1000), (1000, 1500), (2000, 2000)):
        detection.scanned("p", "s", since_us, sure_us)
    begun = detection.advance(2000)
    assert begun == [(at, at, {} if n % 2 else {"a": False}) for n, at in enumerate((100, 900, 1100, 1500))]


def measured(*readings):
    """A measure that is true from 30 on, and false from 20 on: its readings in [t, t + 10], and how far its port scanned."""
    detection = Detection([Threshold("a", "s", None, None, 30, 20, 0)])
    detection.scanned("port", "s", 0, 0)
    states = detection.advance(0)
    for at_us, value in readings:
        detection.observe("s", None, value, {}, at_us, at_us + 10)
        detection.scanned("port", "s", 0, at_us + 5)
        states += detection.advance(at_us + 5)
    return detection, states


def test_a_measure_between_its_thresholds_stays_unknown_after_a_loss():
    """At a start it counts as off."""
    detection, states = measured((10, 35), (100, 35))
    assert states == [(10, 20, {"a": True})]
    detection.scanned("port", "s", 400, 400)
    detection.observe("s", None, 25, {}, 410, 420)
    detection.scanned("port", "s", 400, 1000)
    assert detection.advance(1000) == [(105, 105, {})]
    assert measured((10, 25), (100, 25))[1] == [(10, 20, {"a": False})]


def test_a_measure_that_had_perhaps_changed_when_its_port_was_lost_is_unknown_from_its_reading_on():
    detection, states = measured((10, 35), (100, 10))
    assert states == [(10, 20, {"a": True})]
    detection.scanned("port", "s", 400, 400)
    assert detection.advance(400) == [(100, 105, {})]


def test_of_two_sensors_of_a_stream_a_reading_must_follow_all_that_was_lost():
    detection, _ = measured()
    detection.scanned("other", "s", 0, 0)
    for port in ("port", "other"):
        detection.scanned(port, "s", 1000, 2000)
    detection.observe("s", None, 35, {}, 995, 1005)
    assert detection.advance(1500) == []
    detection.observe("s", None, 35, {}, 1600, 1610)
    assert detection.advance(2000) == [(1600, 1610, {"a": True})]


def test_a_measure_is_unknown_from_the_moment_at_which_its_port_was_lost_until_a_later_reading():
    detection = Detection([Threshold("a", "s", None, None, 5, 2, 100)])
    detection.scanned("port", "s", 0, 0)
    detection.advance(0)
    detection.observe("s", None, 9, {}, 10, 20)
    detection.scanned("port", "s", 0, 300)
    assert detection.advance(300) == [(110, 120, {"a": True})]
    detection.observe("s", None, 0, {}, 310, 320)
    detection.scanned("port", "s", 400, 400)
    assert detection.advance(1000) == [(300, 300, {})], "it has not certainly been low for long enough"
    detection.observe("s", None, 9, {}, 1010, 1020)
    detection.scanned("port", "s", 400, 2000)
    assert detection.advance(2000) == [(1110, 1120, {"a": True})]


def test_what_was_read_while_ports_were_opened_counts_as_ever():
    """A pause between two reads is one; a read that waited for the first clear moment hides no later opening."""
    detection = opened(500, reads=2)
    for earliest_us in (10, 300):
        detection.observe("s", "k", None, {}, earliest_us, earliest_us + 10)
    assert detection.advance(500) == []
    detection = Detection([Presence("a", "s", None, 1, 100)])
    detection.observe("s", "k", None, {}, 0, 10)
    detection.scanned("port", "s", 5000)
    assert detection.advance(5) == []
    assert detection.advance(5100) == [(0, 10, {"a": True}), (100, 110, {})]
    assert detection.advance(5101) == [(5100, 5100, {"a": False})]


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
