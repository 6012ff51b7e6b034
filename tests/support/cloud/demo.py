"""The demonstration as a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

from whenabouts_edge.trace import open_trace
from whenabouts_sim.stack.sources import Capture
from whenabouts_sim.world.clocks import EPOCH_US, SimClock

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
GUARANTEES = ("lost", "repeated", "violations", "pairs_repeated", "unexpected", "absent")


def demo_command(*options: str) -> list[str]:
    """The command that starts the demonstration."""
    return [sys.executable, "-m", "whenabouts_sim.cli", "demo", *options]


def run_demo(*options: str) -> subprocess.CompletedProcess[str]:
    """The finished process of a demonstration."""
    return subprocess.run(demo_command(*options), capture_output=True, text=True, env=ENVIRONMENT, check=False)


def check_replayed(folder: Path, scratch: Path, seed: int) -> None:
    """A folder of captures plays as one: its frames are those recorded, all its tags land at every gateway, once."""
    played = Capture(folder, SimClock(EPOCH_US, 0), scratch)
    records = [record for path in played.files for record in open_trace(path).records()]
    assert played.frames == sum(record.direction == "rx" for record in records)
    done = run_demo("--trace", str(folder), "--seed", str(seed), "--speed", "5", "--json")
    summary = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert summary["made"] == summary["landed"] > 60
    assert [summary[guarantee] for guarantee in GUARANTEES] == [0] * len(GUARANTEES)
