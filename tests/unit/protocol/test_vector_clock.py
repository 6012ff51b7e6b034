"""Dense vector clocks: only a new local state ticks."""

import pytest

from whenabouts_protocol.vector_clock import MAX_PROCESSES, VectorClock


def test_a_message_makes_earlier_states_known():
    """
    0:  s0 ---- s1 ---- s2 ------------->     the message of s1 makes s0 known, not s1: it had not ended
                  \\
    1:  s0 --------*------ s1 ---------->     the receipt begins no state
    """
    sender = VectorClock((0, 0)).ticked(0)
    receiver = VectorClock((0, 0)).merged(sender)
    assert receiver == VectorClock((1, 0))
    begun = receiver.ticked(1)
    assert begun == VectorClock((1, 1))
    assert begun.knows_state(0, 0)
    assert not begun.knows_state(0, 1)
    assert not VectorClock((0, 0)).knows_state(1, 0)


def test_concurrent_means_neither_dominates():
    """Equal clocks are not concurrent."""
    a, b = VectorClock((2, 0)), VectorClock((1, 1))
    assert a.concurrent(b)
    assert not a.concurrent(a)
    assert a.dominates(a)
    assert a.merged(b).dominates(a)
    assert not a.merged(b).concurrent(b)


def test_a_clock_does_not_change():
    """Ticking and merging give new clocks; the counts given are copied."""
    counts = [1, 2]
    clock = VectorClock(counts)
    counts[0] = 9
    clock.ticked(1)
    clock.merged(VectorClock((5, 5)))
    assert clock.counts == (1, 2)
    assert len(clock) == 2
    assert len({clock, VectorClock((1, 2))}) == 1
    assert eval(repr(clock)) == clock
    assert clock != (1, 2)


def test_views_of_different_size_do_not_mix():
    """A clock of another view is refused, not padded."""
    for operation in ("merged", "dominates", "concurrent"):
        with pytest.raises(ValueError, match="different views: 1 and 2 entries"):
            getattr(VectorClock((1,)), operation)(VectorClock((1, 2)))


def test_impossible_counts_are_refused():
    """Negative counts and too many processes; the empty clock of a lone gateway is fine."""
    assert len(VectorClock()) == 0
    assert len(VectorClock([0] * MAX_PROCESSES)) == MAX_PROCESSES
    with pytest.raises(ValueError, match="found entry -1, expected counts of 0 or more"):
        VectorClock((0, -1))
    with pytest.raises(ValueError, match="found 65 entries, expected at most 64"):
        VectorClock([0] * (MAX_PROCESSES + 1))
