"""The agent as a process against a real broker that is late, dies and forgets: nothing is lost, nothing deleted early."""

import os
import signal
import sys
import time

import pytest

from support.edge.agent import CLOCK, badges, check_capture_published, highest, passed, witness
from support.edge.config import command
from support.files.own_captures import TRACE
from whenabouts_protocol import decode_batch, decode_birth, decode_heartbeat
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import reader_table
from whenabouts_sim.world.world import DOCK, GATE, Sighting


@pytest.fixture
def gate(bench):
    """A badge reader on a port, ready; the agent is configured for this reader only."""
    port = bench.folder / "ports" / "gate"
    with PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, port) as link:
        bench.configure(reader_table(GATE, port), resend_s=2)
        yield link


def test_broker_comes_late_dies_and_comes_back(bench, gate):
    """Readings from before the broker came arrive; those that it lost are sent again; then the cloud confirms.

    agent   |--------------------------------------------|
    broker            |------ killed       |--------------|   (state lost)
    badges     =====        =====    ====       ====
    """
    bench.start_agent("gw")
    bench.wait_status("port open", lambda s: s["readers"][GATE.name]["state"] == "reading")
    first = passed(bench, gate, badges(bench, 5))
    status = bench.wait_status("stored", lambda s: s["spool"]["readings"] == len(first))
    assert status["broker"]["connected"] is False
    assert str(bench.broker.port) in status["broker"]["problem"]
    bench.broker.start()
    with witness(bench.broker.port) as seen:
        seen.wait("first badges", lambda: seen.keys() >= first)
        second = passed(bench, gate, badges(bench, 5, 5))
        seen.wait("second badges", lambda: seen.keys() >= second)
        bench.broker.kill()
        for path in bench.broker.directory.glob("*.db*"):
            path.unlink()
        everything = first | second | passed(bench, gate, badges(bench, 4, 10))
        bench.wait_status("stored meanwhile", lambda s: s["spool"]["readings"] == len(everything))
        seen.seen.clear()
        bench.broker.start()
        seen.wait("everything again", lambda: seen.keys() >= everything, 60)
        order = [(r.boot, r.seq) for r in seen.readings()]
        assert order[: order.index(max(order)) + 1] == sorted(order[: order.index(max(order)) + 1])
        assert {seq for _, seq in order} == set(range(len(everything)))
        seen.acknowledge(highest(seen.readings()))
        bench.wait_status("confirmed", lambda s: s["spool"]["readings"] == 0)


def test_acknowledgements_delete_exactly_what_they_cover(bench, gate):
    """Foreign, malformed and impossible ones are counted and delete nothing; without one all is sent again."""
    bench.broker.start()
    with witness(bench.broker.port) as seen:
        bench.start_agent("gw")
        bench.wait("agent ready", lambda: bench.agent_ready("gw"), 60)
        keys = passed(bench, gate, badges(bench, 12))
        count = len(keys)
        seen.wait("badges", lambda: seen.keys() >= keys)
        [boot] = {r.boot for r in seen.readings()}
        seen.acknowledge({boot: count - 1}, gateway="other")
        seen.send_ack(b"\xff\x00 no ack")
        seen.acknowledge({boot: count})
        seen.acknowledge({boot + 1: count - 1})
        bench.wait_status("refused", lambda s: s["broker"]["acks_refused"] == 3)
        assert bench.agent_status()["spool"]["readings"] == count
        resent = len(seen.readings())
        seen.wait("sent again for want of an acknowledgement", lambda: len(seen.readings()) >= resent + count)
        assert bench.wait_status("counted", lambda s: s["broker"]["resends"] >= 1)["spool"]["readings"] == count
        assert sorted({r.seq for r in seen.readings()}) == list(range(count))
        seen.acknowledge({boot: 5})
        left = bench.wait_status("partly confirmed", lambda s: s["spool"]["readings"] < count)["spool"]["readings"]
        assert left >= count - 6  # a message that is covered in part stays whole
        seen.acknowledge({boot: count - 1}, retain=True)
        bench.wait_status("confirmed", lambda s: s["spool"]["readings"] == 0)
        seen.wait("heartbeat without spool", lambda: seen.heartbeats()[-1].spool_readings == 0)


