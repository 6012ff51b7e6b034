"""Progress of a batch job, one Spark stage at a time.

The total work of a job is unknown in advance: Spark plans a stage when the stages before it are done. The tasks of a stage
are known when it begins, so progress is shown per stage, without guessed totals. Of stages that run at the same time the
oldest is shown until it ends.
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
FEWEST = 2  # tasks of a stage that is shown; a single task has no progress before its end
END_S = 5.0  # longest wait for an answer of Java after the end of the job

Show = Callable[[str, int, str], AbstractContextManager[Advance]]
"""Takes label, total and unit, as `progress.progress` does; gives a function that is called with the work done."""


class Stage(NamedTuple):
    """A stage: its number, the number of its tasks, and how many of them are done."""

    number: int
    tasks: int
    done: int


Look = Callable[[int | None], Stage | None]
"""Returns the stage with this number, or for None the oldest running one; None if there is none."""


@contextlib.contextmanager
def stage_progress(spark: "SparkSession", show: Show) -> Iterator[None]:
    """Show the stages of a session from another thread, for the duration of the context."""
    ended = threading.Event()
    thread = threading.Thread(target=_follow, args=(spark, show, ended), name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(END_S)


def show_stages(look: Look, show: Show, pause: Callable[[], bool]) -> None:
    """Show one stage after the other, until `pause`, called between two looks, returns True: the work has ended."""
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

    with contextlib.suppress(Py4JError, OSError):  # Java has ended; the job itself reports it
        show_stages(look, show, lambda: ended.wait(POLL_S))
