"""Readings dated afterwards hold the truth, go on in order, and are neither too many nor kept too long."""

from hypothesis import given
from hypothesis import strategies as st

from whenabouts_edge.clock import ASSUMED_DRIFT_PPM, ClockSample
from whenabouts_edge.link import Observed
from whenabouts_edge.undated import AT_ONCE, KEPT_US, LIMIT, Undated

UNKNOWN = ClockSample(0, 0, None, "unbounded")


def observed(n, window_us):
    """A reading of that window in host time, stamped while nothing was known."""
    return Observed("hall", "gw", "s", str(n), {}, UNKNOWN.to_utc(*window_us), "unbounded", window_us)


def all_released(undated, sample, now_us):
    """Everything that goes on, call by call."""
    found = []
    while some := undated.released(sample, now_us):
        assert len(some) <= AT_ONCE
        found += some
    return found


@given(
    st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**6)), max_size=300),
    st.integers(0, 10**10),
    st.integers(0, 10**6),
    st.fractions(-1, 1),
    st.fractions(-1, 1),
    st.integers(-(10**15), 10**15),
)
def test_the_truth_lies_in_every_stamp_that_is_given_afterwards(windows, at_us, bound_us, error, drift, offset_us):
    """
    host     readings ...        first sample with a bound
    error    drifting by up to 50 ppm towards what the sample admits
    """
    undated = Undated()
    undated.keep([observed(n, (begin, begin + length)) for n, (begin, length) in enumerate(windows)])
    assert undated.released(UNKNOWN, 0) == []
    found = all_released(undated, ClockSample(at_us, offset_us, bound_us, "bounded"), at_us)
    assert [one.key for one in found] == [str(n) for n in range(len(windows))]
    assert (len(undated), undated.dated, undated.given_up) == (0, len(windows), 0)
    for one, (begin, length) in zip(found, windows, strict=True):
        for moment in (begin, begin + length):
            wrong_us = error * bound_us + drift * ASSUMED_DRIFT_PPM * (moment - at_us) / 1_000_000
            assert one.stamp.t_min <= moment + offset_us - wrong_us <= one.stamp.t_max
        assert one.clock_state == "bounded"


def test_the_oldest_go_on_undated_when_there_are_too_many_or_for_too_long():
    """An hour, and ten thousand."""
    undated = Undated()
    undated.keep([observed(n, (n, n)) for n in range(LIMIT + 3)])
    assert [one.key for one in all_released(undated, UNKNOWN, 0)] == ["0", "1", "2"]
    assert [one.key for one in all_released(undated, UNKNOWN, KEPT_US + 5)] == ["3", "4"]
    assert undated.given_up == 5
    assert len(undated) == LIMIT - 2
    assert len(undated.give_up()) == AT_ONCE