def test_orderly_end_publishes_stopped_and_a_kill_offline(bench, gate):
    """SIGTERM publishes all stored readings and the status stopped, retained; SIGKILL leaves the last will; boots differ."""
    bench.broker.start()
    with witness(bench.broker.port) as seen:
        agent = bench.start_agent("gw")
        bench.wait("agent ready", lambda: bench.agent_ready("gw"), 60)
        passing = badges(bench, 6, every_us=66_000)
        gate.go(passing)
        seen.wait("half of them", lambda: len(seen.keys()) >= 3)
        began_s = time.monotonic()
        assert agent.stop() == 0
        assert time.monotonic() - began_s < 5
        seen.wait("stopped", lambda: "stopped" in seen.conditions())
        assert seen.conditions() == ["online", "stopped"]
        assert "Traceback" not in agent.tail()
        numbers = sorted({r.seq for r in seen.readings()})
        assert numbers == list(range(len(numbers)))
        assert bench.agent_status()["readings"] == len(numbers)
        last = seen.heartbeats()[-1]
        assert last.published[last.boot] == (0, len(numbers) - 1)
        with witness(bench.broker.port) as late:
            late.wait("retained", lambda: len(late.seen) >= 2)
            assert sorted((leaf, retained) for leaf, _, retained in late.seen) == [("birth", True), ("status", True)]
            assert late.conditions() == ["stopped"]
            birth = decode_birth(next(p for leaf, p, _ in late.seen if leaf == "birth"))
            assert [stream[0] for stream in birth.streams] == [GATE.stream]
        agent = bench.start_agent("gw")
        bench.wait("agent ready again", lambda: bench.agent_ready("gw"), 60)
        seen.wait("online", lambda: seen.conditions()[-1] == "online")
        os.kill(agent.process.pid, signal.SIGKILL)
        seen.wait("last will", lambda: seen.conditions()[-1] == "offline")
        assert agent.process.wait() == -signal.SIGKILL
        assert len({b.boot for b in seen.heartbeats()}) == 2


def test_end_is_quick_while_the_broker_does_not_answer(bench, gate):
    """A broker that hangs with unacknowledged messages delays the end by the time of the drain at most."""
    bench.broker.start()
    agent = bench.start_agent("gw")
    bench.wait("agent ready", lambda: bench.agent_ready("gw"), 60)
    os.kill(bench.broker.pid, signal.SIGSTOP)
    try:
        keys = passed(bench, gate, badges(bench, 3, after_us=100_000))
        bench.wait_status("stored", lambda s: s["spool"]["readings"] == len(keys))
        began_s = time.monotonic()
        assert agent.stop() == 0
        assert time.monotonic() - began_s < 12
        assert bench.agent_status()["spool"]["readings"] == len(keys)
    finally:
        os.kill(bench.broker.pid, signal.SIGCONT)


def test_full_disk_is_survived_and_reported_as_a_gap(bench, gate):
    """The kernel refuses to let files grow: later readings are refused and counted, and reported once the cloud made room.

    disk      room | full ............. | the cloud confirms, the journal is emptied
    badges     ====  ====                 ==
    published  ====                       gap ==
    """
    bench.broker.start()
    with witness(bench.broker.port) as seen:
        config = bench.folder / "config" / "gw.toml"
        agent = f"exec {sys.executable} -m whenabouts_edge.cli run --config {config}"
        bench.start("gw", ["bash", "-c", f"ulimit -f 128; {agent}"])  # in units of 1024 bytes
        bench.wait("agent ready", lambda: bench.agent_ready("gw"), 60)
        keys = passed(bench, gate, badges(bench, 50))
        status = bench.wait_status(
            "disk full", lambda s: s["refused"] > 0 and s["refused"] + s["readings"] >= len(keys)
        )
        assert "cannot write" in bench.parts["gw"].tail()
        stored = status["readings"]
        seen.wait("what was stored", lambda: len(seen.keys()) == stored)
        seen.acknowledge(highest(seen.readings()))
        seen.wait("gap", lambda: any(r.kind == "gap" for r in seen.readings()))
        more = passed(bench, gate, badges(bench, 2, 50))
        seen.wait("later badges", lambda: seen.keys() >= more)
        gaps = {r.seq: r for r in seen.readings() if r.kind == "gap"}
        assert sum(r.value for r in gaps.values()) == bench.agent_status()["refused"]
        published = seen.keys()
        lost = [e for e in gate.emitted if not e.damaged and e.key not in published]
        assert len(lost) == bench.agent_status()["refused"]
        seen.wait("heartbeat", lambda: seen.heartbeats()[-1].refused == len(lost))
        assert seen.heartbeats()[-1].invalid == 0
        assert all(any(g.t_min <= e.true_us <= g.t_max for g in gaps.values()) for e in lost)
        assert bench.parts["gw"].stop() == 0
        assert "Traceback" not in bench.parts["gw"].tail()


