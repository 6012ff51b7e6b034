"""Progress of a batch job, a stage of Spark at a time.

How much a whole job has to do is not known before it: Spark plans a stage when those before it are done. The tasks of a
stage are known when it begins, so progress is told of these, with no total that was guessed. Of stages that run at the same
time the oldest is shown until it ends.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from whenabouts_cloud.progress import Advance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 0.25
FEWEST = 2  # tasks of a stage that is shown: of a single one nothing is known before its end
END_S = 5.0  # nor is an answer of Java waited for longer when the job has ended

Show = Callable[[str, int, str], AbstractContextManager[Advance]]
"""As `progress.progress`: from label, total and unit what is called with how much was done."""


class Stage(NamedTuple):
    """A stage: its number, its tasks, and how many of them are done."""

    number: int
    tasks: int
    done: int


Look = Callable[[int | None], Stage | None]
"""The stage of a number, or for None the oldest one that runs; None if there is none."""


@contextlib.contextmanager
def stage_progress(spark: "SparkSession", show: Show) -> Iterator[None]:
    """Around the work of a session; another thread shows its stages."""
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(spark, show, ended), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(END_S)


def show_stages(look: Look, show: Show, pause: Callable[[], bool]) -> None:
    """Show one stage after the other, until `pause`, called between two looks, says that the work has ended."""
    shown = -1
    ended = False
    while not ended:
        stage = look(None)
        if stage is None or stage.number <= shown or stage.tasks < FEWEST:
            ended = pause()
            continue
        shown, done = stage.number, 0
        with show(f"stage {stage.number}", stage.tasks, "tasks") as advance:
            while stage is not None:
                advance(stage.done - done)
                done = stage.done
                if ended or done >= stage.tasks:
                    break
                ended = pause()
                stage = look(shown)


def _follow(spark: "SparkSession", show: Show, ended: threading.Event) -> None:
    from py4j.protocol import Py4JError

    tracker = spark.sparkContext.statusTracker()

    def look(number: int | None) -> Stage | None:
        active = sorted(tracker.getActiveStageIds())
        if number is None and not active:
            return None
        info = tracker.getStageInfo(active[0] if number is None else number)
        return None if info is None else Stage(info.stageId, info.numTasks, info.numCompletedTasks)

    with contextlib.suppress(Py4JError, OSError):  # Java has ended, which the job itself tells
        show_stages(look, show, lambda: ended.wait(POLL_S))
