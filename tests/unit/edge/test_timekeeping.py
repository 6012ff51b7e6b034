"""The agent's time: what waits until the clock is known, when it goes on, and where it lies meanwhile."""

import asyncio
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.edge.pending import pending, undated
from whenabouts_edge.agent import timekeeping as timekeeping_module
from whenabouts_edge.agent.timekeeping import Timekeeper
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.store.waiting import WaitingRows

S = 1_000_000
UNKNOWN = ClockSample(0, 0, None, "unbounded")
KNOWN = ClockSample(0, 1000 * S, 10, "bounded")
STEPPED = ClockSample(0, 1002 * S, 10, "bounded")


class Clock:
    """Gives the samples set by the test; its host was started just now."""

    def __init__(self, *samples):
        self.samples = list(samples)
        self.started_ns = time.monotonic_ns()

    def host_us(self, monotonic_ns):
        return (monotonic_ns - self.started_ns) // 1000

    def sample(self):
        return self.samples.pop(0)

    def current(self, sample):
        return sample


def reading(key, at_us):
    return undated(key, at_us, at_us + 5)


@pytest.fixture
def rows(tmp_path):
    db = sqlite3.connect(tmp_path / "spool.sqlite", check_same_thread=False)
    yield WaitingRows(db, "run 1")
    db.close()


def run(rows, samples, scenario, earlier=()):
    """A scenario with an agent's time."""

    async def main():
        with ThreadPoolExecutor(1) as thread:
            await scenario(Timekeeper(Clock(*samples), thread, rows, earlier))

    asyncio.run(main())


def test_readings_wait_for_the_clock_and_go_on_in_their_order(rows):
    """
    sample    unknown                    known
    released  nothing, no frontier       earlier, a, b     then the frontier
    """

    async def scenario(kept):
        kept.keep([reading("a", 5), reading("b", 6)])
        assert (kept.waits, kept.released(), kept.utc_us(7)) == (True, [], None)
        await kept.take_sample()
        assert kept.utc_us(7) is None  # a newer reading would pass those that wait
        released = kept.released()
        assert [(one.key, one.stamp[0]) for one in released] == [
            ("earlier", 1000 * S + 1 - 11), ("a", 1000 * S + 5 - 11), ("b", 1000 * S + 6 - 11),
        ]  # fmt: skip
        assert (kept.waits, kept.utc_us(7)) == (False, 1000 * S + 7 - 11)
        assert kept.status() | {"dated_late": 3, "undated": 0, "state": "bounded", "bound_us": 10} == kept.status()

    run(rows, [UNKNOWN, KNOWN], scenario, [reading("earlier", 1)])


def test_a_reading_without_utc_waits_also_when_it_comes_after_the_sample(rows):
    """
    sample      unknown        known
    stamped        b              a c
    comes                      a goes on, b waits, and c and d behind it; then all by their own time
    """

    async def scenario(kept):
        await kept.take_sample()
        a, b, c, d = pending("a", 50), reading("b", 6), pending("c", 70), pending("d", 90)
        assert kept.passed([a, b, c]) == [a]
        assert (kept.passed([d]), kept.waits, kept.utc_us(7)) == ([], True, None)
        assert kept.released() == [b, c, d]
        assert b.stamp == (1000 * S + 6 - 11, 1000 * S + 11 + 11, "bounded")
        assert [one.stamp[0] for one in (a, c, d)] == [50, 70, 90]

    run(rows, [UNKNOWN, KNOWN], scenario)


def test_what_waits_is_on_disk_and_a_full_disk_is_tried_again(rows, monkeypatch, caplog):
    """Nothing is lost in memory by the failure; a last moment of UTC is written down as well."""
    monkeypatch.setattr(timekeeping_module, "RETRY_S", 0)
    write, faults = rows.write, [sqlite3.OperationalError("made up")]

    def fail_once(observed):
        if faults:
            raise faults.pop()
        write(observed)

    monkeypatch.setattr(rows, "write", fail_once)

    async def scenario(kept):
        kept.keep([reading("a", 5), reading("b", 6)])
        await kept.write()
        assert (kept.status()["unwritten"], [str(one.fields["error"]) for one in caplog.records]) == (2, ["made up"])
        await kept.write_all()
        assert kept.status()["unwritten"] == 0
        await kept.take_sample()

    run(rows, [UNKNOWN, KNOWN], scenario)
    assert [one.key for one in rows.read("hall", "gw")] == ["a", "b"]
    assert WaitingRows(rows._db, "run 2")._since_us == 1000 * S - 10


def test_steps_beyond_the_bound_are_counted_and_reported(rows, caplog):
    """An equal sample is no step."""

    async def scenario(kept):
        await kept.take_sample()
        assert kept.status()["epoch"] == 0
        await kept.take_sample()
        assert kept.status()["epoch"] == 1

    run(rows, [KNOWN, KNOWN, STEPPED], scenario)
    assert [(one.event, one.fields["by_s"]) for one in caplog.records] == [("clock.stepped", 2.0)]
