"""The agent stores no reading without UTC that it can date: from the reader's thread to the spool."""

import asyncio
import time
from dataclasses import replace

import pytest

from whenabouts_edge.agent import agent as agent_module
from whenabouts_edge.agent.agent import Agent
from whenabouts_edge.agent.machine import Machine
from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.load import parse
from whenabouts_edge.readers.host_session import Batch, date
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.thread import ReaderState
from whenabouts_edge.store.spool import Spool
from whenabouts_protocol import decode_batch

OFFSET_US = 10**15
WAIT_S = 10


class Clock:
    """known: UTC can be asked for. slept: the host has slept since the newest sample."""

    known = slept = False

    def host_us(self, monotonic_ns):
        return monotonic_ns // 1000

    def sample(self):
        bound_us = 1000 if self.known else None
        return ClockSample(now_us(), OFFSET_US, bound_us, "bounded" if self.known else "unbounded")

    def current(self, sample):
        return replace(sample, bound_us=None, state="unbounded") if self.slept else sample


class Port:
    """Takes the place of a reader's thread; the test reads and delivers."""

    reach_us, parts_us, holds = 1000, (1, 1, 1, 1), False

    def __init__(self, reader, site, gateway, _host_us, clock, deliver):
        self.reader, self.reader_state = reader, ReaderState()
        self._place, self._clock, self._deliver = (site, gateway), clock, deliver

    def read(self, key):
        one = PendingReading("x", "tag", now_us(), now_us(), key)
        date(one, *self._place, self._clock())
        return one

    def deliver(self, one):
        self._deliver(Batch([one], one.latest_us, one.latest_us, one.latest_us))

    def start(self):
        pass

    stop = start

    def join(self, _timeout_s):
        pass


def now_us():
    return time.monotonic_ns() // 1000


def stored_after(tmp_path, clock, scenario):
    """The readings that an agent has stored when the scenario is over."""
    config = parse(
        f'site="s"\ngateway="g"\nstate_dir="{tmp_path}"\n[broker]\nhost="127.0.0.1"\nport=1\n'
        '[[reader]]\nname="r"\nkind="rdm6300"\nport="/dev/null"\nstream="x"\n'
    )

    async def main():
        agent = Agent(config, clock, machine=Machine(reader=Port, run=lambda: "run"))
        running = asyncio.create_task(agent.run())
        async with asyncio.timeout(WAIT_S):
            await scenario(agent, agent._threads["r"])
        agent.stop()
        await running

    asyncio.run(main())
    spool = Spool(tmp_path / "spool.sqlite", 1 << 30, "run")
    readings = [reading for message in spool.after(None, 10) for reading in decode_batch(message.payload)]
    spool.close()
    return readings


@pytest.fixture(autouse=True)
def many_samples(monkeypatch):
    monkeypatch.setattr(agent_module, "CLOCK_EVERY_S", 0.05)


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


def test_a_reading_stamped_before_utc_was_known_and_delivered_after_it_is_dated(tmp_path):
    """
    UTC       unknown       known
    a         stamped             delivered
    b                                stamped and delivered: behind a
    """
    clock = Clock()

    async def scenario(agent, port):
        a = port.read("a")
        clock.known = True
        await until(lambda: agent._time.utc_us(0) is not None)
        port.deliver(a)
        port.deliver(port.read("b"))
        await until(lambda: agent.spool_state.next_seq == 2)

    assert [(one.key, one.clock_state) for one in stored_after(tmp_path, clock, scenario)] == [
        ("a", "bounded"),
        ("b", "bounded"),
    ]


def test_a_reading_made_between_a_sleep_of_the_host_and_the_next_sample_waits_for_it(tmp_path):
    """
    host      known       slept               next sample
    a         stamped           delivered                   keeps its stamp
    b                           delivered     dated
    """
    clock = Clock()
    clock.known = True

    async def scenario(agent, port):
        a = port.read("a")
        clock.slept = True
        port.deliver(a)
        port.deliver(port.read("b"))
        await until(lambda: agent._time.waits or agent.spool_state.next_seq == 2)
        assert agent.spool_state.next_seq < 2
        clock.slept = False
        await until(lambda: agent.spool_state.next_seq == 2)

    assert [(one.key, one.clock_state) for one in stored_after(tmp_path, clock, scenario)] == [
        ("a", "bounded"),
        ("b", "bounded"),
    ]
