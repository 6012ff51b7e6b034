"""Matches by their definition: every choice of events is tried, in an order, within the window, and under the conditions.

CERTAIN: wherever in their stamps all events lie. POSSIBLE: for some choice of times. OVER: with a probability, known here of
two events without a gap. CAUSAL: vector clocks prove the order, and the window is possible. A repeated element is filled by
one event to as many as it allows. No forbidden event may lie between its neighbours; at an edge of the pattern it may not
lie within the window. NEXT forbids what could have been the next event, STRICT any event. SKIP leaves some of the matches.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from whenabouts_cloud.pattern.elements import Event
from whenabouts_cloud.rules.model import CepRule
from whenabouts_sim.chaos.checks.landed import Id, LandedReading
from whenabouts_sim.chaos.checks.rules.causal_order import Places
from whenabouts_sim.chaos.checks.rules.conditions import Named, hold, selects
from whenabouts_sim.chaos.checks.rules.gaps import Parts, alternatives, gaps_of, positives, streams_of
from whenabouts_sim.chaos.checks.rules.orders import Before, Case, is_match, order_of

Chosen = tuple[LandedReading, ...]
Streams = Mapping[str, Sequence[LandedReading]]


def matches(rule: CepRule, readings: Iterable[LandedReading], places: Places) -> Iterator[Chosen]:
    """The matches among readings, whose stamps are moved by OFFSET. places: those of the readings in a group."""
    is_before = order_of(rule, places)
    by_key: dict[str | None, dict[str, list[LandedReading]]] = {}
    for one in readings:
        key = one.key if rule.pattern.per_key else None
        by_key.setdefault(key, {}).setdefault(one.stream, []).append(one)
    for streams in by_key.values():
        found = [one for parts in alternatives(rule) for one in _of_parts(rule, parts, streams, is_before)]
        yield from _left_by_skip(rule, found)


def closing(rule: CepRule, events: Sequence[LandedReading]) -> Iterator[LandedReading | None]:
    """Of each gap of a match the event behind it, None at the end."""
    parts = parts_of(rule, events)
    elements = [one for stage in positives(parts) for one in stage]
    counts = [sum(event.stream in streams_of(one) for event in events) for one in elements]
    for gap in gaps_of(rule, parts, counts):
        yield None if gap.behind is None else events[gap.behind]


def parts_of(rule: CepRule, events: Sequence[LandedReading]) -> Parts:
    """The alternative that a match is of. The elements of one are of different streams."""
    streams = {one.stream for one in events}
    for parts in alternatives(rule):
        known = [streams_of(one) for stage in positives(parts) for one in stage]
        if streams <= frozenset().union(*known) and all(streams & some for some in known):
            return parts
    raise ValueError(f"found a match of {sorted(streams)}, expected the streams of an alternative")


def _of_parts(rule: CepRule, parts: Parts, streams: Streams, is_before: Before) -> Iterator[Chosen]:
    labels = [one.label for stage in positives(parts) for one in stage]
    pattern = rule.pattern
    for groups in _choices(parts, streams, is_before, pattern.window_us):
        events, named = tuple(one for group in groups for one in group), dict(zip(labels, groups, strict=True))
        if not hold(rule, named):
            continue
        gaps = [
            (gap, list(_forbidden(rule, gap.streams, gap.name, streams, named)))
            for gap in gaps_of(rule, parts, [len(group) for group in groups])
        ]
        if is_match(rule, Case(events, gaps, pattern.window_us, pattern.strict_window, is_before)):
            yield events


def _forbidden(
    rule: CepRule, names: Iterable[str], element: str, streams: Streams, named: Named
) -> Iterator[LandedReading]:
    """The events that may not lie in a gap. element: the name of what is forbidden there, "" without conditions."""
    mine = {one.identity for group in named.values() for one in group}
    for one in (one for name in names for one in streams.get(name, ()) if one.identity not in mine):
        if not element or selects(rule, element, one, named):
            yield one


def _choices(parts: Parts, streams: Streams, is_before: Before, window_us: int) -> Iterator[tuple[Chosen, ...]]:
    """Events for each element, in the order of the elements, that are not apart longer than the window in any case."""
    found: list[tuple[Chosen, ...]] = [()]
    earlier = slice(0, 0)  # the groups that all of the next stage are behind
    for stage in positives(parts):
        for element in stage:
            events = [one for name in sorted(streams_of(element)) for one in streams.get(name, ())]
            runs = list(_runs(events, element, is_before))
            found = [
                (*groups, run)
                for groups in found
                for run in runs
                if all(is_before(group[-1], run[0]) for group in groups[earlier])
                and all(_is_near(group[0], run[-1], window_us) for group in groups[:1])
            ]
        earlier = slice(earlier.stop, earlier.stop + len(stage))
    yield from found


def _is_near(one: LandedReading, other: LandedReading, window_us: int) -> bool:
    return max(one.t_min, other.t_min) - min(one.t_max, other.t_max) <= window_us


def _runs(events: Sequence[LandedReading], element: Event, is_before: Before) -> Iterator[Chosen]:
    """Events for one element, each before the next."""
    longer: list[Chosen] = [()]
    for count in range(1, element.most + 1):
        longer = [
            (*run, one) for run in longer for one in events if not run or (one not in run and is_before(run[-1], one))
        ]
        if count >= element.least:
            yield from longer


def _left_by_skip(rule: CepRule, found: Sequence[Chosen]) -> Iterator[Chosen]:
    """Of the matches of a key those that SKIP leaves, in the order of their begins."""
    if rule.pattern.skip == "none":
        yield from found
        return
    begun, end_us = set[Id](), -(1 << 80)
    for match in sorted(found, key=lambda match: [(one.t_min, one.t_max) for one in match]):
        past_last = rule.pattern.skip == "past_last"
        if match[0].t_min > end_us if past_last else match[0].identity not in begun:
            begun.add(match[0].identity)
            end_us = match[-1].t_max
            yield match
