"""Progress of a batch job (`whenabouts_cloud.jobs.stage_progress`) over the stages that Spark is in."""

import contextlib

from whenabouts_cloud.jobs.stage_progress import Stage, show_stages


class Job:
    """A job as its stages are at each look; `shown` are the steps that each was shown with."""

    def __init__(self, *moments):
        self.moments = [{stage.number: stage for stage in moment} for moment in moments]
        self.at, self.shown = 0, {}

    def look(self, number):
        """Done stages are known, and do not run."""
        now = self.moments[self.at]
        running = [stage for stage in now.values() if stage.done < stage.tasks]
        return now.get(number) if number is not None else min(running, default=None)

    def pause(self):
        self.at = min(self.at + 1, len(self.moments) - 1)
        return self.at == len(self.moments) - 1

    @contextlib.contextmanager
    def show(self, label, total, unit):
        steps = self.shown.setdefault((label, total, unit), [])
        yield steps.append


def steps_of(*moments):
    job = Job(*moments)
    show_stages(job.look, job.show, job.pause)
    return job.shown


def test_stages_are_shown_one_after_the_other_up_to_their_ends():
    """Each with its own number of tasks, as what comes after it is not known."""
    shown = steps_of(
        [], [Stage(3, 8, 0)], [Stage(3, 8, 5)], [Stage(3, 8, 8), Stage(4, 2, 0)], [Stage(3, 8, 8), Stage(4, 2, 1)],
        [Stage(4, 2, 2)],
    )  # fmt: skip
    assert shown == {("stage 3", 8, "tasks"): [0, 5, 3], ("stage 4", 2, "tasks"): [0, 1, 1]}


def test_of_stages_at_the_same_time_the_oldest_is_shown_and_then_the_next():
    """And none a second time."""
    shown = steps_of(
        [Stage(1, 4, 1), Stage(2, 4, 3)], [Stage(1, 4, 4), Stage(2, 4, 3)], [Stage(1, 4, 4), Stage(2, 4, 3)],
        [Stage(1, 4, 4), Stage(2, 4, 4)],
    )  # fmt: skip
    assert shown == {("stage 1", 4, "tasks"): [1, 3], ("stage 2", 4, "tasks"): [3, 0, 1]}


def test_a_stage_of_one_task_or_that_spark_has_forgotten_is_not_shown_on():
    """Nothing is made up: the bar ends where it was."""
    assert steps_of([Stage(1, 1, 0)], [Stage(2, 6, 2)], [], []) == {("stage 2", 6, "tasks"): [2]}


def test_the_end_of_the_job_ends_the_bar():
    """Also in the middle of a stage, as when the job fails."""
    assert steps_of([Stage(1, 6, 2)], [Stage(1, 6, 3)]) == {("stage 1", 6, "tasks"): [2, 1]}
