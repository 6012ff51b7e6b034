"""Readings dated afterwards hold the truth, go on in order, and are neither too many nor kept too long."""

from hypothesis import given
from hypothesis import strategies as st

from support.edge.pending import undated as undated_reading
from whenabouts_edge.clock import ASSUMED_DRIFT_PPM, ClockSample
from whenabouts_edge.store.undated import AT_ONCE, KEPT_US, LIMIT, Undated
from whenabouts_edge.store.waiting import Kept

UNKNOWN = ClockSample(0, 0, None, "unbounded")


def observed(n, window_us):
    """A reading of that window in host time, stamped while nothing was known."""
    return undated_reading(str(n), *window_us)


def all_released(undated, sample, now_us):
    """Everything that goes on, call by call."""
    released = []
    while some := undated.released(sample, now_us):
        assert len(some) <= AT_ONCE
        released += some
    return released


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
    released = all_released(undated, ClockSample(at_us, offset_us, bound_us, "bounded"), at_us)
    assert [one.key for one in released] == [str(n) for n in range(len(windows))]
    assert (len(undated), undated.dated, undated.given_up) == (0, len(windows), 0)
    for one, (begin, length) in zip(released, windows, strict=True):
        for moment in (begin, begin + length):
            wrong_us = error * bound_us + drift * ASSUMED_DRIFT_PPM * (moment - at_us) / 1_000_000
            assert one.stamp[0] <= moment + offset_us - wrong_us <= one.stamp[1]
        assert one.stamp[2] == "bounded"


def test_the_oldest_go_on_undated_when_there_are_too_many_or_for_too_long():
    """An hour, and ten thousand."""
    undated = Undated()
    undated.keep([observed(n, (n, n)) for n in range(LIMIT + 3)])
    assert [one.key for one in all_released(undated, UNKNOWN, 0)] == ["0", "1", "2"]
    assert [one.key for one in all_released(undated, UNKNOWN, KEPT_US + 5)] == ["3", "4"]
    assert undated.given_up == 5
    assert len(undated) == LIMIT - 2


S = 1_000_000
SPEED = st.fractions(-1, 1)  # of the machine's clock, as a part of the assumed drift


def true_us(start_us, host_us, speed):
    """True time of a moment of a run's clock, which drifts by up to what is assumed."""
    return start_us + host_us * (1 - speed * ASSUMED_DRIFT_PPM / 1_000_000)


@given(
    st.lists(st.tuples(st.integers(0, 1000 * S), st.integers(0, 3 * S), st.fractions(0, 1)), min_size=1, max_size=20),
    st.integers(0, 10**6),
    st.booleans(),
    SPEED,
    SPEED,
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 500 * S),
)
def test_the_truth_lies_in_the_stamps_of_a_run_that_the_power_ended(
    reads, bound_us, known, first_speed, second_speed, before_us, off_us, at_us
):
    """
    UTC known     start, no network      power cut      start        synchronised after at_us
        |           |   reads  last read     |            |               |
    """
    start_us = 10**15 + before_us
    last_us = max(begin + length for begin, length, _ in reads)
    again_us = true_us(start_us, last_us, first_speed) + off_us
    undated = Undated(0)
    for n, (begin, length, _) in enumerate(reads):
        one = observed(n, (begin, begin + length))
        one.kept = Kept(n, last_us, 10**15 if known else None)
        undated.keep([one])
    error = bound_us * second_speed
    offset_us = round(true_us(again_us, at_us, second_speed) - at_us + error)
    sample = ClockSample(at_us, offset_us, bound_us + 1, "bounded")
    released = all_released(undated, sample, at_us)
    assert len(released) == len(reads)
    for one, (begin, length, part) in zip(released, reads, strict=True):
        moment_us = true_us(start_us, begin + part * length, first_speed)
        assert one.stamp[0] <= moment_us <= one.stamp[1]
        assert one.stamp[2] == ("bounded" if known else "unbounded")


def test_what_waits_from_before_a_start_waits_an_hour_from_it():
    """The machine's own clock does not show how long it was off."""
    undated = Undated(5)
    one = observed(0, (10**12, 10**12))
    one.kept = Kept(0, 10**12, None)
    undated.keep([one])
    assert undated.released(UNKNOWN, KEPT_US) == []
    assert undated.released(UNKNOWN, KEPT_US + 6) == [one]
