"""Evaluates a rule on the states of one view, given in `processing_order`: by runs, or over windows.

    RunEvaluation      DEFINITELY: for each alternative of the predicate its `RunChoices`
    WindowEvaluation   POSSIBLY and DEFINITELY IN WINDOW: the lattice of the windows, or for a conjunction the detector

A verdict over windows is emitted when a holding period begins: at a state after which the predicate holds and before
which it did not. As the order depends only on the states, so do the periods.
"""

import base64
import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from whenabouts_cloud.latwin.conjunction.detector import ConjunctionDetector
from whenabouts_cloud.latwin.model import predicate as tree
from whenabouts_cloud.latwin.model.layout import CLOCK, FOREVER, HEAD, NEVER
from whenabouts_cloud.latwin.shard.occurrence import Occurrence, Witness
from whenabouts_cloud.latwin.shard.report import Report, columns_of
from whenabouts_cloud.latwin.shard.run_choices import Lasted, RunChoices
from whenabouts_cloud.latwin.windows.lattice import LatWin
from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_cloud.rules.state_predicate import (
    AllOf,
    AnyOf,
    AtLeast,
    Not,
    Predicate,
    Scalar,
    Test,
    Value,
    streams_of,
    test,
)

MAX_KNOWN = 4096  # values whose test results are cached; beyond, the least recently used are dropped


class Part(NamedTuple):
    """One alternative of a predicate: its processes, the longest stamps that their streams declare, its local tests."""

    slots: tuple[int, ...]
    lengths_us: tuple[int, ...]
    tests: dict[int, Test]


class WatchPlan:
    """A rule with everything that all its groups share."""

    def __init__(self, rule: LatwinRule) -> None:
        slot = {stream.name: n for n, stream in enumerate(rule.streams)}
        lengths = [0 if s.length_us is None else s.length_us[1] for s in rule.streams]
        self.rule = rule
        self.columns = columns_of(rule)
        self.engine = rule.engine
        self.holds = test(rule.predicate)
        self.parts = []
        for part in rule.alternatives or []:
            slots = tuple(sorted(slot[name] for name in part))
            tests = {slot[name]: test(one) for name, one in part.items()}
            self.parts.append(Part(slots, tuple(lengths[n] for n in slots), tests))
        # True if the local predicate of a process holds with these values, by the number of the part. Values repeat.
        self.true = functools.lru_cache(MAX_KNOWN)(self._true)

    def watch(self) -> "Watch":
        """The evaluation of the rule for one view."""
        return RunEvaluation(self) if self.engine == "runs" else WindowEvaluation(self)

    def values(self, slot: int, values: tuple[Scalar, ...]) -> dict[Value, Scalar]:
        """The values of a report of a process by name."""
        return dict(zip(self.columns[slot], values, strict=True))

    def _true(self, part: int, slot: int, values: tuple[Scalar, ...]) -> bool:
        return self.parts[part].tests[slot](self.values(slot, values))


class RunEvaluation:
    """The alternatives of a rule, each evaluated by its runs."""

    def __init__(self, plan: WatchPlan) -> None:
        self._plan = plan
        self._parts = [RunChoices(part.slots, part.lengths_us, plan.rule.causal) for part in plan.parts]

    def take(self, report: Report) -> list[Occurrence]:
        """Processes the next report; returns the verdicts that it made certain."""
        verdicts: list[Occurrence] = []
        for n, runs in enumerate(self._parts):
            if report.slot in runs.place:
                verdicts += runs.take(report, self._plan.true(n, report.slot, report.values))
        return verdicts

    def cut(self, slot: int, following: int) -> None:
        """Notes that states of a process before number `following` are missing."""
        for part in self._parts:
            part.cut(slot)

    def due_us(self, after_us: int) -> int:
        """The least place in the order, after this one, at which time decides something."""
        return min(part.due_us(after_us) for part in self._parts)

    @property
    def waits(self) -> bool:
        """True if time may still decide something."""
        return any(part.waits for part in self._parts)

    def pass_time(self, now_us: int, lasted: Lasted) -> list[Occurrence]:
        """Returns the verdicts certain when the order has reached `now_us`."""
        return [verdict for part in self._parts for verdict in part.pass_time(now_us, lasted)]

    def take_counts(self) -> Counter[str]:
        """The counts since the last call."""
        counts: Counter[str] = Counter()
        for part in self._parts:
            counts += part.counts
            part.counts.clear()
        return counts

    def snapshot(self) -> Any:
        """Returns the state as JSON values."""
        return [part.snapshot() for part in self._parts]

    def restore(self, state: Any) -> None:
        """Continues from a snapshot."""
        for part, one in zip(self._parts, state, strict=True):
            part.restore(one)


class WindowState(NamedTuple):
    """A state in a window: its witness and its values."""

    state: Witness
    values: tuple[Scalar, ...]


