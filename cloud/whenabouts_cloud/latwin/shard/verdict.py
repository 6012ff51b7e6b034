"""What a watcher of a group tells: a verdict with its witness, one state of each process that takes part."""

from typing import Any, NamedTuple

from whenabouts_cloud.latwin.shard.report import Report


class Witness(NamedTuple):
    """A state of a process, as it is told: the number, the reading that told of it and its stamp."""

    slot: int
    number: int
    boot: int
    seq: int
    t_min: int
    t_max: int

    @classmethod
    def of(cls, report: Report) -> "Witness":
        """The state of a report."""
        return cls(report.slot, report.number, report.boot, report.seq, report.t_min, report.t_max)


class Occurrence(NamedTuple):
    """Of a verdict about runs the first state of each; of one about windows a global state that satisfies, and with which
    state (process, number) it came to hold: windows can show the same global state again in a later period."""

    states: tuple[Witness, ...]
    since: tuple[int, int] | None = None

    @classmethod
    def restored(cls, state: Any) -> "Occurrence":
        """From JSON values."""
        states, since = state
        return cls(tuple(Witness(*one) for one in states), None if since is None else (since[0], since[1]))