def test_one_reader_is_unplugged_while_the_other_goes_on(bench):
    """The other's readings keep coming, the watermark grows and holds, every stamp contains the true time.

    dock (m6e)    ====            unplugged         ====
    gate (rdm)    ==================================
    """
    ports = bench.folder / "ports"
    dock = PtyLink(M6eNano(DOCK.name, 2), bench.sim_clock, ports / "dock")
    gate = PtyLink(Rdm6300(GATE.name, 2), bench.sim_clock, ports / "gate")
    bench.broker.start()
    config = bench.configure(reader_table(DOCK, ports / "dock"), reader_table(GATE, ports / "gate"))
    with dock, gate, witness(bench.broker.port) as seen:
        agent = bench.start_agent("gw")
        assert dock.started_by_host.wait(60)
        bench.wait("agent ready", lambda: bench.agent_ready("gw"), 60)
        fine = command("status", "--config", config)
        assert (fine.returncode, fine.stderr) == (0, "")
        assert "bench/gw" in fine.stdout
        assert "reader  gate-1: reading" in fine.stdout

        start_us = bench.true_us() + 1_300_000
        gate.go(badges(bench, 75))
        tags = passed(bench, dock, [Sighting(start_us + i * 30_000, DOCK.name, i, f"30{i:022X}") for i in range(30)])
        seen.wait("tags", lambda: seen.keys() >= tags)
        dock.unplug()
        bench.wait_status("reader lost", lambda s: s["readers"][DOCK.name]["state"] == "lost")
        bad = command("status", "--config", config, "--json")
        assert bad.returncode == 1
        assert "reader dock-1: lost" in bad.stdout
        watermarked = len([b for b in seen.heartbeats() if b.frontier_us is not None])
        seen.wait(
            "watermark grows without the lost reader",
            lambda: len({b.frontier_us for b in seen.heartbeats()[watermarked:]}) >= 4,
        )
        dock.plug()
        assert dock.started_by_host.wait(60)
        start_us = bench.true_us() + 1_300_000
        more = passed(
            bench, dock, [Sighting(start_us + i * 30_000, DOCK.name, 100 + i, f"31{i:022X}") for i in range(10)]
        )
        seen.wait("tags after plugging in", lambda: seen.keys() >= more)
        seen.wait("all badges", lambda: seen.keys() >= {e.key for e in gate.emitted if not e.damaged})
        assert agent.stop() == 0
        emitted = {e.key: e for e in [*dock.emitted, *gate.emitted]}

    readings = {(r.boot, r.seq): r for r in seen.readings()}
    assert sorted(seq for _, seq in readings) == list(range(len(readings)))
    narrow = 0
    for r in readings.values():
        assert r.t_min <= emitted[r.key].true_us <= r.t_max
        bound_us = CLOCK.bound_us(emitted[r.key].true_us)
        narrow += r.stream == DOCK.stream and r.t_max - r.t_min < 2 * bound_us + 200_000
    assert narrow > len(tags | more) // 2  # the module's time narrows stamps from 1 s to the bounds of port and clock
    check_watermarks(seen.seen)
    stopped = command("status", "--config", config)
    assert stopped.returncode == 1
    assert "the agent is stopped" in stopped.stdout


def check_watermarks(messages: list[tuple[str, bytes, bool]]) -> None:
    """In the broker's order: after a heartbeat no reading before its watermark comes, and all that it named came before."""
    frontier_us, named, numbers, watermarks = None, set(), set(), 0
    for leaf, payload, _ in messages:
        if leaf == "obs":
            for r in decode_batch(payload):
                if (r.boot, r.seq) not in numbers and frontier_us is not None:
                    assert r.t_max >= frontier_us, f"number {r.seq} came after the watermark {frontier_us}: {r}"
                numbers.add((r.boot, r.seq))
        elif leaf == "heartbeat" and (heartbeat := decode_heartbeat(payload)).frontier_us is not None:
            watermarks += 1
            assert frontier_us is None or heartbeat.frontier_us >= frontier_us
            frontier_us = heartbeat.frontier_us
            for boot, (first, last) in heartbeat.published.items():
                named |= {(boot, seq) for seq in range(first, last + 1)}
            assert named <= numbers
    assert watermarks > 5
    assert named


def test_capture_replayed_as_a_port(bench):
    """The agent reads a capture of a module through replay:// and publishes its tags."""
    check_capture_published(bench, TRACE)
