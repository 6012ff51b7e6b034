"""The agent as a process with four readers that are silent: its memory, and the metrics it writes."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from support.edge.agent import Bench
from whenabouts_sim.readers.m6e import M6eNano
from whenabouts_sim.readers.pty_link import PtyLink
from whenabouts_sim.readers.rdm6300 import Rdm6300
from whenabouts_sim.stack.stack import reader_table
from whenabouts_sim.world.world import DOCK, GATE

IDLE_BYTES_MAX = 40_000_000
WRITES = 3  # of the status, one a second: the agent is completely set up by then


def memory_bytes(pid: int) -> int:
    """Resident memory of a process in bytes, shared pages included."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def test_four_silent_readers_take_less_than_40_mb(tmp_path):
    """Two modules that search without finding, two badge readers without badges; connected, bounded, metrics written."""
    with ExitStack() as stack:
        bench = stack.enter_context(Bench(tmp_path))
        tables = []
        for number in range(4):
            reader = replace(DOCK if number % 2 else GATE, name=f"r{number}", stream=f"r{number}/tags")
            core = (M6eNano if number % 2 else Rdm6300)(reader.name, number)
            link = stack.enter_context(PtyLink(core, bench.sim_clock, bench.folder / "ports" / reader.name))
            tables.append(reader_table(reader, link.path))
        bench.broker.start()
        metrics = tmp_path / "whenabouts.prom"
        config = bench.configure(*tables)
        config.write_text(f'metrics_file = "{metrics}"\n' + config.read_text())
        part = bench.start_agent("gw")
        ready = bench.wait_status(
            "ready",
            lambda s: s["broker"]["connected"] and {r["state"] for r in s["readers"].values()} == {"reading"},
            30,
        )
        bench.wait_status("settled", lambda s: s["written_us"] >= ready["written_us"] + WRITES * 1_000_000)
        assert len(ready["readers"]) == 4
        assert memory_bytes(part.process.pid) < IDLE_BYTES_MAX
        text = metrics.read_text()
        assert "\nwhenabouts_edge_running 1\n" in text
        assert text.count("whenabouts_edge_reader_reading{") == 4
        assert part.stop() == 0
        assert "\nwhenabouts_edge_running 0\n" in metrics.read_text()
