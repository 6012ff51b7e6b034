"""Bounds from clock-bound's segment, from timesyncd's last exchange, from the kernel, and the first of several."""

import json
import os
import stat
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_edge.clock import ASSUMED_DRIFT_PPM, ClockSample
from whenabouts_edge.clock import kernel as kernel_clock
from whenabouts_edge.clock.clockbound import LAYOUT, MAGIC, ClockBoundClock, Segment, bound_of, read_segment
from whenabouts_edge.clock.first import PATIENCE, RARELY, FirstClock
from whenabouts_edge.clock.kernel import MARGIN_US, NOBODY_KNOWS_US, KernelClock, chronys_maxerror_us
from whenabouts_edge.clock.timesyncd import TimesyncdClock, ask_timesyncd, parse_message

S = 1_000_000_000
NOW_US = 1_749_993_613_000_000


def segment(as_of_ns=100 * S, void_ns=1100 * S, bound_ns=900_000, drift_ppb=50_000, status=1, generation=4, **more):
    """The bytes a daemon would have written."""
    parts = divmod(as_of_ns, S) + divmod(void_ns, S)
    magic, version = more.get("magic", MAGIC), more.get("version", 2)
    return LAYOUT.pack(magic, LAYOUT.size, version, generation, *parts, bound_ns, 0, drift_ppb, status, 0)


@pytest.mark.parametrize(
    ("at_ns", "expected"),
    [
        (100 * S, (901, "bounded")),
        (105 * S, (901 + 250, "bounded")),
        (106 * S, (901 + 300, "free-running")),
        (1100 * S, (901 + 50_000, "free-running")),
        (1101 * S, (None, "unbounded")),
        (99 * S, (901, "bounded")),
    ],
)
def test_a_segment_ages(at_ns, expected):
    """
    as_of        + 5 s             void_after
    bounded        free-running              unbounded        with 50 ppm more at each moment
    """
    assert bound_of(read_segment(segment), at_ns) == expected


def test_a_daemon_left_at_its_default_is_not_believed_about_the_drift():
    """1 ppm is no crystal's bound: the assumed drift counts."""
    cautious = bound_of(Segment(0, 1000 * S, 0, 1000, 1), 100 * S)[0]
    assert cautious == 100 * ASSUMED_DRIFT_PPM + 1


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        segment()[:-1],
        segment(magic=b"AMZNCB\1\0"),
        segment(version=3),
        segment(generation=0),
        segment(generation=5),
        segment(status=0),
        segment(status=3),
        segment(bound_ns=-1),
    ],
    ids=["empty", "short", "magic", "version", "never written", "being written", "unknown", "disrupted", "negative"],
)
def test_a_segment_without_information_is_unbounded(raw):
    """Nothing is claimed, nothing is raised."""
    sample = ClockBoundClock(look=lambda: raw).sample()
    assert (sample.bound_us, sample.state, sample.source) == (None, "unbounded", "clock-bound")


def test_a_segment_that_moves_is_read_again():
    """Two looks that differ are not mixed."""
    looks = iter([segment(generation=4), segment(generation=6, bound_ns=7), segment(generation=6, bound_ns=7)] * 2)
    assert read_segment(lambda: next(looks)).bound_ns == 7


def test_no_daemon_no_segment(tmp_path):
    """And with one, the sample's bound is at least what it wrote."""
    path = tmp_path / "shm0"
    assert ClockBoundClock(look=path.read_bytes).sample().bound_us is None
    now_ns = time.monotonic_ns()
    path.write_bytes(segment(as_of_ns=now_ns, void_ns=now_ns + 1000 * S))
    assert 900 < ClockBoundClock(look=path.read_bytes).sample().bound_us < 900 + 100_000


def message(
    leap=0, stratum=2, delay=4730, dispersion=122, times=(-40_000, -15_000, -14_900, -20_000), packets=1, **more
):
    """timesyncd's property as busctl prints it; times in us around NOW_US."""
    stamps = [NOW_US + t for t in times]
    data = [
        leap,
        4,
        4,
        stratum,
        more.get("precision", -20),
        delay,
        dispersion,
        [1, 2, 3, 4],
        *stamps,
        False,
        packets,
        0,
    ]
    return json.dumps({"type": "(uuuuittayttttbtt)", "data": data})


def test_timesyncd_bound_is_offset_half_trips_and_dispersion():
    """
    ours    T1 = -40 ms                  T4 = -20 ms        now: 20 ms later
    theirs        T2 = -15     T3 = -14.9                   offset (25 + 5.1)/2 = 15.05 ms, trip 19.9 ms
    """
    bound_us, state = parse_message(message(), NOW_US)
    assert state == "bounded"
    assert (
        bound_us == int(15_050 + 19_900 / 2 + 4730 / 2 + 122 + 0.95) + 1 + 1 + 20
    )  # drift in 20 ms, slewing in the trip


