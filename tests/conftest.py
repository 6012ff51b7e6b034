"""Distribution of tests over three workers, settings of hypothesis, and the selection of tests for deep runs.

Tests in real time mostly wait: a third of the workers begins with these, a file at a time, and the other workers lower their
priority. Of the other workers one runs the tests that share a Spark session, and one begins with the tests that share
modules compiled for virtual machines of boards.
"""

import gc
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from support import search

# No deadlines: speed belongs in a benchmark. The build server tries the same examples every time, so that a failure is
# caused by the change; everywhere else new examples are drawn, in deep runs from the seed that is printed. A search that
# states no number counts as one of 100, the default of hypothesis.
UNSTATED = search.examples(100)
settings.register_profile("anywhere", max_examples=UNSTATED, deadline=None, print_blob=True)
settings.register_profile("build server", max_examples=UNSTATED, deadline=None, derandomize=True)
settings.load_profile("build server" if os.environ.get("CI") and not search.SEED else "anywhere")

# Java optimises for runs of hours; the tests start dozens of Sparks that live for seconds.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")

REAL_TIME = ("browser", "e2e", "simulation")  # folders
TOGETHER = ("spark", "browser", "micropython")  # folders whose files are for one worker; the longest first
STEP_BACK = 5  # niceness: a third of the share of a real-time process on the same core


def in_real_time(nodeid: str) -> bool:
    """True if a test waits for real clocks, and so may be late on a busy machine."""
    return not set(REAL_TIME).isdisjoint(nodeid.partition("::")[0].split("/"))


def group(nodeid: str) -> str:
    """Name of the group whose tests run one after the other in one worker: a folder, the file of the test, or the test."""
    path = nodeid.partition("::")[0]
    if "chaos" in path.split("/"):  # schedules share nothing
        return nodeid
    return next((folder for folder in TOGETHER if folder in path.split("/")), path)


class Grouped(LoadScopeScheduling):
    """Tests of one group run in one worker; one of three workers takes groups in real time first, the others those last.

    xdist's own groups do not work under pytest 9.2, which forbids the names that xdist gives to tests.
    """

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        first = self.nodes.index(node) < max(1, len(self.nodes) // 2)
        fits = (name for name, tests in self.workqueue.items() if in_real_time(next(iter(tests))) == first)
        if (name := next(fits, None)) is not None:
            self.workqueue.move_to_end(name, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)  # for a run without workers
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Grouped:
    """Called by xdist."""
    config.option.loadscopereorder = False  # the order is that of the tests
    return Grouped(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Loaded modules and collected tests stay to the end: the garbage collector never scans them, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_unconfigure() -> None:
    """Python frees everything at its end except frozen objects, which libraries would report as leaks."""
    gc.unfreeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Groups come first, so that no worker is left with one of them at the end; a quick run leaves out deep tests."""
    rank = {name: n for n, name in enumerate(TOGETHER)}
    items.sort(key=lambda item: rank.get(group(item.nodeid), len(rank)))
    deep = [] if search.SEED else [item for item in items if item.get_closest_marker("deep")]
    if deep:
        config.hook.pytest_deselected(items=deep)
        items[:] = [item for item in items if not item.get_closest_marker("deep")]


def pytest_report_header() -> str:
    """The seed of a deep run, with which it can be repeated."""
    return (
        f"deep run: WHENABOUTS_DEEP={search.SEED} repeats it" if search.SEED else "quick run: make test-deep for more"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Lower this worker's priority after its last test in real time; those are scheduled first."""
    if "PYTEST_XDIST_WORKER" in os.environ and not in_real_time(item.nodeid) and os.nice(0) == 0:
        os.nice(STEP_BACK)
