"""DEFINITELY of a conjunction, decided by runs of true states: never wrong, and a function of the set of states.

A run is a block of consecutive states of one process in which its local predicate holds. Runs, one of each process,
certainly held together at some moment if each began before the end of every other one (Garg and Waldecker, Detection of
Strong Unstable Predicates, 1996; no lattice is needed). Here "began before" is

    begin b of process i before e     the clock of e knows b, or the latest time of b is before the earliest of e

and e proves the end of a run: the state after it, or, while it goes on, a state or clock heartbeat inside it, or the
watermark of its gateway. (Entry 0 of a clock proves nothing: a member that has not begun its first state in the view
has it too.) Verdicts are all such choices of runs. They do not depend on windows: a checker that forgets runs
when its window has slid past them finds only those that its order of arrival allows.

One pass finds all, over the states in any order that extends the known one (`processing_order`), and stores little: in that
order the starts of such runs come before all their ends, so when the last run starts, the others have started and not
ended. That choice is recorded. It is emitted when for each process the end is known to be after the other starts, and
dropped when an end arrives that is not.

A watermark takes effect at a place in the order, not on arrival, so that any order of arrival has the same result: a
choice is checked when the order has reached K = 1 + the latest start + the longest stamp. If the watermark of a gateway's
boot is K or later, everything of that boot that has not landed happened after the latest start: no agent lets its watermark
pass the earliest moment of a state that it may still report. A later boot's watermark
does not show that: an end that was not stored before the agent was killed never lands. A gateway whose run's next state
has landed is judged by that state if it has hi < K, and by its lo if its stamp is longer than any before.

Cost: O(n) per report, O(n^2) per start. At most MAX_OPEN choices wait; beyond, the oldest is dropped and counted.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from whenabouts_cloud.frontier.times import FURTHEST_US, NEVER_US
from whenabouts_cloud.latwin.shard.occurrence import Occurrence, Witness
from whenabouts_cloud.latwin.shard.report import Report

MAX_OPEN = 64  # choices of runs, of one conjunction, that wait for their ends

Lasted = Callable[[int, int, int], bool]
"""True if everything of a process (slot) and its boot with hi < K (second) has landed and has been processed, and nothing
else of it that has landed may have begun at the latest start (third) or before.
"""


class Run(NamedTuple):
    """The start of a run: its first state, and the latest time at which that can have begun."""

    begin: Witness
    hi: int


class Choice(NamedTuple):
    """A run of each process, in slot order; the processes whose end is known to be late enough; when time decides."""

    runs: tuple[Run, ...]
    known: tuple[bool, ...]
    due_us: int


class RunChoices:
    """One conjunction over some processes of a rule, given by their slots; reports arrive in `processing_order`.

    `lengths_us` are the longest stamps that the rule declares for their streams; longer ones that arrive count as well.
    """

    def __init__(self, slots: tuple[int, ...], lengths_us: tuple[int, ...], causal: bool) -> None:
        self._slots = slots
        self.place = {slot: n for n, slot in enumerate(slots)}
        self._causal = causal
        self._runs: list[Run | None] = [None] * len(slots)
        self._lo = [NEVER_US] * len(slots)
        self._wide = list(lengths_us)
        self._open: list[Choice] = []
        self.counts: Counter[str] = Counter()

    def take(self, report: Report, holds: bool) -> list[Occurrence]:
        """Processes the next report; `holds`: its local predicate is true. Returns the verdicts that it made certain."""
        place = self.place.get(report.slot)
        if place is None:
            return []
        if report.timed and not self._causal:
            self._lo[place] = max(self._lo[place], report.lo)
            self._wide[place] = max(self._wide[place], report.hi - report.lo)
        run = self._runs[place]
        verdicts = (
            []
            if run is None or not self._open
            else self._check_end(place, run, report, over=not holds and not report.is_heartbeat)
        )
        if report.is_heartbeat:
            return verdicts
        if not holds:
            self._runs[place] = None
        elif run is None:
            self._runs[place] = Run(Witness.of(report), FURTHEST_US if self._causal else report.hi)
            verdicts += self._open_choice(place, report)
        return verdicts

    def cut(self, slot: int) -> None:
        """Notes that states of a process are missing: whether its run went on will never be known."""
        place = self.place.get(slot)
        if place is None or self._runs[place] is None:
            return
        run, self._runs[place] = self._runs[place], None
        self._open = [choice for choice in self._open if choice.runs[place] != run or choice.known[place]]

    def due_us(self, after_us: int) -> int:
        """The least place in the order, after this one, at which time decides something; FURTHEST_US if there is none."""
        return min((choice.due_us for choice in self._open if choice.due_us > after_us), default=FURTHEST_US)

    def pass_time(self, now_us: int, lasted: Lasted) -> list[Occurrence]:
        """Returns the verdicts certain once the order is at `now_us`. A choice that waits for a silent gateway stays due."""
        verdicts: list[Occurrence] = []
        kept = []
        for choice in self._open:
            if choice.due_us > now_us:
                kept.append(choice)
                continue
            due, start = choice.due_us, max(run.hi for run in choice.runs)
            known = tuple(
                is_known or (self._runs[place] == choice.runs[place] and lasted(slot, due, start))
                for place, (slot, is_known) in enumerate(zip(self._slots, choice.known, strict=True))
            )
            if all(known):
                verdicts.append(_verdict(choice.runs))
            else:
                kept.append(choice._replace(known=known))
        self._open = kept
        return verdicts

    @property
    def waits(self) -> bool:
        """True if a choice is open."""
        return bool(self._open)

    def snapshot(self) -> list[Any]:
        """Returns the state as JSON values."""
        return [self._runs, self._lo, self._wide, self._open]

    def restore(self, state: list[Any]) -> None:
        """Continues from a snapshot."""
        runs, self._lo, self._wide, choices = state
        self._runs = [None if run is None else _run(run) for run in runs]
        self._lo, self._wide = list(self._lo), list(self._wide)
        self._open = [Choice(tuple(map(_run, runs)), tuple(known), due) for runs, known, due in choices]

    def _check_end(self, place: int, run: Run, report: Report, over: bool) -> list[Occurrence]:
        """Processes a report of a process inside its run, or the state after it (`over`)."""
        verdicts: list[Occurrence] = []
        kept = []
        for choice in self._open:
            if choice.runs[place] != run or choice.known[place]:
                kept.append(choice)
            elif self._others_began_before(place, choice.runs, report):
                known = tuple(is_known or n == place for n, is_known in enumerate(choice.known))
                if all(known):
                    verdicts.append(_verdict(choice.runs))
                else:
                    kept.append(choice._replace(known=known))
            elif not over:
                kept.append(choice)
        self._open = kept
        return verdicts

    def _open_choice(self, place: int, report: Report) -> list[Occurrence]:
        """Records the choice that a run which has just begun may form with those of the others."""
        runs = tuple(run for run in self._runs if run is not None)
        if len(runs) < len(self._runs):
            return []
        known = tuple(n == place and self._others_began_before(place, runs, report) for n in range(len(runs)))
        if all(known):
            return [_verdict(runs)]
        latest = max(run.hi for run in runs)
        due = FURTHEST_US if latest >= FURTHEST_US else latest + max(self._wide) + 1
        self._open.append(Choice(runs, known, due))
        if len(self._open) > MAX_OPEN:
            self._open.pop(0)
            self.counts["choices_forgotten"] += 1
        return []

    def _others_began_before(self, place: int, runs: tuple[Run, ...], report: Report) -> bool:
        """True if the runs of all other processes began before this report of process `at`."""
        lo = self._lo[place]
        return all(
            n == place or report.clock[run.begin.slot] >= max(run.begin.number, 1) or run.hi < lo
            for n, run in enumerate(runs)
        )


def _run(state: Any) -> Run:
    begin, hi = state
    return Run(Witness(*begin), hi)


def _verdict(runs: tuple[Run, ...]) -> Occurrence:
    return Occurrence(tuple(run.begin for run in runs))