@pytest.mark.parametrize("age_s", [0, 60, 4096, 10_000])
def test_timesyncd_bound_grows_with_the_age_of_the_exchange(age_s):
    """After two of its longest pauses only the drift holds it up."""
    fresh, _ = parse_message(message(), NOW_US)
    bound_us, state = parse_message(message(), NOW_US + age_s * 1_000_000)
    assert bound_us - fresh == age_s * ASSUMED_DRIFT_PPM
    assert state == ("free-running" if age_s >= 4096 else "bounded")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"data": 3}',
        "[" * 9000,
        message(leap=3),
        message(packets=0),
        message(stratum=0),
        message(stratum=16),
        message(times=(0, 0, 0, 10)),
        message(times=(-10, 5, 4, -5)),
        message(times=(-10, 0, 100, -5)),
        message(times=(-(10**16), 0, 0, -(10**16) + 5)),
        message(delay=-1),
        message(delay="x"),
        message(delay=1 << 70),
    ],
)
def test_timesyncd_without_a_usable_exchange_is_unbounded(text):
    """Never asked, not synchronised, out of order, the first answer to a clock that was years off: nothing is claimed."""
    assert parse_message(text, NOW_US) == (None, "unbounded")


@given(
    offset_us=st.integers(-(10**7), 10**7),
    there_us=st.integers(0, 10**6),
    back_us=st.integers(0, 10**6),
    server_error_us=st.integers(-2000, 2000),
    drift_ppm=st.integers(-ASSUMED_DRIFT_PPM, ASSUMED_DRIFT_PPM),
    age_us=st.integers(0, 10**10),
)
def test_the_truth_lies_within_timesyncds_bound(offset_us, there_us, back_us, server_error_us, drift_ppm, age_us):
    """For any duration of the two ways, and any error of the server within its stated bound."""
    sent, received = NOW_US + offset_us, NOW_US + there_us + server_error_us
    back = NOW_US + there_us + back_us + offset_us
    data = [0, 4, 4, 2, -20, 2000, 1000, [], sent, received, received, back, True, 1, 0]
    error_us = abs(offset_us) + abs(drift_ppm) * age_us // 1_000_000
    bound_us, _ = parse_message(json.dumps({"data": data}), back + age_us)
    assert bound_us >= error_us


@given(st.text(), st.integers(0, 2**60))
def test_timesyncd_answers_never_raise(text, utc_us):
    """For any output of the program."""
    assert parse_message(text, utc_us) == (None, "unbounded")


def test_timesyncd_is_queried_by_its_name(tmp_path, monkeypatch):
    """The program's output is the message; without it, unbounded."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ask_timesyncd() == ""
    assert TimesyncdClock().sample().state == "unbounded"
    program = tmp_path / "busctl"
    program.write_text(f"#!/bin/sh\necho '{message()}'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert parse_message(ask_timesyncd(), NOW_US) == parse_message(message(), NOW_US)


@pytest.mark.parametrize(
    ("maxerror_us", "expected"),
    [
        (None, (None, "unbounded")),
        (0, (None, "unbounded")),
        (1500, (1500 + MARGIN_US, "bounded")),
        (NOBODY_KNOWS_US, (None, "unbounded")),
    ],
)
def test_the_kernels_figure_counts_between_nothing_and_its_end(maxerror_us, expected):
    """timesyncd writes 0, the kernel reports 16 s when nobody writes."""
    assert kernel_clock.bound_of(maxerror_us) == expected
    assert KernelClock(maxerror_us=lambda: maxerror_us).sample().state == expected[1]


def test_the_kernel_is_queried_only_while_chronyd_runs(tmp_path, monkeypatch):
    """The figure of this machine's kernel, which a running process of ours stands in for chronyd to unlock."""
    pid = tmp_path / "chronyd.pid"
    monkeypatch.setattr(kernel_clock, "CHRONYD_PIDS", (pid,))
    assert chronys_maxerror_us() is None
    pid.write_text("none")
    assert chronys_maxerror_us() is None
    pid.write_text(f"{os.getpid()}\n")
    assert 0 <= chronys_maxerror_us() <= NOBODY_KNOWS_US


class Source:
    """A source that knows a bound or not, and counts how often it is sampled."""

    def __init__(self, name, bound_us):
        self.name, self.bound_us, self.asked = name, bound_us, 0

    def host_us(self, monotonic_ns):
        return monotonic_ns // 1000

    def sample(self):
        self.asked += 1
        return ClockSample(0, 0, self.bound_us, "unbounded" if self.bound_us is None else "bounded", self.name)


def test_the_first_source_that_knows_a_bound_is_taken():
    """And goes back to an earlier one as soon as that knows."""
    first, second = Source("first", None), Source("second", 5)
    clock = FirstClock([first, second])
    assert clock.sample().source == "second"
    first.bound_us = 9
    assert clock.sample().source == "first"


def test_sources_that_never_knew_anything_are_sampled_rarely():
    """The last is always sampled: one source has to report an unbounded clock."""
    some = [Source("a", None), Source("b", None)]
    clock = FirstClock(some)
    for _ in range(PATIENCE + 2 * RARELY):
        assert clock.sample().bound_us is None
    assert some[0].asked <= PATIENCE + 3
    assert some[1].asked == PATIENCE + 2 * RARELY
    with pytest.raises(ValueError, match="found none"):
        FirstClock([])
