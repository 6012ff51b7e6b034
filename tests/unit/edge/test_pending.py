"""Pending readings: what they become with a number, once and again, and what is looked at before."""

import pytest

from support.edge.pending import pending
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.rules.evaluate import Source


def test_it_becomes_a_reading_with_its_number():
    """Of its origin and stamp; a second attempt gives it another number."""
    one = pending("E1", 5, 9)
    assert [one.numbered(1 << 40, seq).identity for seq in (3, 4)] == [("gw", 1 << 40, 3), ("gw", 1 << 40, 4)]
    reading = one.reading
    assert (reading.seq, reading.key, reading.t_min, reading.t_max, reading.vclock) == (4, "E1", 5, 9, (0,))


def test_a_refused_one_has_no_number():
    """Neither for the peers nor for a rule that keeps it."""
    one = pending("E1")
    one.source = Source(0, 9, "E1", "bounded", ())
    one.numbered(7, 3)
    assert (one.source.boot, one.source.seq) == (7, 3)
    one.refused()
    assert (one.reading, one.source.boot, one.source.seq) == (None, None, None)


def test_it_is_checked_once():
    """Before its number where it comes from outside; else when it gets it."""
    good, bad = pending("E1"), pending("")
    good.check()
    assert good.checked
    for attempt in (bad.check, lambda: bad.numbered(1, 0)):
        with pytest.raises(ValueError, match="reading key: found ''"):
            attempt()
    good.key = ""  # changed behind the check: nobody looks again
    assert good.numbered(1, 0).key == ""


def test_without_a_stamp_it_becomes_no_reading():
    """The clock is not known yet; its fields can be checked nevertheless."""
    one = PendingReading("s", "tag", 5, 9, "E1")
    one.check()
    with pytest.raises(ValueError, match="found no stamp"):
        one.numbered(1, 0)