class WindowEvaluation:
    """The windows of a rule; remembers whether its predicate holds over them."""

    waits = False  # time decides nothing: nothing here waits for the end of a state

    def __init__(self, plan: WatchPlan) -> None:
        rule = plan.rule
        self._plan = plan
        self._definite = rule.modality == "definitely"
        order = "causal" if rule.causal else "hybrid"
        self._tests = plan.parts[0].tests if plan.engine == "conjunction" else None
        engine = LatWin if self._tests is None else ConjunctionDetector
        self._engine: Any = engine(len(rule.streams), list(rule.windows), order)
        self._held: list[dict[int, WindowState]] = [{} for _ in rule.streams]
        self._predicate = self._tree(rule.predicate)
        self._on = False

    def take(self, report: Report) -> list[Occurrence]:
        """Processes the next report; returns the holding period that begins with it, if any."""
        if report.is_heartbeat:
            return []
        held, slot = self._held[report.slot], report.slot
        held[report.number] = WindowState(Witness.of(report), report.values)
        if len(held) > self._plan.rule.windows[slot]:
            del held[min(held)]
        lo, hi = (report.lo, report.hi) if report.timed else (NEVER, FOREVER)
        if self._tests is None:
            self._engine.push(slot, report.number, report.clock, lo, hi)
            holds = self._engine.definitely_in_window if self._definite else self._engine.possibly
            on = bool(holds(self._predicate))
        else:
            true = self._plan.true(0, slot, report.values)
            v = self._engine.push(slot, report.number, report.clock, true, lo, hi)
            on = bool(v.definitely_in_window if self._definite else v.possibly)
        began, self._on = on and not self._on, on
        return [Occurrence(self._witness(), (slot, report.number))] if began else []

    def cut(self, slot: int, following: int) -> None:
        """Restarts the window of a process at number `following`, since states before it are missing."""
        self._engine.renew(slot, following)
        self._held[slot].clear()
        self._on = False

    def due_us(self, after_us: int) -> int:
        """Returns FOREVER: time decides nothing."""
        return FOREVER

    def take_counts(self) -> Counter[str]:
        """Returns no counts."""
        return Counter()

    def pass_time(self, now_us: int, lasted: Lasted) -> list[Occurrence]:
        """Returns nothing: only states change a window."""
        return []

    def snapshot(self) -> Any:
        """Returns the state as JSON values: the ring, and the readings and values of the states in it."""
        held = [[[*x.state[1:5], x.state.t_max - x.state.t_min, *x.values] for x in one.values()] for one in self._held]
        return [base64.b85encode(self._engine.snapshot()).decode(), held, self._on]

    def restore(self, state: Any) -> None:
        """Continues from a snapshot."""
        ring, held, self._on = state
        self._engine.restore(base64.b85decode(ring))
        self._held = [{row[0]: _window_state(slot, *row) for row in rows} for slot, rows in enumerate(held)]

    def _tree(self, predicate: Predicate, wanted: bool = True) -> tree.Predicate:
        """The predicate, or its negation, as the lattice evaluates it.

        Leaves are called once for each state, or combination of states. NOT moves down to them, where an unknown value
        makes neither a comparison nor its negation hold.
        """
        slots = [n for n, s in enumerate(self._plan.rule.streams) if s.name in streams_of(predicate)]
        match predicate:
            case Not(part) if len(slots) > 1:
                return self._tree(part, not wanted)
            case AllOf(parts) | AnyOf(parts) if len(slots) > 1:
                every = tree.All if isinstance(predicate, AllOf) == wanted else tree.Any
                return every(*(self._tree(part, wanted) for part in parts))
            case AtLeast(count, parts) if len(slots) > 1:
                needed = count if wanted else len(parts) - count + 1
                return tree.AtLeast(needed, [self._tree(part, wanted) for part in parts])
        holds = test(predicate if wanted else Not(predicate))

        def related(*numbers: int) -> bool:
            values: dict[Value, Scalar] = {}
            for slot, number in zip(slots, numbers, strict=True):
                values |= self._plan.values(slot, self._held[slot][int(number)].values)
            return holds(values)

        return tree.Related(slots, related)

    def _satisfied(self, states: tuple[int, ...]) -> bool:
        """True if the predicate holds in a global state."""
        values: dict[Value, Scalar] = {}
        for slot, (held, number) in enumerate(zip(self._held, states, strict=True)):
            values |= self._plan.values(slot, held[int(number)].values)
        return self._plan.holds(values)

    def _witness(self) -> tuple[Witness, ...]:
        """The least consistent global state in the windows that satisfies the predicate, in lexicographic order."""
        states = next(states for states in self._consistent(()) if self._satisfied(states))
        return tuple(held[number].state for held, number in zip(self._held, states, strict=True))

    def _consistent(self, begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """The consistent global states that begin with these states."""
        slot = len(begun)
        if slot == len(self._held):
            yield begun
            return
        clocks = [self._clock(n, number) for n, number in enumerate(begun)]
        for number in sorted(self._held[slot]):
            if self._tests is not None and not self._tests[slot](
                self._plan.values(slot, self._held[slot][number].values)
            ):
                continue
            clock = self._clock(slot, number)
            if all(known[slot] <= number and clock[n] <= begun[n] for n, known in enumerate(clocks)):
                yield from self._consistent((*begun, number))

    def _clock(self, slot: int, number: int) -> Any:
        """The effective clock of a state in a window."""
        ring = self._engine.ring
        return ring.window[slot, number % ring.heads[slot, HEAD.width], CLOCK:]


Watch = RunEvaluation | WindowEvaluation


def _window_state(
    slot: int, number: int, boot: int, seq: int, t_min: int, length_us: int, *values: Scalar
) -> WindowState:
    return WindowState(Witness(slot, number, boot, seq, t_min, t_min + length_us), values)


def report_of(row: Any) -> Report:
    """A report from JSON values."""
    slot, number, clock, lo, hi, is_heartbeat, boot, seq, t_min, t_max, values, is_earlier = row
    return Report(slot, number, tuple(clock), lo, hi, is_heartbeat, boot, seq, t_min, t_max, tuple(values), is_earlier)
