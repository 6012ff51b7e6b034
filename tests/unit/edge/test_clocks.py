"""Clock sources: what UTC is and how wrong it can be, from chrony's reports, a configured bound, or a simulation."""

import stat
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whenabouts_edge.clock import ASSUMED_DRIFT_PPM, UNBOUNDED_US, ClockSample
from whenabouts_edge.clock.choose import clock_source
from whenabouts_edge.clock.clockbound import ClockBoundClock
from whenabouts_edge.clock.first import FirstClock
from whenabouts_edge.clock.kernel import KernelClock
from whenabouts_edge.clock.simulated import SimulatedClock
from whenabouts_edge.clock.system import ChronyClock, FixedClock, ask_chronyc, parse_tracking, read_clocks
from whenabouts_edge.clock.timesyncd import TimesyncdClock
from whenabouts_sim.world.clocks import GatewayClock, SimClock

# `chronyc -c tracking` of a gateway 12.5 s after an update: correction 31 us, delay 2.4 ms, dispersion 0.41 ms.
TRACKING = (
    "A29FC87B,162.159.200.123,4,1749993600.500000000,0.000031000,"
    "-0.000012345,0.000040123,-12.345,0.001,0.031,0.002400000,0.000410000,64.2,Normal\n"
)
AT_US = 1_749_993_613_000_000
UNSYNCHRONISED = (
    "00000000,,0,0.000000000,"
    "0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,Not synchronised\n"
)


def _with(field: int, value: str) -> str:
    fields = TRACKING.strip().split(",")
    fields[field] = value
    return ",".join(fields)


def test_chrony_bound_is_correction_dispersion_half_delay_and_drift():
    """31 us + 410 us + 2400/2 us, rounded up, and 50 ppm of the 12.5 s since the update."""
    bound_us, state = parse_tracking(TRACKING, AT_US)
    assert 31 + 410 + 1200 + 625 <= bound_us <= 31 + 410 + 1200 + 1 + 625
    assert state == "bounded"


def test_chrony_correction_counts_by_its_size():
    """A clock that is ahead is as wrong as one that is behind."""
    assert parse_tracking(_with(4, "-0.000031000"), AT_US) == parse_tracking(TRACKING, AT_US)


@pytest.mark.parametrize(("age_s", "state"), [(513.5, "bounded"), (513.7, "free-running"), (90_000, "free-running")])
def test_chrony_without_an_update_for_eight_intervals_is_free_running(age_s, state):
    """chrony goes on saying Normal; 8 x 64.2 s = 513.6 s after its update only the assumed drift holds the bound."""
    bound_us, parsed = parse_tracking(TRACKING, 1_749_993_600_500_000 + int(age_s * 1e6))
    assert parsed == state
    assert bound_us >= 1641 + int(age_s * ASSUMED_DRIFT_PPM)


@pytest.mark.parametrize(
    "report",
    ["", "\n", UNSYNCHRONISED, "506 Cannot talk to daemon", TRACKING[:60], "," * 13, "\x00" * 40]
    + [_with(3, value) for value in ("0", "-5", "inf", "-inf", "nan", "soon")]
    + [_with(field, value) for field in (4, 10, 11) for value in ("inf", "-inf", "nan", "1e400", "1e300", "", "x")]
    + [_with(11, "-1"), _with(10, "-5"), _with(12, "x"), _with(13, "Not synchronised")],
)
def test_chrony_report_that_gives_no_bound_is_unbounded(report):
    """Unsynchronised, cut off, not finite, negative: nothing is claimed, nothing is raised."""
    assert parse_tracking(report, AT_US) == (None, "unbounded")


fields = st.one_of(
    st.floats().map(str),
    st.integers().map(str),
    st.text(max_size=5),
    st.sampled_from(["Normal", "Insert second", "1e308", "-0.0", "0x1", "1_0"]),
)


@given(st.one_of(st.text(), st.lists(fields, min_size=12, max_size=16).map(",".join)), st.integers(0, 2**60))
@example(",".join(["1"] * 14), AT_US)
def test_chrony_never_raises_and_never_claims_nonsense(report, utc_us):
    """Any report gives a bound within reason with its state, or unbounded."""
    bound_us, state = parse_tracking(report, utc_us)
    if bound_us is None:
        assert state == "unbounded"
    else:
        assert state in ("bounded", "free-running")
        assert 0 < bound_us < UNBOUNDED_US


def test_chrony_source_asks_and_samples():
    """The sample carries the system's offset; its bound adds by how much the two clocks can be apart."""
    clock = ChronyClock(ask=lambda: TRACKING, clocks=lambda: (AT_US, 7_000_123_999, 3))
    bound_us, _ = parse_tracking(TRACKING, AT_US)
    assert clock.sample() == ClockSample(7_000_123, AT_US - 7_000_123, bound_us + 3, "bounded", "chrony")


@pytest.mark.parametrize(
    ("script", "expected"),
    [("printf 'A,B\\n'", "A,B\n"), ("echo no; exit 1", ""), ("printf '\\377\\376,x'", "\ufffd\ufffd,x")],
)
def test_chronyc_answers_are_taken_as_they_are(tmp_path, monkeypatch, script, expected):
    """The program's output is the report, a failure is none, bytes that are no text do no harm."""
    program = tmp_path / "chronyc"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert ask_chronyc() == expected


def test_no_chronyc_is_unbounded(tmp_path, monkeypatch):
    """A gateway without chrony samples, unbounded."""
    monkeypatch.setenv("PATH", str(tmp_path))
    sample = ChronyClock().sample()
    assert (sample.bound_us, sample.state) == (None, "unbounded")
    stamp = sample.to_utc(sample.host_us, sample.host_us)
    assert stamp.t_max - stamp.t_min == 2 * UNBOUNDED_US


