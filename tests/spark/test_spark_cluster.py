"""A real cluster on this machine: a master and two workers as separate processes, without any code of this project.

The landing and the results are in an object store, a worker is killed amid a job of all three engines.
"""

import sys
import tarfile
import time
from itertools import count

import pyarrow.parquet as pq
import pytest

from spark.background import Process
from spark.cases import random_readings, same_rows, sides
from spark.cluster import Cluster, ConnectServer
from spark.every_engine import check, defined, every_kind, published, watermark_bucket
from support.child import environment, ran
from support.cloud.bucket import BucketLanding, copied
from support.cloud.landing import land
from support.latwin.states import FOREVER_US
from whenabouts_cloud.correlation.pairs import correlate
from whenabouts_cloud.rules import load_rules

NEAR = """
STREAM dock  FROM "dock/tags" DELAY 1 h
STREAM shelf FROM "shelf/#"   DELAY 1 h
RULE near CORRELATE dock AS a, shelf AS b WHERE |@a - @b| <= 400 ms OVER 80 % AND a.key = b.key
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("cluster"), workers=2)
    yield made
    made.stop()


@pytest.mark.deep
def test_a_batch_of_three_engines_is_the_definition_though_a_worker_is_killed(cluster, places, tmp_path):
    """Landing and results on S3; the tasks of the killed worker are repeated by the other one."""
    (tags, states), (landing, out) = every_kind(), places
    writer = BucketLanding(landing)
    for n in range(4):
        writer.land([*tags[n::4], *states[n::4]])
    watermark_bucket(writer, FOREVER_US)
    job = Process(tmp_path, "--once", "--json", "--master", cluster.address, command="run", landing=landing, out=out)
    job.wait_for("spark.started")
    time.sleep(4)  # the moment of the kill is amid the first of several results
    cluster.kill_worker()
    assert job.wait() == 0, "\n".join(job.err)
    cluster.add_worker()
    wanted = check(copied(out, tmp_path / "copy" / "out").parent, tags, states, tmp_path / "rule.wa")
    assert len(job.out) == wanted.total()


@pytest.mark.deep
def test_a_stream_of_three_engines_is_the_definition_though_a_worker_is_killed(cluster, places, tmp_path):
    """The state of its shards goes to the other worker, and each result is there once."""
    cluster.wait_for(2)
    (tags, states), (landing, out) = every_kind(), places
    writer, parts = BucketLanding(landing), iter([[*tags[n::4], *states[n::4]] for n in range(4)])
    writer.land(next(parts))
    job = Process(tmp_path, "--master", cluster.address, command="run", landing=landing, out=out)
    job.wait_for("Batch", count=2)
    writer.land(next(parts))
    time.sleep(0.5)
    cluster.kill_worker()
    for some in parts:
        writer.land(some)
        time.sleep(1)
    watermark_bucket(writer, FOREVER_US)
    wanted, numbers = defined(load_rules(tmp_path / "rule.wa"), tags, states), count()

    def all_there():
        return published(copied(out, tmp_path / f"copy{next(numbers)}" / "out")) == wanted

    job.until(all_there)
    assert job.stop() == 0, "\n".join(job.err)
    cluster.add_worker()
    check(copied(out, tmp_path / "end" / "out").parent, tags, states, tmp_path / "rule.wa")


def near_of(folder):
    """Write a rule file; return its rule."""
    (folder / "rule.wa").write_text(NEAR, encoding="utf-8")
    return load_rules(folder / "rule.wa").rules[0]


@pytest.mark.deep
def test_workers_unpack_the_environment_that_is_shipped(cluster, tmp_path):
    """Their Python is that of the archive; here one that only calls this one, and says that it was called."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\ntouch {tmp_path}/called\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz") as archive:
        archive.add(python, "bin/python")
    rows, job = random_readings(seed=41, count=200), near_of(tmp_path)
    for n in range(3):
        land(tmp_path / "landing", rows[n::3], n)
    archived = ("--environment", str(tmp_path / "environment.tar.gz"))
    process = Process(tmp_path, "--once", "--json", "--master", cluster.address, *archived)
    assert process.wait() == 0, "\n".join(process.err)
    expected = correlate(job, *sides(rows, job))
    assert expected.num_rows > 20
    assert same_rows(pq.read_table(tmp_path / "out"), expected)
    assert (tmp_path / "called").exists()


