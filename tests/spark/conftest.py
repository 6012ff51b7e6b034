"""One Spark session for all tests in this folder: starting one costs more than most of them."""

import logging
import socket

import pytest
from click.testing import CliRunner

from spark.background import Ended, Process
from spark.every_engine import RULES
from support.cloud.s3 import BUCKET, s3_server, variables
from whenabouts_cloud.cli import main
from whenabouts_cloud.jobs.session.session import start_session

SHARDS = "2"


@pytest.fixture(scope="session")
def spark(s3_port):
    """A local session with two cores and few shuffle partitions."""
    session = start_session("local[2]", "whenabouts tests", shuffle_partitions=2)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def s3_port():
    """The port of S3's server, which Java and the processes that it starts must know from their first moment."""
    with pytest.MonkeyPatch.context() as patched, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.close()
        for name, value in variables(port).items():
            patched.setenv(name, value)
        yield port


@pytest.fixture(scope="session")
def bucket(s3_port):
    """The URI of a bucket; its server starts when the first test asks for it."""
    with s3_server(s3_port):
        yield f"s3://{BUCKET}"


@pytest.fixture
def places(tmp_path, bucket, monkeypatch):
    """The URIs of a landing and of results; rules of all engines are in tmp_path, as is the state of the user's programs."""
    (tmp_path / "rule.wa").write_text(RULES, encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return f"{bucket}/{tmp_path.name}/landing", f"{bucket}/{tmp_path.name}/out"


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
