"""The matches of a plan, and the moments at which each may be emitted, straight from the definition. Slow and obvious.

All tuples of distinct events are tried, only those of one key if the plan is per key. Mode "certain" only; on points it is
ordinary strict time order. Indices are positions in the order of arrival. A moment is one event, one advance of the
frontier, or the end; frontiers are recomputed after each moment from all events and advances so far. A frontier is None
before the first watermark, infinity at the end.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from whenabouts_cloud.pattern.plan import NEGATED, Alternative, Negation, Plan, Program

Row = tuple[int, ...]


class Event(NamedTuple):
    """One occurrence; attributes in the order of the plan's."""

    type_code: int
    key: int
    t: int
    t_max: int
    source: int = 0
    attributes: tuple[float, ...] = ()


@dataclass(frozen=True)
class Case:
    """A plan and the input of its engine: `advances` are (number of events before it, frontier), `cuts` batch borders."""

    plan: Plan
    type_count: int
    events: tuple[Event, ...]
    order: str = "kbound"
    k: int = 0
    sources: tuple[int, ...] | None = None
    advances: tuple[tuple[int, int | dict[int, int]], ...] = ()
    cuts: tuple[int, ...] = ()


class Moment(NamedTuple):
    """`event`: index of the event that came, -1 for an advance or the end; `fed`: number of events so far, including it."""

    event: int
    fed: int
    frontier: float | None
    late: bool


class Match(NamedTuple):
    """Positives that satisfy order, window and conditions; `violators` are the events that a negation forbids."""

    row: Row
    chosen: tuple[int, ...]
    violators: frozenset[int]
    alternative: Alternative


def evaluate(program: Program, read: Callable[[int, int], float]) -> bool:
    """True if the condition holds; `read` gives a column of an element. Division is IEEE's, nan compares as false."""
    binary = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
        "=": lambda a, b: a == b,
        "!=": lambda a, b: a != b and not (np.isnan(a) or np.isnan(b)),
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
        "and": lambda a, b: a != 0 and b != 0,
        "or": lambda a, b: a != 0 or b != 0,
    }
    stack: list[np.float64] = []
    with np.errstate(all="ignore"):
        for step in program:
            if step.op == "attribute":
                value = read(step.element, step.column)
            elif step.op == "constant":
                value = step.value
            elif step.op == "negate":
                value = -stack.pop()
            elif step.op == "not":
                value = stack.pop() == 0
            else:
                b, a = stack.pop(), stack.pop()
                value = binary[step.op](a, b)
            stack.append(np.float64(value))
    (result,) = stack
    return bool(result != 0)


def is_of(plan: Plan, event_class: int, event: Event) -> bool:
    """True if the event satisfies the class."""
    wanted = plan.classes[event_class]
    return event.type_code in wanted.types and (
        not wanted.condition or evaluate(wanted.condition, lambda _, column: event.attributes[column])
    )


def candidates(plan: Plan, events: Sequence[Event], taken: Sequence[int]) -> list[Match]:
    """Every tuple of distinct events among those taken that satisfies all but the negations, with its violators."""
    matches = []
    for alternative in plan.alternatives:
        choices = [[i for i in taken if is_of(plan, c, events[i])] for c in alternative.classes]
        for chosen in _tuples(plan, events, choices):
            if _fits(plan, alternative, [events[i] for i in chosen], chosen):
                row = [-1] * plan.width
                for column, i in zip(alternative.columns, chosen, strict=True):
                    row[column] = i
                violators = frozenset(
                    x
                    for n in alternative.negations
                    for x in taken
                    if x not in chosen and _forbids(plan, n, events, chosen, x)
                )
                matches.append(Match(tuple(row), chosen, violators, alternative))
    return matches


def _tuples(plan: Plan, events: Sequence[Event], choices: list[list[int]]) -> Iterator[tuple[int, ...]]:
    """One event of each class, all of one key if the plan is per key."""
    if not plan.per_key:
        yield from itertools.product(*choices)
        return
    for key in {events[i].key for i in choices[0]}:
        yield from itertools.product(*([i for i in some if events[i].key == key] for some in choices))


def _fits(plan: Plan, alternative: Alternative, events: list[Event], chosen: tuple[int, ...]) -> bool:
    """True if the events are distinct, in order and within the window, and all conditions hold."""
    return (
        len(set(chosen)) == len(chosen)
        and all(
            events[j].t_max < events[i].t
            for i, before in enumerate(alternative.before)
            for j in range(len(events))
            if before >> j & 1
        )
        and _is_within(plan, events)
        and all(evaluate(p, lambda e, c: events[e].attributes[c]) for p in alternative.conditions)
    )


def _is_within(plan: Plan, events: list[Event]) -> bool:
    apart = [x.t_max - y.t for i, x in enumerate(events) for j, y in enumerate(events) if i != j]
    span = max(apart, default=0)  # the longest between any two for any choice of times; 0 for a single event
    return span < plan.window if plan.strict_window else span <= plan.window


