"""How tests are spread over two workers and how hypothesis draws examples.

Tests that share a Spark session stay together, and those of whole systems.
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

GROUPS = ("spark", "e2e")


class Grouped(LoadScopeScheduling):
    """Tests of one group run in one worker, one after the other; all others go wherever there is room.

    xdist's own groups come to nothing under pytest 9.2, which forbids the names that it gives to tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.split("/")[1]
        return folder if folder in GROUPS else nodeid


@pytest.hookimpl(optionalhook=True)  # for a run without workers
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Grouped:
    """Called by xdist; the groups come first, being the largest, so that no worker is left with one of them in the end."""
    return Grouped(config, log)
