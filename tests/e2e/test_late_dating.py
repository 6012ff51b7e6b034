"""A gateway that reads before it knows the time: its readings are dated when the time is known, not before."""

import os
import signal
import stat
import time

import pytest

from support.edge.agent import Bench, badges, passed, witness
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import reader_table
from whenabouts_sim.world.world import GATE


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A stack whose agents find a chronyc that prints the text of a file of the test; at first, that the time is unknown."""
    program = tmp_path / "bin" / "chronyc"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/tracking 2>/dev/null || exit 1\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    (tmp_path / "stack").mkdir()
    with Bench(tmp_path / "stack") as stack:
        yield stack


def synchronise(tmp_path):
    """From now on chrony knows the time within 3 ms: a correction of 1 ms, half a delay of 2 ms and a little."""
    new = tmp_path / "tracking.new"
    new.write_text(f"A29FC87B,10.0.0.1,3,{time.time():.9f},0.001,0.0,0.0,0.0,0.0,0.1,0.002,0.001,64.2,Normal\n")
    new.rename(tmp_path / "tracking")


@pytest.fixture
def gate(bench):
    port = bench.folder / "ports" / "gate"
    with PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, port) as link:
        path = bench.configure(reader_table(GATE, port))
        lines = path.read_text().split("\n")
        own = ("offset_us", "drift_ppm", "base_bound_us", "assumed_drift_ppm", "epoch_us", "anchor_ns", "speed_milli")
        path.write_text("\n".join(line for line in lines if not line.startswith(own)).replace('"sim"', '"chrony"'))
        yield link


def pass_badges(bench, gate, first, count=5):
    """Let badges pass now; return the moment of each by key, on this machine's clock in us."""
    keys = passed(bench, gate, badges(bench, count, first))
    away_us = time.time_ns() // 1000 - time.monotonic_ns() // 1000
    return {
        e.key: gate._clock.mono_ns(e.true_us) // 1000 + away_us for e in gate.emitted if not e.damaged and e.key in keys
    }


def test_readings_from_before_the_first_synchronisation_are_dated_by_it(bench, gate, tmp_path):
    """
    clock   unknown  unknown      | synchronised
    badges     =====                 =====
    sent                           all ten, with their true times in narrow stamps, in the order in which they were read
    """
    bench.broker.start()
    with witness(bench.broker.port) as seen:
        bench.start_agent("gw")
        bench.wait_status("port open", lambda s: s["readers"][GATE.name]["state"] == "reading")
        true_us = pass_badges(bench, gate, 0)
        status = bench.wait_status("kept", lambda s: s["clock"]["undated"] == len(true_us))
        assert (status["clock"]["state"], seen.readings()) == ("unbounded", [])
        assert all(heartbeat.frontier_us is None for heartbeat in seen.heartbeats())
        dated = len(true_us)
        synchronise(tmp_path)
        seen.wait("dated", lambda: seen.keys() >= set(true_us))
        true_us |= pass_badges(bench, gate, 10)
        seen.wait("all", lambda: seen.keys() >= set(true_us))
        seen.wait("a watermark", lambda: seen.heartbeats()[-1].frontier_us is not None)
        readings = seen.readings()
    assert [r.key for r in readings] == sorted(
        true_us, key=true_us.__getitem__
    )  # readings of the second pass come later
    for r in readings:
        assert r.clock_state == "bounded"
        assert r.t_min <= true_us[r.key] <= r.t_max
        assert r.t_max - r.t_min < 1_000_000
    bench.wait_status("counted", lambda s: s["clock"]["dated_late"] == dated)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_readings_that_wait_for_the_clock_outlive_the_agent(bench, gate, tmp_path, end):
    """
    clock   unknown        unknown       | synchronised
    agent   badges  | ended  | another, badges |
    sent                                   all, once, with their true times, in the order in which they were read
    """
    agent = bench.start_agent("gw")
    bench.wait_status("port open", lambda s: s["readers"][GATE.name]["state"] == "reading")
    true_us = pass_badges(bench, gate, 0)
    bench.wait_status("kept", lambda s: (s["clock"]["undated"], s["clock"]["unwritten"]) == (len(true_us), 0))
    agent.process.send_signal(end)
    agent.process.wait(60)
    bench.broker.start()
    with witness(bench.broker.port) as seen:
        again = bench.start_agent("gw")
        bench.wait_status("found", lambda s: s["pid"] == again.process.pid and s["clock"]["undated"] == len(true_us))
        bench.wait_status("port open", lambda s: s["readers"][GATE.name]["state"] == "reading")
        true_us |= pass_badges(bench, gate, 10)
        assert seen.readings() == []
        synchronise(tmp_path)
        seen.wait("all", lambda: seen.keys() >= set(true_us))
        seen.wait("a watermark", lambda: seen.heartbeats()[-1].frontier_us is not None)
        readings = seen.readings()
    assert [r.key for r in readings] == sorted(
        true_us, key=true_us.__getitem__
    )  # readings of the second pass come later
    for r in readings:
        assert r.clock_state == "bounded"
        assert r.t_min <= true_us[r.key] <= r.t_max
        assert r.t_max - r.t_min < 1_000_000
