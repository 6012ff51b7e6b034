"""Explains why a pattern has no match around a time: how far it came, and what was missing or blocked it.

The question is about the *focus*, the event nearest to the time that could play an element. Of all ways to fill elements
with the focus and events around it, the explanation takes the one that lacks the fewest elements; of several, the one
nearest to a match. An event is used if it keeps order, window and conditions with the events used so far. For an element
without an event, the explanation names the event that fails by least, and its failures. If no element is lacking, it names
the events that the negations forbid.

The search goes from one element to the next with bounds. It stops after MAX_STEPS and reports this, since patterns with many
repetitions have too many ways. Only the MAX_EVENTS events nearest to the time are used. In CAUSAL, vector clocks decide
which of two events came first, or show that they are concurrent. A match that SKIP leaves out is shown as a match.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from whenabouts_cloud.cep.explain.explanation import (
    FAILURES,
    MAX_EVENTS,
    MAX_STEPS,
    Blocker,
    Element,
    Explanation,
    Seen,
    Verdict,
    duration,
)
from whenabouts_cloud.cep.kernel.conditions import of_columns
from whenabouts_cloud.cep.uncertain.causal import Clocks
from whenabouts_cloud.cep.uncertain.forbidden_events import Bools, harmless, outside_window
from whenabouts_cloud.cep.uncertain.order_ideals import Ints, ideals
from whenabouts_cloud.cep.uncertain.refine import Candidates, refine
from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.pattern.elements import Negated, leaves
from whenabouts_cloud.pattern.plan import NEGATED, Alternative, Negation, Plan, Program

MAX_TIES = 64  # most ways of equal length that are compared by what they lack


def why_not(
    pattern: Pattern, type_names: Sequence[str], events: Sequence[Seen], time_us: int, longest_us: int = 0,
    clocks: Clocks | None = None,
) -> Explanation:  # fmt: skip
    """Explain the events of one key, within at least two windows of the time; type codes are places in type_names.

    `clocks` are the clocks of the events, needed for CAUSAL.

    Raises:
        ValueError: the pattern does not fit the type names, or is CAUSAL and there are no clocks.
    """
    if pattern.mode == "causal" and clocks is None:
        raise ValueError("clocks: found none, expected those of the events, since the pattern is CAUSAL")

    def distance(n: int) -> tuple[int, int, int, str]:
        one = events[n]
        return max(one.t_min - time_us, time_us - one.t_max, 0), one.t_min, one.t_max, one.name

    near = sorted(range(len(events)), key=distance)
    left_out, near = max(0, len(near) - MAX_EVENTS), near[:MAX_EVENTS]
    own = clocks.take(near) if clocks is not None and pattern.mode == "causal" else None
    asked = _Question(pattern, type_names, [events[n] for n in near], longest_us, own)
    focus = next((e for e in asked.events if e.may_be_focus and asked.can_play(e)), None)
    if focus is None:
        return Explanation("nothing", time_us, None, (), (), None, left_out, True, tuple(asked.events))
    way = asked.nearest(focus)
    failures = [e.failure for e in way.elements if e.failure is not None]
    verdict = max(failures, key=FAILURES.index) if failures else way.verdict
    return Explanation(
        verdict,
        time_us,
        focus,
        way.elements,
        way.blockers,
        way.probability,
        left_out,
        asked.steps < MAX_STEPS,
        tuple(asked.events),
    )


@dataclass(frozen=True)
class _Attempt:
    """An attempt to fill the elements; a lesser rank is nearer to a match."""

    rank: tuple[int, ...]
    elements: tuple[Element, ...]
    blockers: tuple[Blocker, ...]
    verdict: Verdict
    probability: float | None


@dataclass(frozen=True)
class _Condition:
    """A condition as it was written, and the elements whose events it needs."""

    text: str
    program: Program
    attributes: tuple[str, ...]
    needs: frozenset[int]

    def holds(self, bound: Mapping[int, Seen]) -> bool:
        """True if the condition holds for these events; events of other elements do not matter."""
        names = {(s.element, self.attributes[s.column]) for s in self.program if s.op == "attribute"}
        columns = {name: np.array([_value(bound[name[0]], name[1])]) for name in names}
        steps = tuple(
            (s.op, 0, self._column(s.element, s.column) if s.op == "attribute" else None, s.value) for s in self.program
        )
        return bool(of_columns(steps, columns, np.zeros(1, np.int64))[0])  # type: ignore[arg-type]

    def _column(self, element: int, column: int) -> tuple[int, str]:
        return element, self.attributes[column]


class _Question:
    """A pattern, its plan, and the events; `before[i, j]`, with clocks, is True if event i came before event j."""

    def __init__(
        self, pattern: Pattern, type_names: Sequence[str], events: list[Seen], longest_us: int, clocks: Clocks | None
    ) -> None:
        self.pattern, self.plan, self.type_names = pattern, pattern.plan(type_names, longest_us), type_names
        self.events, self.steps, self.clocks = events, 0, clocks
        self.index = {event: n for n, event in enumerate(events)}
        self.before: Bools | None = None
        if clocks is not None:
            places = np.indices((len(events), len(events)))
            self.before = clocks.before(places[0], places[1])
        # A plan for each condition, so that a failing one can be named as it was written.
        single = [(one.text(), replace(pattern, where=(one,)).plan(type_names, longest_us)) for one in pattern.where]
        self.conditions = [list(_conditions(v, single)) for v in range(len(self.plan.alternatives))]

    def can_play(self, event: Seen) -> bool:
        """True if the event has the type of an element that is not negated."""
        return any(event.type_code in self.plan.classes[c].types for v in self.plan.alternatives for c in v.classes)

    def nearest(self, focus: Seen) -> _Attempt:
        """The nearest way of all alternatives."""
        ways = [way for v in range(len(self.plan.alternatives)) for way in _Search(self, v, focus).ways()]
        return min(ways, key=lambda way: way.rank)


class _Search:
    """All ways to fill the elements of one alternative around the focus, those with the fewest gaps first."""

    def __init__(self, question: _Question, number: int, focus: Seen) -> None:
        self.q, self.focus = question, focus
        self.alternative: Alternative = question.plan.alternatives[number]
        self.conditions = question.conditions[number]
        names = question.pattern.names
        self.names = [names[column] for column in self.alternative.columns]
        self.covers = () if question.before is None else ideals(self.alternative).covers
        self.playing = [[e for e in question.events if self._is_type(e, i)] for i in range(len(self.names))]
        self.most, self.best = 0, list[dict[int, Seen]]()

    def ways(self) -> Iterator[_Attempt]:
        """The ways that fill the most elements."""
        for place in range(len(self.names)):
            # A focus that fails its own conditions is not used, but reported.
            if self._is_type(self.focus, place):
                self._fill(0, {place: self.focus} if self._fits({}, place, self.focus) else {})
        for chosen in self.best:
            way = self._complete(chosen) if len(chosen) == len(self.names) else self._lacking(chosen)
            yield way
            if way.verdict == "match" and len(chosen) == len(self.names):
                return

    def _fill(self, place: int, chosen: dict[int, Seen]) -> bool:
        """Continues from an element; returns True if a match was found, which ends the search."""
        self.q.steps += 1
        rest = sum(i not in chosen and i >= place for i in range(len(self.names)))
        if len(chosen) + rest < self.most or (self.q.steps > MAX_STEPS and self.best):
            return False
        while place in chosen:
            place += 1
        if place == len(self.names):
            return self._note(dict(chosen))
        for event in self.playing[place]:
            if event not in chosen.values() and self._fits(chosen, place, event):
                chosen[place] = event
                done = self._fill(place + 1, chosen)
                del chosen[place]
                if done:
                    return True
        return self._fill(place + 1, chosen)

    def _note(self, chosen: dict[int, Seen]) -> bool:
        if len(chosen) > self.most:
            self.most, self.best = len(chosen), []
        if len(chosen) < self.most:
            return False
        if len(chosen) == len(self.names):
            way = self._complete(chosen)
            if way.verdict == "match" or not self.best or way.rank < self._complete(self.best[0]).rank:
                self.best = [chosen]
            return way.verdict == "match"
        if len(self.best) < MAX_TIES and chosen not in self.best:
            self.best.append(chosen)
        return False

    def _fits(self, chosen: Mapping[int, Seen], place: int, event: Seen) -> bool:
        return not any(True for _ in self._failures(chosen, place, event))

    def _failures(self, chosen: Mapping[int, Seen], place: int, event: Seen) -> Iterator[tuple[Verdict, int, str]]:
        """Reasons why an event cannot fill an element beside those chosen: (failure, by how much, text)."""
        for other, one in chosen.items():
            if self.alternative.before[other] >> place & 1:
                yield from self._disorder(place, event, other, one, self.names[other], "after")
            if self.alternative.before[place] >> other & 1:
                yield from self._disorder(other, one, place, event, self.names[other], "before")
        beyond = self._beyond([*chosen.values(), event])
        if beyond > 0:
            yield "window", beyond, f"is {duration(beyond)} beyond the window"
        bound = {**chosen, place: event}
        for condition in self.conditions:
            if place in condition.needs and condition.needs <= bound.keys() and not condition.holds(bound):
                yield "condition", 0, f"fails {condition.text}"

    def _disorder(
        self, earlier: int, first: Seen, later: int, then: Seen, other: str, word: str
    ) -> Iterator[tuple[Verdict, int, str]]:
        """Reasons why an event does not come before that of a later element; `word` is its position to the other."""
        if self.q.before is not None:
            x, y = self.q.index[first], self.q.index[then]
            if self.q.before[y, x]:
                yield "order", 0, f"is known to come {word} {other}"
            elif self.covers[later] >> earlier & 1 and not self.q.before[x, y]:
                yield "uncertain", 0, f"is concurrent with {other}"
        elif first.t_min == then.t_min == first.t_max == then.t_max:
            yield "uncertain", 0, f"comes at the same time as {other}"
        elif first.t_min >= then.t_max:
            yield "order", first.t_min - then.t_max, f"comes {word} {other}"
        elif self.q.plan.mode == "certain" and first.t_max >= then.t_min:
            by = first.t_max - then.t_min
            yield "uncertain", by, f"overlaps {other} by {duration(by)}, so which came first is not certain"

    def _beyond(self, events: Sequence[Seen]) -> int:
        """By how much events miss the window: certainly or, if the mode allows uncertainty, at the least."""
        if self.q.plan.mode == "certain":
            span = max(e.t_max for e in events) - min(e.t_min for e in events)
        else:
            span = max(0, max(e.t_min for e in events) - min(e.t_max for e in events))
        return span - self.q.plan.window + self.q.plan.strict_window

    def _is_type(self, event: Seen, place: int) -> bool:
        return event.type_code in self.q.plan.classes[self.alternative.classes[place]].types

    def _lacking(self, chosen: dict[int, Seen]) -> _Attempt:
        """A way that lacks elements, with the nearest event for each."""
        elements, rank, beyond = [], 0, 0
        for place, name in enumerate(self.names):
            if place in chosen:
                elements.append(Element(name, chosen[place], None, ""))
                continue
            others = [e for e in self.playing[place] if e not in chosen.values()]
            nearest = min((self._why(chosen, place, e) for e in others), default=None, key=lambda why: why[0])
            if nearest is None:
                elements.append(Element(name, None, "missing", "no such event", self._room(chosen, place)))
                rank, beyond = max(rank, FAILURES.index("missing")), 0
            else:
                (_, worst, _, by, _), event, text = nearest
                elements.append(Element(name, event, FAILURES[worst], text, self._room(chosen, place)))
                rank, beyond = max(rank, worst), beyond + by
        lacking = len(self.names) - len(chosen)
        without = int(self.focus not in chosen.values())
        return _Attempt((lacking, 0, rank, without, beyond, len(self.names)), tuple(elements), (), "missing", None)

    def _room(self, chosen: Mapping[int, Seen], place: int) -> tuple[int, int] | None:
        """Where an event for this place would have to lie; None if nothing bounds it."""
        if not chosen:
            return None
        plan, events = self.q.plan, chosen.values()
        certain = plan.mode == "certain"
        first = (max(e.t_max for e in events) if certain else max(e.t_min for e in events)) - plan.window
        last = (min(e.t_min for e in events) if certain else min(e.t_max for e in events)) + plan.window
        if self.q.before is None:  # else clocks decide the order, not stamps
            for other, one in chosen.items():
                if self.alternative.before[place] >> other & 1:
                    first = max(first, one.t_max if certain else one.t_min)
                if self.alternative.before[other] >> place & 1:
                    last = min(last, one.t_min if certain else one.t_max)
        return first, last

    def _why(
        self, chosen: Mapping[int, Seen], place: int, event: Seen
    ) -> tuple[tuple[int, int, int, int, int], Seen, str]:
        failures = sorted(self._failures(chosen, place, event), key=lambda f: (-FAILURES.index(f[0]), -f[1]))
        if not failures:  # only the limit of the search, or the focus that must be part of the way, excluded the event
            return (0, 0, 0, 0, event.t_min), event, "was not looked at"
        kinds = {kind for kind, _, _ in failures}
        worst = FAILURES.index(failures[0][0])
        texts = dict.fromkeys(text for _, _, text in failures)
        return (len(kinds), worst, len(texts), failures[0][1], event.t_min), event, " and ".join(texts)

    def _complete(self, chosen: Mapping[int, Seen]) -> _Attempt:
        """A way that lacks no element: a match, or the events that block it."""
        events = [chosen[place] for place in range(len(self.names))]
        plan, index = self.q.plan, self.q.index
        negated = [self._forbidden(n, events) for n in self.alternative.negations]
        t_min, t_max = (np.array([[getattr(e, side) for e in events]], np.int64) for side in ("t_min", "t_max"))
        ids = np.array([[index[e] for e in events]], np.int64)
        in_gaps = [_columns(forbidden, index) for forbidden in negated]
        candidate = Candidates(t_min, t_max, ids, in_gaps)
        keep, probability = refine(self.alternative, plan, candidate, self.q.clocks, exact=True)
        blockers = tuple(
            Blocker(self._label(n), x, self._where(n, events, x))
            for n, forbidden in zip(self.alternative.negations, negated, strict=True)
            for x in sorted(forbidden, key=lambda x: (x.t_min, x.t_max))
        )
        blockers = tuple(dict.fromkeys(blockers)) if not keep[0] else ()
        verdict: Verdict = "match" if keep[0] else ("blocked" if blockers and plan.mode != "over" else "improbable")
        elements = tuple(Element(name, e, None, "") for name, e in zip(self.names, events, strict=True))
        rank = (0, int(not keep[0]), len(blockers), 0, 0, len(self.names))
        return _Attempt(rank, elements, blockers, verdict, float(probability[0]) if plan.mode == "over" else None)

    def _forbidden(self, negation: Negation, events: list[Seen]) -> list[Seen]:
        """The events that a negation forbids, or that may lie in its gap."""
        plan = self.q.plan
        wanted = plan.classes[negation.event_class]
        of_class = _Condition("", wanted.condition, plan.attributes, frozenset())
        across = _Condition("", negation.condition, plan.attributes, frozenset())
        bound = dict(enumerate(events))
        forbidden = [
            x
            for x in self.q.events
            if x.type_code in wanted.types
            and x not in events
            and (not wanted.condition or of_class.holds({0: x}))
            and (not negation.condition or across.holds({**bound, NEGATED: x}))
        ]
        if not forbidden or self.q.before is not None:
            return [x for x in forbidden if self._in_causal_gap(negation, events, x)]
        t_min, t_max = (
            np.array([[getattr(e, side) for e in events]] * len(forbidden), np.int64) for side in ("t_min", "t_max")
        )
        x_min, x_max = (np.array([getattr(x, side) for x in forbidden], np.int64) for side in ("t_min", "t_max"))
        out = harmless(negation.left, negation.right, plan, t_min, t_max, x_min, x_max)
        return [x for x, harm in zip(forbidden, out, strict=True) if not harm]

    def _in_causal_gap(self, negation: Negation, events: list[Seen], x: Seen) -> bool:
        """True if x is known to come after all on the left and before all on the right; stamps decide the window."""
        assert self.q.before is not None
        at = [self.q.index[e] for e in events]
        left, right = ([at[n] for n in range(len(at)) if mask >> n & 1] for mask in (negation.left, negation.right))
        t_min, t_max = (np.array([[getattr(e, side) for e in events]], np.int64) for side in ("t_min", "t_max"))
        early, late = outside_window(self.q.plan, t_min, t_max, np.array([x.t_min]), np.array([x.t_max]))
        after = self.q.before[left, self.q.index[x]].all() if left else not early[0]
        before = self.q.before[self.q.index[x], right].all() if right else not late[0]
        return bool(after and before)

    def _label(self, negation: Negation) -> str:
        """The negated element as it was written, or the selection that implies it."""
        types = self.q.plan.classes[negation.event_class].types
        for leaf in leaves(self.q.pattern.root):
            if isinstance(leaf, Negated) and {self.q.type_names.index(name) for name in leaf.types} == types:
                return leaf.text()
        return self.q.pattern.select.upper()

    def _where(self, negation: Negation, events: list[Seen], x: Seen) -> str:
        left, right = ([n for n in range(len(events)) if mask >> n & 1] for mask in (negation.left, negation.right))
        surely = self.q.before is not None or (
            all(events[n].t_max < x.t_min for n in left) and all(x.t_max < events[n].t_min for n in right)
        )
        word = "lies" if surely else "may lie"
        after, before = (" and ".join(self.names[n] for n in side) for side in (left, right))
        if after and before:
            return f"{word} after {after} and before {before}"
        if after or before:
            return f"{word} within the window {f'after {after}' if after else f'before {before}'}"
        return f"{word} where the window could reach"


def _conditions(number: int, single: Sequence[tuple[str, Plan]]) -> Iterator[_Condition]:
    """The conditions on the positives of an alternative, from plans with one condition each."""
    for text, plan in single:
        alternative = plan.alternatives[number]
        for place, c in enumerate(alternative.classes):
            if plan.classes[c].condition:
                steps = tuple(replace(s, element=place) for s in plan.classes[c].condition)
                yield _Condition(text, steps, plan.attributes, frozenset([place]))
        for program in alternative.conditions:
            needs = frozenset(s.element for s in program if s.op == "attribute")
            yield _Condition(text, program, plan.attributes, needs)


def _columns(negated: list[Seen], index: Mapping[Seen, int]) -> tuple[Ints, Ints, Ints, Ints]:
    """Negated events of one candidate as `refine` takes them."""
    offsets = np.array([0, len(negated)], np.int64)
    rows = np.array([(x.t_min, x.t_max, index[x]) for x in negated], np.int64).reshape(-1, 3)
    return offsets, rows[:, 0], rows[:, 1], rows[:, 2]


def _value(event: Seen, column: str) -> float:
    if column in ("t_min", "t_max"):
        return float(getattr(event, column))
    return float("nan") if event.columns is None else event.columns.get(column, float("nan"))
