"""When a value of the local state begins and ends: presence of a tag, a measure with two thresholds."""

import pytest

from whenabouts_edge.group.conditions import Presence, Threshold


def presence(reads=1, key=None, leave_us=100):
    condition = Presence("here", "tags", key, reads, leave_us)
    condition.start(0, 0)
    return condition


def threshold(on_at=30, off_at=20, hold_us=0, attr=None):
    return Threshold("hot", "probe", None, attr, on_at, off_at, hold_us)


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
    assert alone.feed(200, 210, None, {}) == [(100, 110, False)]  # a pause: the count starts again
    assert alone.feed(220, 230, None, {}) == [(220, 230, True)]


def test_conditions_want_their_stream_and_their_tag():
    """Without a key any tag counts."""
    assert presence().wants("tags", "E1")
    assert not presence().wants("other", "E1")
    assert presence(key="E1").wants("tags", "E1")
    assert not presence(key="E1").wants("tags", "E2")
    assert threshold().wants("probe", None)


def test_a_measure_has_two_thresholds():
    """On at 30, off at 20; what begins between is off; a change is certain when nothing later can lie before it."""
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


def test_a_measure_between_its_thresholds_does_not_hold():
    """It is beyond neither, so it ends the time of both."""
    hot = threshold(hold_us=100)
    hot.feed(0, 0, 0, {})
    assert hot.advance(200) == [(100, 100, False)]
    for at, value in ((210, 31), (290, 25), (320, 31)):
        assert hot.feed(at, at, value, {}) == []
    assert hot.advance(421) == [(420, 420, True)]
    hot.feed(500, 500, 15, {})
    hot.feed(550, 550, 25, {})
    assert hot.advance(1000) == []


def test_a_reading_beyond_that_may_be_older_than_one_against_it_does_not_count():
    """Overlapping stamps leave the order open; the next one that is certainly later counts."""
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
    """The text has what was found."""
    with pytest.raises(ValueError, match="found"):
        make()
