"""The true time is in every stamp: crystals of four kinds, networks of three, and the time services that gateways have."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.clock.watch import SOURCES, Watch
from support.clock.world import CRYSTALS, NETWORKS
from support.search import examples
from whenabouts_edge.clock import ANCHOR_US, UNBOUNDED_US, ClockSample, Pace
from whenabouts_edge.clock.choose import host_clock
from whenabouts_edge.clock.pace import OLDER, OLDER_EVERY_US, RECENT, PacedClock, read_pace
from whenabouts_edge.clock.system import USELESS_US, sampled
from whenabouts_edge.readers.stamp import DRIFT_PPM, Stamper, wire_us

S = 1_000_000
PULLED = 40  # seeds, of which some hold what the test is about


@pytest.mark.parametrize("source", SOURCES)
@settings(max_examples=examples(60), deadline=None)
@given(seed=st.integers(0, 2**32), crystal=st.sampled_from(CRYSTALS), network=st.sampled_from(NETWORKS))
@example(seed=92, crystal="linear", network="jittery")
@example(seed=17, crystal="periodic", network="asymmetric")
def test_the_true_time_is_in_every_stamp(source, seed, crystal, network):
    """
    crystal   within 50 ppm: constant, swinging, jumping, noisy        service   jumps of UTC, slewing of up to 8 %
    network   equal ways, all delay in one direction, anything         host      asks late, sleeps, is dated afterwards
    """
    for stamp in Watch(seed, crystal, network, source).run():
        assert stamp.holds, stamp


def wrong(source, change):
    """How many stamps of some worlds are wrong with a changed clock."""
    count = 0
    for seed in range(PULLED):
        watch = Watch(seed, CRYSTALS[seed % 4], NETWORKS[seed // 4 % 3], source)
        change(watch)
        count += sum(not stamp.holds for stamp in watch.run())
    return count


@pytest.mark.parametrize(("source", "steady"), [("chrony", "slewing"), ("clockbound", "slewing"), ("fixed", "sleep")])
def test_a_clock_that_does_not_look_at_its_pace_is_wrong(source, steady):
    """Correction without a jump, or sleep, between reading and sample moves them apart: the worlds above do hold that."""

    def blind(watch):
        watch.clock._pace = lambda: Pace(0, 0, 0)

    assert wrong(source, blind), f"no {steady} in {PULLED} worlds"


@pytest.mark.parametrize("ppm", [-DRIFT_PPM, 0, DRIFT_PPM])
@pytest.mark.parametrize("baud", [0, 1200, 115_200])
@pytest.mark.parametrize("latency_us", [0, 1_000_000, 100_000_000])
@pytest.mark.parametrize("adapter_us", [0, 16_000])
def test_true_durations_count_whatever_the_hosts_crystal(ppm, baud, latency_us, adapter_us):
    """Latency, wire and adapter used up to the end, or not at all, on a host that is 50 ppm fast or slow.

    event |--- latency ---| wire | adapter | seen at once          event, wire, seen
    """

    def host(true_us):
        return true_us + true_us * ppm // 1_000_000

    event_us, length = 7 * S, 200
    on_wire_us = wire_us(length, baud) + (1 if baud else 0)
    for late_us in (0, latency_us + adapter_us):
        stamper = Stamper(baud, latency_us, adapter_us)
        all_us = event_us + late_us + on_wire_us
        stamper.arrived(length, host(all_us), host(all_us) + 1)
        low, high = stamper.window(0, length)
        assert low <= host(event_us) <= high


@pytest.mark.parametrize("ours", [-DRIFT_PPM, DRIFT_PPM])
@pytest.mark.parametrize("theirs", [-DRIFT_PPM, DRIFT_PPM])
@pytest.mark.parametrize("since_us", [0, 1, 999, 500_999, 999_999])
def test_a_readers_own_milliseconds_count_whatever_the_two_crystals(ours, theirs, since_us):
    """
    reader   cycle |-- since, in its own whole milliseconds --| event, sent at once
    """

    def host(true_us):
        return true_us + true_us * ours // 1_000_000

    cycle_us = 5 * S
    stamper = Stamper(115_200, 1_000_000, 0, 1_000_000)
    heard_us = cycle_us + wire_us(7, 115_200) + 1
    stamper.arrived(7, host(heard_us), host(heard_us) + 1)
    stamper.cycle_started(0, 7)
    event_us = heard_us + since_us
    seen_us = event_us + wire_us(47, 115_200) + 1
    stamper.arrived(47, host(seen_us), host(seen_us) + 1)
    window = stamper.window(7, 54)
    reader_ms = (since_us + heard_us - cycle_us) * (1_000_000 + theirs) // 1_000_000_000
    low, high = stamper.narrowed(window, reader_ms)
    assert low <= host(event_us) <= high
    assert stamper.reader_time_refused == 0


class Script:
    """A source whose samples and paces are written down."""

    def __init__(self, paces):
        self.host_s, self.paces = 0, paces

    def host_us(self, monotonic_ns):
        return monotonic_ns // 1000

    def sample(self):
        self.host_s += 1
        return ClockSample(self.host_s * S, 0, 100, "bounded", "script")

    def pace(self):
        return self.paces[min(self.host_s, len(self.paces) - 1)]


def test_slewing_between_reading_and_sample_is_in_the_bound():
    """
    slewed ms   0    0    80   80   80        a reading of second 1 is up to 80 ms further from the sample of second 5,
    sample      1    2    3    4    5         one of second 5 is not
    """
    script = Script([Pace(ms * 1000, 0, 0) for ms in (0, 0, 0, 80, 80, 80)])
    clock = PacedClock(script, script.pace)
    sample = [clock.sample() for _ in range(6)][-1]
    assert sample.bound_at(6 * S) == 100
    assert sample.bound_at(2 * S) == 100 + 4 * 50 + 80_000
    assert sample.bound_at(6 * S - 1) == 101
    script.paces = [Pace(95_000, 0, 0)]
    assert clock.current(sample).bound_us == 100 + 15_000


def test_sleep_makes_unbounded_until_the_next_sample_and_across_for_ever():
    """
    sample 1    asleep 5 s    now: unbounded    sample 2: bounded, but not for what was read before
    """
    script = Script([Pace(0, 0, 0), Pace(0, 0, 0)])
    clock = PacedClock(script, script.pace)
    first = clock.sample()
    script.paces = [Pace(0, 5 * S, 0)]
    now = clock.current(first)
    assert (now.bound_us, now.state) == (None, "unbounded")
    for _ in range(6):
        sample = clock.sample()
    assert sample.bound_us == 100
    assert sample.bound_at(1 * S) == UNBOUNDED_US
    assert sample.bound_at(6 * S) < 1000


def test_history_is_limited_and_reaches_back_for_more_than_an_hour():
    """One sample a second, all with the same rate of slewing: what is kept bounds the slewing from above."""
    script = Script([Pace(n * 20, 0, 0) for n in range(8000)])
    clock = PacedClock(script, script.pace)
    for _ in range(7999):
        sample = clock.sample()
    assert len(sample.slewed) <= RECENT + OLDER
    for age_s in (10, 100, 1000, 3600):
        grown_us = sample.bound_at(sample.host_us - age_s * S) - sample.bound_us
        assert 70 * age_s <= grown_us <= 70 * age_s + 20 * (OLDER_EVERY_US + ANCHOR_US + 2 * S) // S


def test_the_pace_of_this_machine_is_steady():
    """Two readings in a row: no measurable push of the clock, no sleep."""
    first, second = read_pace(), read_pace()
    assert second.pushed_since(first) < 10_000


def test_a_jump_during_the_query_is_in_the_bound():
    """
    UTC - monotonic    0                       2 s          the answer may be from before the jump
    looks              first look    asked     second look
    """
    looks = iter([(10 * S, 10 * S * 1000, 2), (13 * S, 11 * S * 1000, 2)])
    sample = sampled(lambda: next(looks), lambda: 40, lambda bound_us, _: (bound_us, "bounded"), "here")
    assert sample.bound_us == 40 + 2 + 2 * S - 4 + 50


class Answers(Script):
    """A source with an (offset, bound) a second; a bound of None means that it has no time."""

    def __init__(self, *answers):
        super().__init__([Pace(0, 0, 0)])
        self.answers = answers

    def sample(self):
        offset_us, bound_us = self.answers[self.host_s]
        self.host_s += 1
        state = "unbounded" if bound_us is None else "bounded"
        return ClockSample(self.host_s * S, offset_us, bound_us, state, "script")


def test_a_bound_that_dates_nothing_is_none():
    """At an hour each way, readings wait for a better answer."""
    for bound_us, expected_us in ((USELESS_US - 3, USELESS_US - 1), (USELESS_US - 2, None)):
        answer = lambda bound_us=bound_us: bound_us  # noqa: E731
        sample = sampled(lambda: (10 * S, 10**10, 2), answer, lambda known, _: (known, "bounded"), "here")
        assert (sample.bound_us, sample.state) == (expected_us, "unbounded" if expected_us is None else "bounded")


def test_earlier_knowledge_narrows_a_bad_exchange():
    """
    first     |--|              -100 .. 100, one second later 50 us more on each side
    second       |-----------|  100 .. 2100; both hold 100 .. 150
    """
    source = Answers((0, 100), (1100, 1000))
    clock = PacedClock(source, source.pace)
    clock.sample()
    sample = clock.sample()
    assert (sample.offset_us, sample.bound_us, clock.contradictions) == (125, 25, 0)


def test_a_source_that_falls_silent_leaves_the_clock_running_free():
    """The bound grows by the drift from second to second, and the first answer ends it."""
    source = Answers((0, 100), (7, None), (7, None), (20, 30))
    clock = PacedClock(source, source.pace)
    samples = [clock.sample() for _ in range(4)]
    assert [(s.offset_us, s.bound_us, s.state) for s in samples] == [
        (0, 100, "bounded"), (0, 150, "free-running"), (0, 200, "free-running"), (20, 30, "bounded"),
    ]  # fmt: skip


def test_a_contradiction_is_counted_and_the_new_answer_believed():
    """One of the two lied; the source may have been repaired since."""
    source = Answers((0, 100), (1000, 100), (1000, 100))
    clock = PacedClock(source, source.pace)
    samples = [clock.sample() for _ in range(3)]
    assert [(s.offset_us, s.bound_us) for s in samples] == [(0, 100), (1000, 100), (1000, 100)]
    assert clock.contradictions == 1
    assert samples[1].step_since(samples[0]) == 1000


def test_the_clock_of_an_agent_stamps_the_present_of_this_machine():
    """As configured, with the real clocks: UTC now lies in the stamp of now, and it is hardly wider than configured."""
    clock = host_clock({"source": "fixed", "bound_us": 5000})
    sample = clock.sample()
    before_us, host_us, after_us = (
        time.time_ns() // 1000, clock.host_us(time.monotonic_ns()), time.time_ns() // 1000 + 1
    )  # fmt: skip
    stamp = clock.current(sample).to_utc(host_us, host_us)
    assert stamp.t_min <= before_us
    assert after_us <= stamp.t_max
    assert stamp.t_max - stamp.t_min < 10_000 + 200_000  # a slow machine reads its clocks far apart