def _forbids(plan: Plan, negation: Negation, events: Sequence[Event], chosen: tuple[int, ...], x: int) -> bool:
    """True if event x, not one of the chosen, violates the negation: some choice of all times puts it in the gap."""
    event, positives = events[x], [events[i] for i in chosen]

    def read(element: int, column: int) -> float:
        return (event if element == NEGATED else positives[element]).attributes[column]

    return (
        is_of(plan, negation.event_class, event)
        and (not plan.per_key or event.key == positives[0].key)
        and not _harmless(plan, negation, positives, event)
        and (not negation.condition or evaluate(negation.condition, read))
    )


def _harmless(plan: Plan, negation: Negation, positives: list[Event], x: Event) -> bool:
    left, right = _sides(negation, positives)
    earliest = max(e.t for e in positives) - plan.window
    latest = min(e.t_max for e in positives) + plan.window
    if left:
        before = x.t_max <= max(e.t for e in left)
    else:
        before = x.t_max <= earliest if plan.strict_window else x.t_max < earliest
    if right:
        after = x.t >= min(e.t_max for e in right)
    else:
        after = x.t >= latest if plan.strict_window else x.t > latest
    return before or after


def _sides(negation: Negation, positives: list[Event]) -> tuple[list[Event], list[Event]]:
    left, right = ([e for i, e in enumerate(positives) if mask >> i & 1] for mask in (negation.left, negation.right))
    return left, right


def finalized(plan: Plan, match: Match, events: Sequence[Event], frontier: float | None) -> bool:
    """True if no event that may still come (t_max >= frontier, not longer than plan.longest) can violate the match."""
    positives = [events[i] for i in match.chosen]
    for negation in match.alternative.negations:
        _, right = _sides(negation, positives)
        if frontier is None:
            return False
        if right:
            closed = frontier - plan.longest >= min(e.t_max for e in right)
        else:
            end = min(e.t_max for e in positives) + plan.window
            closed = frontier - plan.longest >= end if plan.strict_window else frontier - plan.longest > end
        if not closed:
            return False
    return True


def moments(case: Case) -> list[Moment]:
    """All moments in order, the end last."""
    emitted: list[Moment] = []
    frontier: float | None = None
    for fed in range(len(case.events) + 1):
        if fed:
            late = frontier is not None and case.events[fed - 1].t_max < frontier
            beaten = [watermark for after, watermark in case.advances if after < fed]
            frontier = _later(frontier, _watermarked(case, fed, beaten))
            emitted.append(Moment(fed - 1, fed, frontier, late))
        for n, (after, watermark) in enumerate(case.advances):
            if after == fed:
                beaten = [p for _, p in case.advances[: n + 1]]
                frontier = _later(
                    frontier, watermark if isinstance(watermark, int) else _watermarked(case, fed, beaten)
                )
                emitted.append(Moment(-1, fed, frontier, False))
    return [*emitted, Moment(-1, len(case.events), math.inf, False)]


def _later(a: float | None, b: float | None) -> float | None:
    """The later of two frontiers: a frontier never falls."""
    return b if a is None else a if b is None else max(a, b)


def _watermarked(case: Case, fed: int, advances: list[int | dict[int, int]]) -> float | None:
    """The frontier by the events and heartbeats so far; None while a source that was named has sent nothing."""
    arrived = case.events[:fed]
    if case.order == "kbound":
        return max(e.t_max for e in arrived) - case.k if arrived else None
    said = [(e.source, e.t_max) for e in arrived]
    said += [pair for watermark in advances if isinstance(watermark, dict) for pair in watermark.items()]
    sources = set(case.sources if case.sources is not None else ()) | {source for source, _ in said}
    latest = [max((t for s, t in said if s == source), default=None) for source in sources]
    return None if not latest or None in latest else min(t for t in latest if t is not None)


def accepted(case: Case) -> list[int]:
    """The events that are not late, and so take part."""
    return [m.event for m in moments(case) if m.event >= 0 and not m.late]


def final(case: Case) -> set[Row]:
    """The matches of all accepted events."""
    matches = candidates(case.plan, case.events, accepted(case))
    return set(_selected(case, [m for m in matches if not m.violators]))


def emitted_sure(case: Case) -> dict[Row, int]:
    """Each match with the first moment (its index in `moments`) at which it is complete and nothing can change it.

    With an after-match skip, no match that starts earlier, or as early, may come any more either.
    """
    matches = candidates(case.plan, case.events, accepted(case))
    kept = {m.row: m for m in matches if not m.violators}
    is_open = any(not n.right for v in case.plan.alternatives for n in v.negations)
    wait = case.plan.window + case.plan.longest * (2 if is_open else 1)
    emitted, every = {}, moments(case)
    for row in _selected(case, list(kept.values())):
        match = kept[row]
        start = case.events[_sequence(row)[0]].t
        emitted[row] = next(
            place
            for place, moment in enumerate(every)
            if max(match.chosen) < moment.fed
            and finalized(case.plan, match, case.events, moment.frontier)
            and (case.plan.skip == "none" or (moment.frontier is not None and moment.frontier > start + wait))
        )
    return emitted


