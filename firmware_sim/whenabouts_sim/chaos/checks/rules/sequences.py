"""Matches of SEQ by its definition: every choice of events is tried, each before the next wherever in their stamps both lie.

A repeated element is filled by one event to as many as it allows, in an order. No forbidden event may lie, for any choice
of times, between its neighbours; at an edge of the pattern it may not lie within the window.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from whenabouts_cloud.pattern.elements import Event, Negated, Seq
from whenabouts_cloud.rules.model import CepRule
from whenabouts_sim.chaos.checks.landed import Id, LandedReading
from whenabouts_sim.chaos.checks.lateness import longest_event_us
from whenabouts_sim.chaos.checks.results import Told

Chosen = tuple[LandedReading, ...]


class _Gap(NamedTuple):
    """A forbidden element: its stream, and the numbers of the elements before and behind it; None at an edge."""

    stream: str
    before: int | None
    behind: int | None


def broken_matches(rule: CepRule, told: Told, readings: Sequence[LandedReading], complete_us: int) -> Iterator[str]:
    """Matches that are none, and missing ones. complete_us: before it, all was told. What is late has no effect."""
    aside = told.late | told.too_long
    moved = [_moved(rule, one) for one in readings if one.identity not in aside]
    of = {one.identity: one for one in readings}
    certain = {tuple(one.identity for one in chosen): chosen for chosen in _matches(rule, moved)}
    yield from _broken_retractions(rule, told)
    mine = set(told.results) - {row.readings for row in told.retracted}
    for result in mine - certain.keys():
        yield f"{rule.name}: {_shown(result, of)} was told, and is no result"
    decided_us = complete_us + min(stream.offset_us for stream in rule.streams) - _wait_us(rule)
    for result in certain.keys() - mine:
        if all(one.t_max < decided_us for one in certain[result]):
            yield f"{rule.name}: {_shown(result, of)} is a result, and was not told"


def _broken_retractions(rule: CepRule, told: Told) -> Iterator[str]:
    """A match is retracted once, after it was told; one that is not told on arrival never is."""
    batches = {row.readings: row.batch for row in told.rows}
    for result, count in Counter(row.readings for row in told.retracted).items():
        if count > 1:
            yield f"{rule.name}: {result} was retracted {count} times"
    for row in told.retracted:
        if rule.pattern.emit == "sure" or row.batch < batches.get(row.readings, row.batch + 1):
            yield f"{rule.name}: {row.readings} was retracted, and had not been told before"


def _moved(rule: CepRule, one: LandedReading) -> LandedReading:
    """The reading with the OFFSET of its stream."""
    moved_us = next((stream.offset_us for stream in rule.streams if stream.pattern == one.stream), 0)
    return one._replace(t_min=one.t_min + moved_us, t_max=one.t_max + moved_us)


def _wait_us(rule: CepRule) -> int:
    """How long after its end a match is told at the latest. A forbidden event may be as long as the longest, and so come
    that much later; one behind the last element may lie as far as the window.
    """
    gaps = list(_gaps(rule))
    window_us = rule.pattern.window_us if any(gap.behind is None for gap in gaps) else 0
    return window_us + longest_event_us(rule) if gaps else 0


def _matches(rule: CepRule, readings: Sequence[LandedReading]) -> Iterator[Chosen]:
    by_key: dict[str | None, dict[str, list[LandedReading]]] = {}
    for one in readings:
        by_key.setdefault(one.key, {}).setdefault(one.stream, []).append(one)
    window_us, gaps, elements = rule.pattern.window_us, list(_gaps(rule)), _elements(rule)
    for streams in by_key.values():
        for groups in _choices(elements, streams):
            chosen = tuple(one for group in groups for one in group)
            if chosen[-1].t_max - chosen[0].t_min <= window_us and not any(
                _violates(gap, one, groups, window_us) for gap in gaps for one in streams.get(gap.stream, ())
            ):
                yield chosen


def _choices(elements: Sequence[Event], streams: Mapping[str, Sequence[LandedReading]]) -> Iterator[tuple[Chosen, ...]]:
    """Events for each element, all in an order."""
    found: list[tuple[Chosen, ...]] = [()]
    for element in elements:
        events = streams.get(f"{element.types[0]}/tags", ())
        found = [
            (*groups, group)
            for groups in found
            for group in _runs(events, element)
            if not groups or groups[-1][-1].t_max < group[0].t_min
        ]
    yield from found


def _runs(events: Sequence[LandedReading], element: Event) -> Iterator[Chosen]:
    """Events for one element, each before the next."""
    longer: list[Chosen] = [()]
    for count in range(1, element.most + 1):
        longer = [(*run, one) for run in longer for one in events if not run or run[-1].t_max < one.t_min]
        if count >= element.least:
            yield from longer


def _violates(gap: _Gap, one: LandedReading, groups: Sequence[Chosen], window_us: int) -> bool:
    """True if for some choice of times the event lies in the gap."""
    first, last = groups[0][0], groups[-1][-1]
    begins = one.t_max >= last.t_min - window_us if gap.before is None else one.t_max > groups[gap.before][-1].t_min
    ends = one.t_min <= first.t_max + window_us if gap.behind is None else one.t_min < groups[gap.behind][0].t_max
    return begins and ends


def _elements(rule: CepRule) -> list[Event]:
    return [one for one in _parts(rule) if isinstance(one, Event)]


def _gaps(rule: CepRule) -> Iterator[_Gap]:
    before, count = None, len(_elements(rule))
    number = 0
    for one in _parts(rule):
        if isinstance(one, Event):
            before, number = number, number + 1
        elif isinstance(one, Negated):
            yield _Gap(f"{one.types[0]}/tags", before, number if number < count else None)


def _parts(rule: CepRule) -> Sequence[object]:
    assert isinstance(rule.pattern.root, Seq)
    return rule.pattern.root.parts


def _shown(result: tuple[Id, ...], of: Mapping[Id, LandedReading]) -> str:
    readings = [of[one] for one in result if one in of]
    return " with ".join(f"{one.stream} {one.key} [{one.t_min}, {one.t_max}]" for one in readings)
