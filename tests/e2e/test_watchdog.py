"""The agent as a process and the service manager's end of the socket: fed while readings can flow, and only then."""

import os
import signal
import socket
import sys
import time

import pytest

from support.edge.agent import Bench
from support.edge.freezable_agent import LOOP_STANDS, LOOP_STANDS_S, SPOOL_STANDS
from support.paths import REPOSITORY
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import reader_table
from whenabouts_sim.world.world import GATE

END_WAIT_S = 40.0  # far above what an end takes
PERIOD_S = 1.5  # asked for; fed every third of it, so that a healthy agent is never silent for so long


class Manager:
    """The service manager's end: what came, and when."""

    def __init__(self, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + name[1:] if name.startswith("@") else name)

    def next(self, wanted: str, timeout_s: float = 15.0) -> str | None:
        """The next message that begins so, None if none comes in time."""
        until_s = time.monotonic() + timeout_s
        while (left_s := until_s - time.monotonic()) > 0:
            self._socket.settimeout(left_s)
            try:
                message = self._socket.recv(4096).decode()
            except TimeoutError:
                return None
            if message.startswith(wanted):
                return message
        return None

    def forget(self) -> None:
        """Drop what came by now."""
        self._socket.settimeout(0.01)
        try:
            while True:
                self._socket.recv(4096)
        except TimeoutError:
            pass

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(params=["path", "abstract"])
def name(request, tmp_path):
    """Where the service manager listens."""
    return str(tmp_path / "notify") if request.param == "path" else f"@whenabouts-test-{os.getpid()}-{tmp_path.name}"


@pytest.fixture
def manager(name):
    service_manager = Manager(name)
    yield service_manager
    service_manager.close()


@pytest.fixture
def agent(tmp_path, name, manager, monkeypatch):
    """An agent with one silent reader, and no broker; (bench, the file that freezes its spool)."""
    frozen = tmp_path / "frozen"
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    monkeypatch.setenv("WATCHDOG_USEC", str(int(PERIOD_S * 1e6)))
    monkeypatch.setenv("FREEZE_SPOOL_FILE", str(frozen))
    with Bench(tmp_path) as bench, PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, bench.folder / "ports" / "gate"):
        config = bench.configure(reader_table(GATE, bench.folder / "ports" / "gate"))
        script = REPOSITORY / "tests" / "support" / "edge/freezable_agent.py"
        bench.start("gw", [sys.executable, str(script), "run", "--config", str(config)])
        yield bench, frozen


def test_a_silent_reader_and_an_absent_broker_do_not_starve_the_watchdog(agent, manager):
    """Ready, fed for some periods, a status text, stopping at the end: a restart would not make a reader send."""
    part = agent[0].parts["gw"]
    assert manager.next("READY=1")
    assert manager.next("STATUS=1 of 1 readers reading, broker not connected, clock bounded")
    for _ in range(8):
        assert manager.next("WATCHDOG=1")
    assert part.stop() == 0
    assert manager.next("STOPPING=1", 0.1)
    assert "Traceback" not in part.tail()


@pytest.mark.parametrize("name", ["path"], indirect=True)
def test_a_spool_that_stands_still_is_not_covered_up(agent, manager):
    """No reading waits, the loop turns, yet nothing is fed until the spool answers again."""
    bench, frozen = agent
    assert manager.next("WATCHDOG=1")
    frozen.touch()
    bench.wait("frozen", lambda: SPOOL_STANDS in bench.parts["gw"].tail(), 60)
    written_us = bench.agent_status()["written_us"]
    manager.forget()
    assert manager.next("WATCHDOG=1", 2 * PERIOD_S) is None
    bench.wait_status("loop turns", lambda s: s["written_us"] > written_us)
    frozen.unlink()
    assert manager.next("WATCHDOG=1")


@pytest.mark.parametrize("name", ["path"], indirect=True)
def test_a_loop_that_stands_still_is_not_covered_up(agent, manager):
    """The spool's thread goes on, the loop does not: nothing is fed."""
    bench, _ = agent
    assert manager.next("WATCHDOG=1")
    os.kill(bench.parts["gw"].process.pid, signal.SIGUSR1)
    bench.wait("frozen", lambda: LOOP_STANDS in bench.parts["gw"].tail(), 60)
    manager.forget()
    assert manager.next("WATCHDOG=1", LOOP_STANDS_S / 2) is None
    assert manager.next("WATCHDOG=1")


@pytest.fixture
def impatient(monkeypatch):
    """An agent made after this gives itself a second to end."""
    monkeypatch.setenv("END_S", "1")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["path"], indirect=True)
def test_a_spool_that_stands_still_does_not_hold_the_end_for_ever(agent, manager):
    """Asked to end, the agent logs where it stands and exits with code 1."""
    bench, frozen = agent
    part = bench.parts["gw"]
    assert manager.next("WATCHDOG=1")
    frozen.touch()
    bench.wait("frozen", lambda: part.said(SPOOL_STANDS), 60)
    part.ask_to_end()
    assert part.process.wait(END_WAIT_S) == 1
    assert "edge/freezable_agent.py" in part.tail()