@pytest.mark.deep
def test_spark_connect_runs_a_whole_landing(tmp_path):
    """A server that knows nothing of this project; a job that follows a landing is refused with a sentence."""
    rows, job = random_readings(seed=43, count=200), near_of(tmp_path)
    for n in range(3):
        land(tmp_path / "landing", rows[n::3], n)
    server = ConnectServer(tmp_path)
    try:
        process = Process(tmp_path, "--once", "--json", "--master", server.address)
        assert process.wait() == 0, "\n".join(process.err)
    finally:
        server.stop()
    expected = correlate(job, *sides(rows, job))
    assert len(process.out) == expected.num_rows > 20
    assert same_rows(pq.read_table(tmp_path / "out"), expected)
    following = Process(tmp_path, "--master", "sc://127.0.0.1:1")
    assert following.wait() == 2
    assert "found Spark Connect without --once" in " ".join(following.err)


CONNECTED = """
import sys
import whenabouts as wa
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
rows = [("x", 0, 10), ("y", 5, 15), (None, 10, 10)]
a = spark.createDataFrame(rows, "key string, t_min bigint, t_max bigint")
b = spark.createDataFrame([("x", 8, 9), ("y", 7, 20)], "key string, t_min bigint, t_max bigint")
pairs = wa.correlate(a, wa.interval(b, at="t_min", error="0 us"), "|@a - @b| <= 10 us OVER 50 %", on="key")
print(type(pairs).__module__, sorted((row.key_a, row.probability) for row in pairs.collect()))
"""


@pytest.mark.deep
def test_pairs_of_frames_of_spark_connect(tmp_path):
    """`wa.correlate` and `wa.interval` on frames whose rows are on a server that knows nothing of this project."""
    server = ConnectServer(tmp_path)
    try:
        done = ran(CONNECTED, server.address)
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr
    assert done.stdout == "pyspark.sql.connect.dataframe [('x', 1.0), ('y', 1.0)]\n"


CONNECTED_WORKERS = """
import sys
import whenabouts as wa
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
rows = [("x", 0, 10, "a", 1), ("x", 20, 30, "b", 1), ("y", 5, 15, "a", 1), ("y", 10, 20, "b", 0)]
seen = spark.createDataFrame(rows, "key string, t_min bigint, t_max bigint, stream string, value int")
found = wa.detect(seen, "SEQ(a, b) WITHIN 1 h PER key OVER 10 %").collect()
print(sorted((row.key, row.t_min_a, row.t_max_b, row.probability) for row in found))
found = wa.verdicts(seen, "POSSIBLY a AND b", group="key").collect()
print([(row.key, row.t_min, row.until_min, row.probability) for row in found])
found = seen.select(wa.within_probability(*map(F.col, ("t_min", "t_max", "t_min", "t_max")), 5).alias("p")).collect()
print([row.p for row in found])
"""


@pytest.mark.deep
def test_sequences_and_verdicts_on_frames_of_spark_connect(tmp_path):
    """Their rows are decided by the server's Python, which has this project."""
    server = ConnectServer(tmp_path, environment()["PYTHONPATH"])
    try:
        done = ran(CONNECTED_WORKERS, server.address)
    finally:
        server.stop()
    assert done.returncode == 0, done.stderr
    matches, verdicts, probabilities = done.stdout.splitlines()
    assert matches == "[('x', 0, 30, 1.0), ('y', 5, 20, 0.875)]"
    assert verdicts == "[('x', 20, None, 1.0)]"
    assert probabilities == "[0.75, 0.75, 0.75, 0.75]"
