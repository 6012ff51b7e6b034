"""Matches of SEQ by its definition: every choice of events is tried, in an order and within the window.

CERTAIN: wherever in their stamps all events lie. POSSIBLE: for some choice of times. OVER: with a probability, known here of
two events without a gap. CAUSAL: vector clocks prove the order, and the window is possible. A repeated element is filled by
one event to as many as it allows. No forbidden event may lie between its neighbours; at an edge of the pattern it may not
lie within the window. NEXT forbids what could have been the next event, STRICT any event. SKIP leaves some of the matches.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import NamedTuple

from whenabouts_cloud.pattern.elements import Event, Negated, Seq
from whenabouts_cloud.rules.model import CepRule
from whenabouts_sim.chaos.checks.distance import in_order_probability
from whenabouts_sim.chaos.checks.landed import Id, LandedReading
from whenabouts_sim.chaos.checks.rules.causal_order import Places, happened_before

Chosen = tuple[LandedReading, ...]


class _Gap(NamedTuple):
    """Forbidden streams, and the numbers of the events before and behind them; None at an edge."""

    streams: frozenset[str]
    before: int | None
    behind: int | None


class _Case(NamedTuple):
    """A choice of events, each before the next, and for each gap the events in the streams that it forbids."""

    events: Chosen
    gaps: Sequence[tuple[_Gap, Sequence[LandedReading]]]
    window_us: int
    is_before: "_Before"


_Before = Callable[[LandedReading, LandedReading], bool]  # for CERTAIN and CAUSAL: it is; for POSSIBLE: it may be


def matches(rule: CepRule, readings: Iterable[LandedReading], places: Places) -> Iterator[Chosen]:
    """The matches among readings, whose stamps are moved by OFFSET. places: those of the readings in a group."""
    orders: dict[str, _Before] = {
        "certain": lambda x, y: x.t_max < y.t_min,
        "possible": lambda x, y: x.t_min < y.t_max,
        "over": lambda x, y: x.t_min < y.t_max,
        "causal": partial(happened_before, places),
    }
    is_before = orders[rule.pattern.mode]
    by_key: dict[str | None, dict[str, list[LandedReading]]] = {}
    for one in readings:
        by_key.setdefault(one.key, {}).setdefault(one.stream, []).append(one)
    for streams in by_key.values():
        yield from _left_by_skip(rule, list(_of_key(rule, streams, is_before)))


def has_gap_at_end(rule: CepRule) -> bool:
    """True if a forbidden element is the last one."""
    return isinstance(_parts(rule)[-1], Negated)


def has_gaps(rule: CepRule) -> bool:
    """True if anything is forbidden."""
    return rule.pattern.select != "any" or any(isinstance(one, Negated) for one in _parts(rule))


def _of_key(rule: CepRule, streams: Mapping[str, Sequence[LandedReading]], is_before: _Before) -> Iterator[Chosen]:
    over = partial(_is_over, rule.pattern.probability)
    holds: dict[str, Callable[[_Case], bool]] = {
        "certain": _is_certain,
        "possible": _is_possible,
        "over": over,
        "causal": _is_causal,
    }
    for groups in _choices(rule, streams, is_before):
        events = tuple(one for group in groups for one in group)
        gaps = [
            (gap, [one for name in gap.streams for one in streams.get(name, ()) if one not in events])
            for gap in _gaps(rule, [len(group) for group in groups])
        ]
        if holds[rule.pattern.mode](_Case(events, gaps, rule.pattern.window_us, is_before)):
            yield events


def _choices(
    rule: CepRule, streams: Mapping[str, Sequence[LandedReading]], is_before: _Before
) -> Iterator[tuple[Chosen, ...]]:
    """Events for each element, each before the next."""
    found: list[tuple[Chosen, ...]] = [()]
    for element in (one for one in _parts(rule) if isinstance(one, Event)):
        events = streams.get(_stream(element.types[0]), ())
        found = [
            (*groups, group)
            for groups in found
            for group in _runs(events, element, is_before)
            if not groups or is_before(groups[-1][-1], group[0])
        ]
    yield from found


def _runs(events: Sequence[LandedReading], element: Event, is_before: _Before) -> Iterator[Chosen]:
    """Events for one element, each before the next."""
    longer: list[Chosen] = [()]
    for count in range(1, element.most + 1):
        longer = [
            (*run, one) for run in longer for one in events if not run or (one not in run and is_before(run[-1], one))
        ]
        if count >= element.least:
            yield from longer


def _gaps(rule: CepRule, counts: Sequence[int]) -> Iterator[_Gap]:
    """What is forbidden where. counts: how many events fill each element."""
    numbers = iter(counts)
    elements = [(one, next(numbers)) for one in _parts(rule) if isinstance(one, Event)]
    last, place = sum(counts) - 1, -1
    numbers = iter(counts)
    for one in _parts(rule):
        if isinstance(one, Event):
            place += next(numbers)
        elif isinstance(one, Negated):
            yield _Gap(frozenset({_stream(one.types[0])}), *_sides(place, last))
    if rule.pattern.select == "strict":
        everything = frozenset(one.pattern for one in rule.streams)
        yield from (_Gap(everything, place, place + 1) for place in range(last))
    elif rule.pattern.select == "next":
        yield from _passed_over(elements)


def closing(rule: CepRule, events: Sequence[LandedReading]) -> Iterator[LandedReading | None]:
    """Of each gap of a match the event behind it, None at the end."""
    elements = [one for one in _parts(rule) if isinstance(one, Event)]
    counts = [sum(event.stream == _stream(one.types[0]) for event in events) for one in elements]
    for gap in _gaps(rule, counts):
        yield None if gap.behind is None else events[gap.behind]


def _sides(place: int, last: int) -> tuple[int | None, int | None]:
    return (place if place >= 0 else None), (place + 1 if place < last else None)


def _passed_over(elements: Sequence[tuple[Event, int]]) -> Iterator[_Gap]:
    """For each two neighbours, what could have come next: once more the same element, or the one after it."""
    place = 0
    for number, (element, count) in enumerate(elements):
        for filled in range(1, count + 1):
            could = [element] if filled < element.most else []
            could += [one for one, _ in elements[number + 1 : number + 2] if filled >= element.least]
            if (number, filled) != (len(elements) - 1, count):
                yield _Gap(frozenset(_stream(one.types[0]) for one in could), place, place + 1)
            place += 1


def _is_certain(case: _Case) -> bool:
    """True if window and gaps are kept wherever in their stamps all events lie."""
    is_within = case.events[-1].t_max - case.events[0].t_min <= case.window_us
    return is_within and not any(_may_lie(case, gap, x) for gap, some in case.gaps for x in some)


def _may_lie(case: _Case, gap: _Gap, x: LandedReading) -> bool:
    """True if for some choice of times x lies in the gap."""
    first, last = case.events[0], case.events[-1]
    begins = x.t_max >= last.t_min - case.window_us if gap.before is None else x.t_max > case.events[gap.before].t_min
    ends = x.t_min <= first.t_max + case.window_us if gap.behind is None else x.t_min < case.events[gap.behind].t_max
    return begins and ends


def _is_over(least: Fraction, case: _Case) -> bool:
    """True if two events are in order and within the window with at least this probability."""
    assert not case.gaps
    a, b = case.events
    return in_order_probability(a, b, case.window_us) >= least


def _is_causal(case: _Case) -> bool:
    """True if the window is possible, and no forbidden event is known to lie in a gap."""
    apart = max(one.t_min for one in case.events) - min(one.t_max for one in case.events)
    return apart <= case.window_us and not any(_lies(case, gap, x) for gap, some in case.gaps for x in some)


def _lies(case: _Case, gap: _Gap, x: LandedReading) -> bool:
    """True if x is known to be behind the event before a gap and before the one behind it; at an edge: in the window."""
    if gap.before is None:
        begins = x.t_max >= max(one.t_min for one in case.events) - case.window_us
    else:
        begins = case.is_before(case.events[gap.before], x)
    if gap.behind is None:
        ends = x.t_min <= min(one.t_max for one in case.events) + case.window_us
    else:
        ends = case.is_before(x, case.events[gap.behind])
    return begins and ends


def _is_possible(case: _Case) -> bool:
    """True if for some choice of times order, window and gaps are kept.

    A forbidden event leaves its gap on one side or on the other. Either way a single event is held early or late enough; all
    combinations are tried. Times are real numbers: one place in many between two microseconds is enough for `before`.
    """
    count = len(case.events)
    fine = 4 * count  # ticks of a microsecond
    begins, ends = [one.t_min * fine for one in case.events], [one.t_max * fine for one in case.events]
    window = case.window_us * fine
    sides = [_leaves(case, gap, x, fine) for gap, some in case.gaps for x in some]
    for chosen in product(*sides):
        earliest, latest = list(begins), list(ends)
        for place, low, high in chosen:
            earliest[place], latest[place] = max(earliest[place], low), min(latest[place], high)
        if _fits(earliest, latest, window):
            return True
    return False


_NEVER, _FOREVER = -(1 << 80), 1 << 80


def _leaves(case: _Case, gap: _Gap, x: LandedReading, fine: int) -> tuple[tuple[int, int, int], ...]:
    """The two ways in which x is outside a gap: (number of an event, the least and the greatest time it may have then)."""
    last, window = len(case.events) - 1, case.window_us * fine
    low, high = x.t_min * fine, x.t_max * fine
    if gap.before is None:  # before the window of the last event
        is_before = (last, low + window + 1, _FOREVER)
    else:
        is_before = (gap.before, low, _FOREVER)
    if gap.behind is None:
        is_behind = (0, _NEVER, high - window - 1)
    else:
        is_behind = (gap.behind, _NEVER, high)
    return is_before, is_behind


def _fits(earliest: Sequence[int], latest: Sequence[int], window: int) -> bool:
    """True if there are times in these bounds, each after the one before, the last at most a window after the first."""
    time = earliest[0] - 1
    for low, high in zip(earliest, latest, strict=True):
        time = max(low, time + 1)
        if time > high:
            return False
    end = begin = time  # the last is as early as can be; the others are as late as that allows
    for high in reversed(latest[:-1]):
        begin = min(high, begin - 1)
    return end - begin <= window


def _left_by_skip(rule: CepRule, found: Sequence[Chosen]) -> Iterator[Chosen]:
    """Of the matches of a key those that SKIP leaves, in the order of their begins."""
    if rule.pattern.skip == "none":
        yield from found
        return
    begun, end_us = set[Id](), _NEVER
    for match in sorted(found, key=lambda match: [(one.t_min, one.t_max) for one in match]):
        past_last = rule.pattern.skip == "past_last"
        if match[0].t_min > end_us if past_last else match[0].identity not in begun:
            begun.add(match[0].identity)
            end_us = match[-1].t_max
            yield match


def _parts(rule: CepRule) -> Sequence[object]:
    assert isinstance(rule.pattern.root, Seq)
    return rule.pattern.root.parts


def _stream(name: str) -> str:
    return f"{name}/tags"
