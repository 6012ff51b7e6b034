"""The watched clock of an agent: an answer that is not true is told, whether a reading shows it or not."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from whenabouts_edge.clock import ClockSample
from whenabouts_sim.chaos.machine.clock import VirtualTime, taken_over
from whenabouts_sim.chaos.machine.loop import VirtualLoop
from whenabouts_sim.chaos.parts.watched_clock import MOST_TOLD, WatchedClock

UTC_US = 1_000_000_000


def answers(offset_us, bound_us):
    """A clock that says this of UTC, which is the host's time and UTC_US."""
    sample = ClockSample(500, UTC_US + offset_us, bound_us, "bounded")
    return SimpleNamespace(host_us=lambda ns: ns // 1000, sample=lambda: sample, current=lambda one: one)


def wrong(clock, moments):
    """What is told of a clock that is asked at these moments of the host's time."""
    times = iter(moments)
    watched = WatchedClock(clock, lambda: (at_us := next(times), UTC_US + at_us), [])
    sample = watched.sample()
    for _ in moments[1:]:
        watched.current(sample)
    return watched.wrong


def test_true_answers_are_passed_on_and_not_told():
    clock = answers(10, 10)
    watched = WatchedClock(clock, lambda: (500, UTC_US + 500), [])
    assert watched.sample() is clock.sample()
    assert watched.current(clock.sample()) is clock.sample()
    assert watched.host_us(7000) == 7
    assert watched.wrong == []
    assert wrong(answers(0, None), [500, 900]) == []


def test_an_answer_without_true_utc_is_told():
    [text] = wrong(answers(11, 10), [500])
    assert (
        "a sample of 500 says that 500 of the host's clock was in [1000000501, 1000000521], and it was 1000000500"
        in text
    )
    assert len(wrong(answers(11, 10), [500] * 9)) == MOST_TOLD


def test_a_sample_that_misdates_an_earlier_moment_is_told():
    """The host's clock was pushed in between, and the newer sample does not say so."""
    times = iter([(500, UTC_US + 500), (900, UTC_US + 960)])
    samples = iter([ClockSample(500, UTC_US, 5, "bounded"), ClockSample(900, UTC_US + 60, 5, "bounded")])
    clock = SimpleNamespace(host_us=None, sample=lambda: next(samples), current=None)
    watched = WatchedClock(clock, lambda: next(times), [])
    watched.sample()
    assert watched.wrong == []
    watched.sample()
    assert len(watched.wrong) == 1


def test_only_the_thread_of_a_schedule_refuses_to_sleep():
    """Others of the interpreter, such as that of a real Spark, go on."""
    loop = VirtualLoop()
    with taken_over(VirtualTime(loop), "any"), ThreadPoolExecutor(1) as other:
        with pytest.raises(RuntimeError, match="would block all others for 0 s"):
            time.sleep(0)
        assert other.submit(time.sleep, 0).result(10) is None
    loop.close()
