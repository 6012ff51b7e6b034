"""Verdicts about a group, each with its witnesses: one state of each process that takes part."""

from typing import Any, NamedTuple

from whenabouts_cloud.latwin.shard.report import Report


class Witness(NamedTuple):
    """A state of a process in a verdict: its number, the reading that reported it, and its stamp."""

    slot: int
    number: int
    boot: int
    seq: int
    t_min: int
    t_max: int

    @classmethod
    def of(cls, report: Report) -> "Witness":
        """The witness of a report's state."""
        return cls(report.slot, report.number, report.boot, report.seq, report.t_min, report.t_max)


class Occurrence(NamedTuple):
    """A verdict: by runs, the first states of the runs; over windows, a global state that satisfies the predicate.

    `since`, over windows, is the state (process, number) with which the predicate came to hold: windows can show the
    same global state again in a later period.
    """

    states: tuple[Witness, ...]
    since: tuple[int, int] | None = None

    @classmethod
    def restored(cls, state: Any) -> "Occurrence":
        """The verdict from JSON values."""
        states, since = state
        return cls(tuple(Witness(*one) for one in states), None if since is None else (since[0], since[1]))
