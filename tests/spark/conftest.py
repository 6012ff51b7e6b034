"""One Spark session for all tests in this folder: starting one costs more than most of them."""

import pytest

from spark.background import Process
from whenabouts_cloud.spark.session import start_session


@pytest.fixture(scope="session")
def spark():
    """A local session with two cores and few shuffle partitions."""
    session = start_session("local[2]", "whenabouts tests", shuffle_partitions=3)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _no_process_is_left():
    """A test that fails must not leave its jobs to the ones after it."""
    yield
    Process.end_all()


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