def emitted_behind_slack(case: Case) -> dict[Row, int]:
    """Each match with the moment at which an in-order engine behind a K-slack buffer emits it: its last event is released.

    Points only. Leading and inner negations are final by then; trailing ones wait for the end of their window.
    """
    emitted, every = {}, moments(case)
    for row, match in _unviolated(case).items():
        last = max(case.events[i].t for i in match.chosen)
        emitted[row] = next(
            place
            for place, moment in enumerate(every)
            if max(match.chosen) < moment.fed
            and moment.frontier is not None
            and moment.frontier >= last
            and finalized(case.plan, match, case.events, moment.frontier)
        )
    return emitted


def emitted_by_punctuation(case: Case, pog_every: int) -> dict[Row, int]:
    """As `emitted_sure`, but the frontier is only known at every pog_every-th event, at advances and at the end."""
    emitted, every = {}, moments(case)
    for row, match in _unviolated(case).items():
        known: float | None = None
        for place, moment in enumerate(every):
            if moment.event < 0 or moment.fed % pog_every == 0:
                known = moment.frontier
            if max(match.chosen) < moment.fed and finalized(case.plan, match, case.events, known):
                emitted[row] = place
                break
    return emitted


def _unviolated(case: Case) -> dict[Row, Match]:
    matches = candidates(case.plan, case.events, accepted(case))
    return {m.row: m for m in matches if not m.violators}


def folds(case: Case) -> list[set[Row]]:
    """For every moment the matches that are complete and not violated by the events so far."""
    taken = set(accepted(case))
    matches = candidates(case.plan, case.events, sorted(taken))
    return [
        {m.row for m in matches if max(m.chosen) < moment.fed and not any(x < moment.fed for x in m.violators)}
        for moment in moments(case)
    ]


def late_effects(case: Case, late: int) -> dict[str, set[Row]]:
    """The matches that a late event adds to and removes from those of the events accepted before it came.

    Only certain effects: matches of events that are still held, t_max >= frontier - longest - window (two windows for a
    plan with a leading negation), and none with a gap that begins before that.
    """
    place = next(n for n, m in enumerate(moments(case)) if m.event == late)
    before = moments(case)[place - 1].frontier
    assert before is not None
    taken = [i for i in accepted(case) if i < late]
    leading = any(not n.left for v in case.plan.alternatives for n in v.negations)
    oldest = before - case.plan.longest - case.plan.window * (2 if leading else 1)
    held = {i for i in taken if case.events[i].t_max >= oldest} | {late}
    matches = [
        m
        for m in candidates(case.plan, case.events, [*taken, late])
        if held.issuperset(m.chosen) and all(start >= oldest for start in _gap_starts(case, m))
    ]
    return {
        "added": {m.row for m in matches if late in m.chosen and not m.violators},
        "removed": {m.row for m in matches if m.violators == {late}},
    }


def _gap_starts(case: Case, match: Match) -> list[float]:
    """For each negation the least t_max of an event that may lie in its gap."""
    positives = [case.events[i] for i in match.chosen]
    lead = case.plan.window - (1 if case.plan.strict_window else 0)
    return [
        max(e.t for e in left) + 1 if (left := _sides(n, positives)[0]) else max(e.t for e in positives) - lead
        for n in match.alternative.negations
    ]


def _sequence(row: Row) -> list[int]:
    """The events of a match in the order of its columns."""
    return [i for i in row if i >= 0]


def _selected(case: Case, matches: list[Match]) -> list[Row]:
    """The matches that the after-match skip leaves, in the order of their (t, t_max, index) from the first positive on.

    Of the same events in different columns, as alternatives may have them, those in the earlier columns come first.
    """
    events, rows = case.events, {m.row for m in matches}
    ordered = sorted(
        rows, key=lambda row: ([(events[i].t, events[i].t_max, i) for i in _sequence(row)], [i < 0 for i in row])
    )
    if case.plan.skip == "none":
        return ordered
    kept: list[Row] = []
    for row in ordered:
        first = _sequence(row)[0]
        if case.plan.skip == "to_next":
            taken = any(_sequence(other)[0] == first for other in kept)
        else:
            same_key = [o for o in kept if not case.plan.per_key or events[_sequence(o)[0]].key == events[first].key]
            taken = bool(same_key) and events[first].t <= events[_sequence(same_key[-1])[-1]].t_max
        if not taken:
            kept.append(row)
    return kept