def test_fixed_clock_is_the_system_clock_within_its_bound():
    """UTC of the machine lies in the stamp of this moment, and the bound is hardly wider than configured."""
    clock = FixedClock(1000)
    before_us = time.time_ns() // 1000
    sample = clock.sample()
    host_us = clock.host_us(time.monotonic_ns())
    after_us = time.time_ns() // 1000
    stamp = sample.to_utc(host_us, host_us)
    assert before_us - 1100 <= stamp.t_max
    assert stamp.t_min <= after_us + 1100
    assert sample.state == "bounded"
    assert 1000 < sample.bound_us < 100_000


def test_clocks_are_read_close_together():
    """An interruption between the two readings is reported as their distance."""
    utc_us, monotonic_ns, apart_us = read_clocks()
    assert apart_us >= 2
    later_us, later_ns, _ = read_clocks()
    assert later_ns >= monotonic_ns
    assert abs((later_us - utc_us) - (later_ns - monotonic_ns) // 1000) <= 100_000


@given(
    bound_us=st.integers(0, 10**9),
    error_share=st.fractions(-1, 1),
    drift_share=st.fractions(-1, 1),
    ages_us=st.tuples(st.integers(-(10**14), 10**14), st.integers(-(10**14), 10**14)).map(sorted),
    offset_us=st.integers(-(2**60), 2**60),
    host_us=st.integers(0, 2**50),
)
def test_utc_lies_in_the_stamp_at_every_age_under_the_assumed_drift(
    bound_us, error_share, drift_share, ages_us, offset_us, host_us
):
    """Wrong by anything up to the bound at the sample, drifting by anything up to 50 ppm before and after it.

      error                            . drift
        |                        .
    bound ------------- + ------------- sample
    """
    sample = ClockSample(host_us, offset_us, bound_us, "bounded")
    earliest_us, latest_us = (host_us + age for age in ages_us)
    stamp = sample.to_utc(earliest_us, latest_us)
    for at_us in (earliest_us, latest_us, (earliest_us + latest_us) // 2):
        error_us = error_share * bound_us + drift_share * ASSUMED_DRIFT_PPM * (at_us - host_us) / 1_000_000
        assert stamp.t_min <= at_us + offset_us - error_us <= stamp.t_max
    assert stamp.t_max - stamp.t_min <= latest_us - earliest_us + 2 * max(
        sample.bound_at(earliest_us), sample.bound_at(latest_us)
    )


@given(st.integers(-(10**15), 10**15))
def test_bound_grows_by_fifty_ppm_rounded_up(age_us):
    """Never less than the drift, never a microsecond more than its ceiling."""
    grown_us = ClockSample(0, 0, 7, "bounded").bound_at(age_us) - 7
    assert grown_us == -(-abs(age_us) * ASSUMED_DRIFT_PPM // 1_000_000)


@given(
    epoch_us=st.integers(0, 10**17),
    anchor_ns=st.integers(0, 10**17),
    elapsed_ns=st.integers(-(10**15), 10**17),
    speed_milli=st.integers(1, 100_000),
    offset_us=st.integers(-(10**9), 10**9),
    drift_ppm=st.integers(-50, 50),
    spare_us=st.integers(0, 10**6),
)
def test_simulated_clock_is_the_simulators_gateway_clock(
    epoch_us, anchor_ns, elapsed_ns, speed_milli, offset_us, drift_ppm, spare_us
):
    """Both sides of the simulation compute the same reading and the same bound from the same parameters."""
    mono_ns = anchor_ns + elapsed_ns
    theirs = GatewayClock(epoch_us, offset_us, drift_ppm, base_bound_us=abs(offset_us) + spare_us)
    truth = SimClock(epoch_us, anchor_ns, speed_milli)
    table = {"source": "sim", **truth.as_dict(), **theirs.as_dict()}
    clock = clock_source(table)
    assert isinstance(clock, SimulatedClock)
    clock = SimulatedClock(
        epoch_us, anchor_ns, speed_milli, offset_us, drift_ppm, theirs.base_bound_us, theirs.assumed_drift_ppm,
        monotonic_ns=lambda: mono_ns,
    )  # fmt: skip
    true_us = truth.true_us(mono_ns)
    sample = clock.sample()
    assert sample.host_us == true_us - epoch_us == clock.host_us(mono_ns)
    assert sample.host_us + sample.offset_us == theirs.reading_us(true_us)
    assert sample.bound_us == theirs.bound_us(true_us)
    stamp = sample.to_utc(sample.host_us, sample.host_us)
    assert (stamp.t_min, stamp.t_max) == theirs.interval_us(true_us)


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ({"source": "fixed", "bound_us": 5}, FixedClock),
        ({"source": "chrony"}, ChronyClock),
        ({"source": "auto"}, FirstClock),
        ({"source": "clockbound"}, ClockBoundClock),
        ({"source": "timesyncd"}, TimesyncdClock),
        ({"source": "adjtimex"}, KernelClock),
    ],
)
def test_configuration_chooses_the_source(table, kind):
    """The name in [clock] decides."""
    assert isinstance(clock_source(table), kind)


def test_a_clock_that_is_set_by_more_than_its_bound_has_stepped():
    """Within the bounds of both samples an offset may move; beyond it is a step, reported with its sign."""
    before = ClockSample(1_000_000, 500, 1000, "bounded")
    assert ClockSample(2_000_000, 2400, 1000, "bounded").step_since(before) == 0
    assert ClockSample(2_000_000, -10_000_000, 1000, "bounded").step_since(before) == -10_000_500
    assert ClockSample(2_000_000, -10_000_000, None, "unbounded").step_since(before) == 0
