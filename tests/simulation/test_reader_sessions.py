"""The agent's reader threads on real pseudo-terminals: every kind of reader driven, stamped, unplugged and found again."""

import os
import threading
import time
import tty
from random import Random

import pytest

from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import LineConfig, ReaderConfig
from whenabouts_edge.readers.thread import ReaderThread
from whenabouts_hardware import READERS
from whenabouts_sim.readers.cards import Id12La, Pn532
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.uhf import UhfReader18, Yrm100
from whenabouts_sim.world.clocks import EPOCH_US, SimClock
from whenabouts_sim.world.world import Sighting

CORES = {"id12la": (Id12La, 5), "pn532": (Pn532, 7), "uhfreader18": (UhfReader18, 12), "yrm100": (Yrm100, 12)}


class Agent:
    """A reader thread of the agent and the readings it delivered; host time is the simulation's true time, known exactly."""

    def __init__(self, kind, port, line=None):
        self.clock = SimClock(EPOCH_US, time.monotonic_ns(), 1000)
        facts = READERS[kind]
        config = ReaderConfig(
            "one", kind, str(port), "one/tags", facts.baud, 16_000, facts.latency_us, False, line=line
        )
        sample = ClockSample(0, EPOCH_US, 0, "bounded")
        self.reported, self.changed = [], threading.Condition()
        self.thread = ReaderThread(config, "hall", "gw", self.host_us, lambda: sample, self.take)

    def host_us(self, monotonic_ns):
        return self.clock.true_us(monotonic_ns) - EPOCH_US

    def take(self, batch):
        with self.changed:
            self.reported += batch.readings
            self.changed.notify_all()

    def wait(self, condition, what):
        with self.changed:
            assert self.changed.wait_for(condition, 20), f"waited 20 s for {what}; {self.thread.reader_state}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.stop()
        self.thread.join(5)


def passing(kind, from_us, part, count=8, apart_us=120_000):
    """Tags that come one after the other, others in each part."""
    random = Random(f"{kind} {part}")
    numbers = range(part * count, (part + 1) * count)
    return [
        Sighting(from_us + i * apart_us, "one", number, random.randbytes(CORES[kind][1]).hex().upper())
        for i, number in enumerate(numbers)
    ]


@pytest.mark.parametrize("kind", sorted(CORES))
def test_tags_before_a_reader_are_read_with_the_true_time_in_their_stamps(tmp_path, kind):
    """Driven only by the agent; it observes exactly the tags that the reader reported, before and after it was unplugged."""
    path = tmp_path / "reader"
    with Agent(kind, path) as agent, PtyLink(CORES[kind][0]("one", 5), agent.clock, path) as link:
        agent.wait(lambda: agent.thread.reader_state.state == "reading", "the port to be opened")
        for part in range(2):
            tags = passing(kind, agent.clock.true_us(time.monotonic_ns()) + 500_000, part)
            link.go(tags)
            # A UHFReader18 reports at the end of its scan: before it, the tags that it saw are neither emitted nor unseen.
            agent.wait(lambda: len(link.emitted) + link.unseen == 8 * (part + 1), "every tag to be emitted or missed")  # noqa: B023
            # A machine that is too slow for the line's pace withholds frames, and reports so.
            agent.wait(
                lambda: {e.key for e in link.emitted if not e.damaged} <= {o.key for o in agent.reported},
                "all that was reported",
            )
            if part == 0:
                link.unplug()
                agent.wait(lambda: agent.thread.reader_state.state == "lost", "the loss to be noticed")
                link.plug()
                agent.wait(lambda: agent.thread.reader_state.state == "reading", "the port to be opened again")
        true_us = {e.key: e.true_us for e in link.emitted}
    assert len(true_us) >= 3
    for o in agent.reported:
        assert o.stamp[0] <= true_us[o.key] <= o.stamp[1]


def test_a_sensor_that_sends_lines_is_read_as_measures(tmp_path):
    """Bytes from before the port was opened, and a line without the value, give no reading."""
    master, slave = os.openpty()
    tty.setraw(slave)
    line = LineConfig("auto", ("t", "probe"), "probe", "t", "Cel")
    with Agent("line", os.ttyname(slave), line) as agent:
        agent.wait(lambda: agent.thread.reader_state.state == "reading", "the port to be opened")
        os.write(master, b'3.5,north\r\n21.5,north\r\nnonsense\r\n{"t": 19, "probe": "south", "ok": true}\r\n')
        agent.wait(lambda: len(agent.reported) == 2, "two measures")
        readings = [one.numbered(1, n) for n, one in enumerate(agent.reported)]
    assert [(r.kind, r.key, r.value, r.unit, r.attrs) for r in readings] == [
        ("measure", "north", 21.5, "Cel", {}),
        ("measure", "south", 19, "Cel", {"ok": True}),
    ]
    for end in (master, slave):
        os.close(end)
