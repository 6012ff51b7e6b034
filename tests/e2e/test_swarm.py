"""Twenty light gateways, one real broker, one real ingest: everything sent is in the landing exactly once."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pyarrow.parquet as pq

from whenabouts_sim.swarm.run import Swarm

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
COMMAND = [sys.executable, "-m", "whenabouts_sim.cli", "swarm", "--gateways", "20"]
LIMIT_S = 60.0


def test_everything_made_is_landed_once_and_measured(tmp_path):
    """As a person runs it, at a rate that any machine takes; figures as JSON, talk on stderr, exit 0."""
    keep = tmp_path / "kept"
    command = [*COMMAND, "--rate", "300", "--seconds", "3", "--json", "--keep", str(keep)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = json.loads(done.stdout)
    assert summary["exact"]
    assert 600 < summary["made"] == summary["landed"] < 1200
    assert (summary["missing"], summary["repeated"], summary["different"]) == (0, 0, 0)
    [step] = summary["steps"]
    assert 0 < step["p50_s"] <= step["p99_s"] < LIMIT_S
    assert step["ingest_cores"] > 0
    assert 0 < step["messages"] <= step["made"]
    needs = summary["computed_needs"]
    assert needs is None or needs["readings_s"] > 100 * step["offered"]
    rows = sum(pq.read_metadata(path).num_rows for path in (keep / "landing").glob("hour=*/part-*.parquet"))
    assert rows == summary["made"]


class Meddled(Swarm):
    """Somebody tampers with the landing before it is compared."""

    def _compare(self, stack, steps):
        path = max(stack.landing.glob("hour=*/part-*.parquet"), key=lambda path: path.stat().st_size)
        table = pq.read_table(path)
        assert table.num_rows > 3
        pq.write_table(table.slice(2), path)
        pq.write_table(table.slice(2, 1), path.with_name("part-99999999.parquet"))
        return super()._compare(stack, steps)


def test_a_reading_lost_or_doubled_is_reported(tmp_path):
    """Two rows taken out of a file, a third one written twice: the comparison with the truth sees it."""
    result = Meddled(tmp_path, 5, 200.0, 1.0, quiet=True).run()
    assert not result.exact
    assert (result.missing, result.repeated, result.different) == (2, 1, 0)
    assert "NOT as it was made" in result.text()


def test_ctrl_c_ends_every_process(tmp_path):
    """Interrupted in the middle of a step: exit 130, and nothing of it goes on running."""
    command = [*COMMAND, "--rate", "100", "--seconds", "600", "--keep", str(tmp_path / "kept")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    for line in process.stderr:
        if line.startswith("step 1"):
            break
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == 3  # broker, ingest, and the process that receives for it
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT_S) == 130, process.stderr.read()
    process.stderr.close()
    _, alive = psutil.wait_procs(children, timeout=LIMIT_S)
    assert not alive
