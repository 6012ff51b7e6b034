"""True time and wrong clocks: shared exactly, and never outside the bound they claim."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whenabouts_edge.clock.simulated import SimulatedClock
from whenabouts_sim.world.clocks import EPOCH_US, GatewayClock, SimClock, plausible_clock

HOUR_US = 3_600_000_000
true_times = st.integers(EPOCH_US - HOUR_US, EPOCH_US + 100 * HOUR_US)


@given(
    speed=st.integers(1, 1_000_000),
    anchor=st.integers(0, 10**18),
    true_us=true_times,
)
def test_mono_ns_is_the_first_instant_that_has_reached_a_true_time(speed, anchor, true_us):
    """One nanosecond earlier, true time has not reached the asked microsecond."""
    clock = SimClock(EPOCH_US, anchor, speed)
    at_ns = clock.mono_ns(true_us)
    assert clock.true_us(at_ns) >= true_us > clock.true_us(at_ns - 1)


def test_speed_five_passes_five_microseconds_per_microsecond():
    """The speed multiplies host time since the anchor, rounding down, also before the anchor."""
    clock = SimClock(EPOCH_US, anchor_ns=1_000_000, speed_milli=5000)
    assert [clock.true_us(ns) - EPOCH_US for ns in (1_000_000, 1_000_399, 2_000_000, 999_999)] == [0, 1, 5000, -1]


@given(seed=st.integers(), true_us=true_times, steps=st.lists(true_times, max_size=3))
def test_true_time_lies_in_every_interval_a_plausible_clock_claims(seed, true_us, steps):
    """Through offset, drift, floor of the reading and steps."""
    low_us, high_us = plausible_clock(Random(seed), EPOCH_US, step_at_us=tuple(steps)).interval_us(true_us)
    assert low_us <= true_us <= high_us


@given(
    offset=st.integers(-(10**6), 10**6),
    drift=st.integers(-50, 50),
    steps=st.lists(st.tuples(true_times, st.integers(-(10**6), 10**6)), max_size=4),
    true_us=true_times,
)
def test_the_tightest_bound_allowed_still_contains_true_time(offset, drift, steps, true_us):
    """A clock whose base bound is exactly its worst offset is honest to the microsecond."""
    worst = GatewayClock(EPOCH_US, offset, 0, tuple(steps), base_bound_us=10**7).worst_offset_us
    clock = GatewayClock(EPOCH_US, offset, drift, tuple(steps), base_bound_us=worst)
    assert abs(clock.error_us(true_us)) <= clock.bound_us(true_us)


@given(
    speed=st.integers(1, 100_000),
    anchor=st.integers(0, 10**15),
    ns=st.integers(0, 10**16),
    seed=st.integers(),
)
def test_the_agents_simulated_clock_reads_what_the_simulator_knows(speed, anchor, ns, seed):
    """From equal parameters both compute equal readings and bounds, to the microsecond."""
    sim, wrong = SimClock(EPOCH_US, anchor, speed), plausible_clock(Random(seed), EPOCH_US)
    given = {**wrong.as_dict(), **sim.as_dict()}
    del given["steps"]  # the agent's source has none
    sample = SimulatedClock(**given, monotonic_ns=lambda: ns).sample()
    true_us = sim.true_us(ns)
    assert sample.host_us + sample.offset_us == wrong.reading_us(true_us)
    assert sample.bound_us == wrong.bound_us(true_us)


def test_a_step_changes_the_reading_from_its_instant_on():
    """
    true     ---- 100 s ---------|--------
    error      +3 ms             | -2 ms
    """
    at_us = EPOCH_US + 100_000_000
    clock = GatewayClock(EPOCH_US, 3000, steps=((at_us, -5000),), base_bound_us=3000)
    assert [clock.reading_us(t) - t for t in (at_us - 1, at_us)] == [3000, -2000]


def test_a_dishonest_clock_is_refused():
    """A bound smaller than the error, or a drift beyond the assumed one, cannot be claimed."""
    with pytest.raises(ValueError, match=r"base_bound_us 99, expected at least .* 100"):
        GatewayClock(EPOCH_US, offset_us=-100, base_bound_us=99)
    with pytest.raises(ValueError, match="drift 51 ppm"):
        GatewayClock(EPOCH_US, drift_ppm=51)


def test_parameters_survive_json():
    """The options written to a configuration file give the same clock again."""
    clock = plausible_clock(Random(3), EPOCH_US, step_at_us=(EPOCH_US + 5, EPOCH_US + 9))
    assert GatewayClock.from_dict(json.loads(json.dumps(clock.as_dict()))) == clock


def test_plausible_clocks_differ_by_hundreds_of_milliseconds_and_by_drift():
    """The generator is no toy: over some seeds errors and drifts fill their ranges."""
    clocks = [plausible_clock(Random(seed), EPOCH_US) for seed in range(200)]
    assert max(clock.offset_us for clock in clocks) > 250_000
    assert min(clock.offset_us for clock in clocks) < -250_000
    assert {-50, 50} <= {clock.drift_ppm for clock in clocks}
