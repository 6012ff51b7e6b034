"""A real cluster on this machine: a master and two workers as separate processes, without any code of this project."""

import json
import os
import socket
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet as pq
import pyspark
import pytest

from spark.background import TIMEOUT_S, Process
from spark.cases import random_readings, same_rows, sides
from support.cloud.landing import EPOCH_US, land, watermark
from support.waiting import until
from whenabouts_cloud.correlation.pairs import correlate
from whenabouts_cloud.jobs.session.java import java_home
from whenabouts_cloud.rules import load_rules

RULE = """
STREAM dock  FROM "dock/tags" DELAY 1 h
STREAM shelf FROM "shelf/#"   DELAY 1 h
RULE near CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 400 ms OVER 80 % AND a.key = b.key
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """The address of a standalone master with two workers of one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    home = Path(pyspark.__file__).parent
    env = {"PATH": os.environ["PATH"], "JAVA_HOME": str(java_home(os.environ)), "SPARK_HOME": str(home)}
    env |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    port, web = free_port(), free_port()
    address = f"spark://127.0.0.1:{port}"
    log = (folder / "log").open("w")

    def start(name, *options):
        command = [home / "bin/spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *options]
        return subprocess.Popen(list(map(str, command)), env=env, cwd=folder, stdout=log, stderr=log)

    running = [start("master.Master", "--port", port, "--webui-port", web)]
    worker = ("--port", 0, "--webui-port", 0, "--cores", 1, "--memory", "1200m", "--work-dir", folder / "work")
    running += [start("worker.Worker", *worker, address) for _ in range(2)]
    try:
        until(lambda: alive(web) >= 2, lambda: "two workers\n" + (folder / "log").read_text(), TIMEOUT_S, every_s=0.2)
        yield address
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(TIMEOUT_S)
        log.close()


def alive(web):
    try:
        with urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as answer:
            return json.load(answer)["aliveworkers"]
    except OSError:
        return 0


@pytest.fixture
def folder(tmp_path):
    """A rule file and an empty landing."""
    (tmp_path / "rule.wa").write_text(RULE, encoding="utf-8")
    (tmp_path / "landing").mkdir()
    return tmp_path


@pytest.mark.deep
def test_the_batch_on_a_cluster_is_the_local_result(master, folder):
    """--once with the project shipped by the command itself."""
    rows, job = random_readings(seed=41, count=200), load_rules(folder / "rule.wa").rules[0]
    for n in range(3):
        land(folder / "landing", rows[n::3], n)
    process = Process(folder, "--once", "--json", "--master", master)
    assert process.wait() == 0, "\n".join(process.err)
    expected = correlate(job, *sides(rows, job))
    assert expected.num_rows > 20
    assert same_rows(pq.read_table(folder / "out"), expected)
    assert len(process.out) == expected.num_rows


@pytest.mark.deep
def test_the_stream_on_a_cluster_is_the_local_result(master, folder):
    """Files before and after the start, then SIGTERM."""
    rows, job = random_readings(seed=42, count=200), load_rules(folder / "rule.wa").rules[0]
    land(folder / "landing", rows[:100], 0)
    watermark(folder / "landing", dict.fromkeys(["g0", "g1", "g2", "g3", "g4"], EPOCH_US), 0)
    process = Process(folder, "--master", master)
    process.wait_for("Batch 0")
    land(folder / "landing", rows[100:], 1)
    process.wait_for("Batch", count=2)
    assert process.stop() == 0
    assert same_rows(pq.read_table(folder / "out"), correlate(job, *sides(rows, job)))
