"""One Spark session for all tests in this folder: starting one costs more than most of them."""

import logging

import pytest
from click.testing import CliRunner

from spark.background import Ended, Process
from whenabouts_cloud.cli import main
from whenabouts_cloud.jobs.session.session import start_session

SHARDS = "2"


@pytest.fixture(scope="session")
def spark():
    """A local session with two cores and few shuffle partitions."""
    session = start_session("local[2]", "whenabouts tests", shuffle_partitions=2)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_process_is_left():
    """A test that fails must not leave its jobs to the ones after it."""
    yield
    Process.end_all()


@pytest.fixture
def run_once(spark):
    """Runs a command with --once on the session of these tests: a start of Spark takes longer than most of these runs."""
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    root, java = logging.getLogger(), logging.getLogger("py4j")
    handlers, levels = root.handlers[:], (root.level, java.level)

    def run(folder, command, *more):
        options = ["--landing", folder / "landing", "--rule", folder / "rule.wa", "--out", folder / "out"]
        done = CliRunner().invoke(main, [command, *map(str, options), "--shards", SHARDS, "--once", *more])
        return Ended(done.exit_code, done.stdout.splitlines(), done.stderr.splitlines())

    yield run
    root.handlers[:] = handlers  # the command's writes to a file that is closed
    root.setLevel(levels[0])
    java.setLevel(levels[1])
    spark.conf.set("spark.sql.shuffle.partitions", partitions)


@pytest.fixture
def make_run(request, spark, tmp_path):
    """Runs of a job, of the class `Run` of the test's own module; their queries are stopped at the end."""
    runs = []

    def make(job, shards=2):
        runs.append(request.module.Run(spark, tmp_path, job, shards))
        return runs[-1]

    yield make
    for run in runs:
        if run.query is not None:
            run.query.stop()
