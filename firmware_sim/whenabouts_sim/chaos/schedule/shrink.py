"""The shortest schedule that still fails: faults are taken away one by one, then readings from the end."""

from collections.abc import Callable

from whenabouts_sim.chaos.schedule.schedule import Schedule

MOST_RUNS = 60


def shrunk(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """A shorter schedule that fails as well, or the same one; `fails` is asked at most MOST_RUNS times."""
    left = MOST_RUNS

    def still_fails(one: Schedule) -> bool:
        nonlocal left
        left -= 1
        return left >= 0 and fails(one)

    for number in schedule.numbers:
        shorter = schedule.only(n for n in schedule.numbers if n != number)
        if still_fails(shorter):
            schedule = shorter
    step = len(schedule.sightings) // 2
    while step:
        shorter = schedule.only(schedule.numbers, len(schedule.sightings) - step)
        if still_fails(shorter):
            schedule = shorter
        step = min(step, len(schedule.sightings)) // 2
    return schedule
