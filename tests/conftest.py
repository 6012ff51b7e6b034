"""How tests are spread over three workers and how hypothesis draws examples.

Tests in real time mostly wait: one worker runs them, one after the other, and the two others step back behind it. One of
these runs the tests that share a Spark session.
"""

import os
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

# No deadlines: how fast something is belongs into a benchmark. The build server tries the same examples every time, so that
# a red build is the change's doing; everywhere else new examples are drawn.
settings.register_profile("anywhere", deadline=None, print_blob=True)
settings.register_profile("build server", deadline=None, derandomize=True)
settings.load_profile("build server" if os.environ.get("CI") else "anywhere")

# Java optimises for runs of hours; the tests start dozens of Sparks that live for seconds.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

REAL_TIME, SPARK = "real time", "spark"
GROUPS = {"e2e": REAL_TIME, "simulation": REAL_TIME, "spark": SPARK}
STEP_BACK = 5  # niceness: a third of the share of a process in real time that wants the same core


def group(nodeid: str) -> str:
    """The group of a test; its own name if it is in none."""
    return next((GROUPS[folder] for folder in nodeid.partition("::")[0].split("/") if folder in GROUPS), nodeid)


class Grouped(LoadScopeScheduling):
    """Tests of one group run in one worker, one after the other; all others go wherever there is room.

    xdist's own groups come to nothing under pytest 9.2, which forbids the names that it gives to tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.hookimpl(optionalhook=True)  # for a run without workers
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Grouped:
    """Called by xdist; the groups come first, being the largest, so that no worker is left with one of them in the end."""
    return Grouped(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A worker steps back for good with its first test that is not in real time; those come first where they come at all."""
    if "PYTEST_XDIST_WORKER" in os.environ and group(item.nodeid) != REAL_TIME and os.nice(0) == 0:
        os.nice(STEP_BACK)
