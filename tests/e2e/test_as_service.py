"""The agent as a process under what its unit forbids: it reads, stores and publishes up to an orderly end."""

import re
import sys
from pathlib import Path

from support.edge.agent import Bench, witness
from support.edge.as_service import allowed_calls
from support.paths import REPOSITORY
from whenabouts_edge.install.files import unit
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import reader_table
from whenabouts_sim.world.world import GATE, Sighting

UNIT = unit(("/opt/whenabouts/bin/whenabouts-edge",), "whenabouts", "/var/lib/whenabouts", [])


def test_the_filter_keeps_out_what_an_agent_never_needs():
    """Mounting, tracing, loading modules, becoming another user; reading the kernel's clock stays."""
    allowed = allowed_calls(UNIT)
    assert {"read", "fsync", "connect", "execve", "clone3", "adjtimex"} <= allowed
    assert not allowed & {
        "mount",
        "ptrace",
        "init_module",
        "setuid",
        "chown",
        "reboot",
        "clock_settime",
        "sched_setscheduler",
    }


def test_readings_flow_under_what_the_unit_forbids(tmp_path):
    """From the port to the broker and to an orderly end; the kernel reports that the restrictions are in force."""
    script = REPOSITORY / "tests" / "support" / "edge/as_service.py"
    (tmp_path / "unit").write_text(UNIT)
    with (
        Bench(tmp_path) as bench,
        PtyLink(Rdm6300(GATE.name, 1), bench.sim_clock, bench.folder / "ports" / "gate") as link,
    ):
        config = bench.configure(reader_table(GATE, link.path))
        bench.broker.start()
        agent = [sys.executable, "-m", "whenabouts_edge.cli", "run", "--config", str(config)]
        with witness(bench.broker.port) as seen:
            part = bench.start("gw", [sys.executable, str(script), str(tmp_path / "unit"), *agent])
            bench.wait("agent ready", lambda: bench.agent_ready("gw"), 60)
            start_us = bench.true_us() + 300_000
            link.go([Sighting(start_us + i * 70_000, GATE.name, i, f"{i:010X}") for i in range(5)])
            seen.wait("badges", lambda: len(seen.keys()) >= 3)
            kernel = Path(f"/proc/{part.process.pid}/status").read_text()
            assert re.findall(r"^(?:CapEff|NoNewPrivs|Seccomp):\t(\w+)$", kernel, re.M) == ["0" * 16, "1", "2"]
            assert part.stop() == 0
            seen.wait("stopped", lambda: seen.conditions()[-1] == "stopped")
        assert "Traceback" not in part.tail()
