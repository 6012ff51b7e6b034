"""Sums over many schedules."""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from whenabouts_sim.chaos.schedule.schedule import draw
from whenabouts_sim.chaos.schedule_run import run


class Result(NamedTuple):
    """What is kept of one schedule."""

    seed: int
    landed: int
    told: int
    faults: tuple[str, ...]
    broken: tuple[str, ...]


def result_of(seed: int) -> Result:
    """Run the schedule of a seed."""
    schedule = draw(seed)
    outcome = run(schedule)
    kinds = tuple(fault.kind for fault in schedule.faults)
    return Result(seed, outcome.landed, outcome.told, kinds, tuple(f"{one.law}: {one.text}" for one in outcome.broken))


@dataclass(frozen=True)
class Figures:
    """faults: their number by kind; failed: the first seed that failed; broken: what it broke."""

    schedules: int = 0
    readings: int = 0
    results: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failed: int | None = None
    broken: tuple[str, ...] = ()

    def after(self, one: Result) -> "Figures":
        """The sums with one more schedule."""
        more = replace(
            self,
            schedules=self.schedules + 1,
            readings=self.readings + one.landed,
            results=self.results + one.told,
            faults=self.faults + Counter(one.faults),
        )
        if one.broken and self.failed is None:
            more = replace(more, failed=one.seed, broken=one.broken)
        return more

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "faults": dict(self.faults)}

    def text(self, seconds: float) -> str:
        """The sums for people."""
        kinds = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in sorted(self.faults.items()))
        return (
            f"{self.schedules} schedules in {seconds:.1f} s, {self.schedules / max(seconds, 1e-9):.1f} a second; "
            f"{self.readings} readings landed, {self.results} results; faults: {kinds}"
        )
