"""The laws of rows in a spool: none is left at the end, and no reading is counted as refused and waits to be sent."""

from dataclasses import replace

import pytest

from support.edge.pending import pending
from whenabouts_edge.store.gaps import Gap
from whenabouts_edge.store.spool import Spool
from whenabouts_sim.chaos.checks.limits import counted_and_waiting, left_rows

GAP = Gap("hall", "gw", "dock/tags", 3, 0, 9, "bounded")


@pytest.fixture
def spool(tmp_path):
    spool = Spool(tmp_path / "spool.sqlite", 1 << 20)
    yield spool
    spool.close()


def left(spool):
    return list(left_rows(spool._db))


def test_a_reading_that_waits_is_left_until_it_is_stored(spool):
    one = pending("K")
    assert left(spool) == []
    spool.waiting.numbered([one])
    spool.waiting.write([one])
    assert left(spool) == ["rows of 1 readings that wait for UTC"]
    spool.append([one])
    assert left(spool) == []


def test_a_count_of_refused_readings_is_left_until_it_is_told(spool):
    spool.keep_gaps([GAP])
    assert left(spool) == ["rows of 1 counts of refused readings"]
    spool.append([], [GAP])
    assert left(spool) == []


def test_a_row_of_which_a_bit_has_changed_is_not_waited_for(spool):
    """No agent reads it, and it stays."""
    spool.keep_gaps([GAP])
    spool._db.execute("UPDATE gap SET count = 4")
    assert left(spool) == []


def test_a_spool_that_was_closed_says_so(spool):
    spool.close()
    [text] = left(spool)
    assert "cannot be read" in text


def test_a_reading_is_counted_or_waits_never_both(spool):
    """While only memory counts it, its row may stay."""
    one = pending("K")
    spool.waiting.numbered([one])
    spool.waiting.write([one])
    gap = replace(GAP, rows=(one.kept.row,))
    assert list(counted_and_waiting(spool._db, [gap])) == []
    with spool._db:
        spool.gaps.write([gap])
    [text] = counted_and_waiting(spool._db, [gap])
    assert text == "1 readings of dock/tags that are counted as refused, and wait to be sent"
    assert list(counted_and_waiting(spool._db, [replace(gap, count=4)])) == []
    assert list(counted_and_waiting(spool._db, [GAP])) == []
    spool.keep_gaps([gap])
    assert list(counted_and_waiting(spool._db, [gap])) == []
