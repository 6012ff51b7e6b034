"""The alternatives of a pattern, and what each forbids where: by `!`, by NEXT and by STRICT."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from whenabouts_cloud.pattern.elements import And, Event, Negated, Or
from whenabouts_cloud.rules.model import CepRule

Parts = Sequence[Event | Negated | And]
"""One after the other; the events of an And in any order."""


class Gap(NamedTuple):
    """Forbidden streams, and the numbers of the events before and behind them; None at an edge. name: of the element that
    is forbidden, "" for what NEXT and STRICT forbid.
    """

    streams: frozenset[str]
    before: int | None
    behind: int | None
    name: str = ""


def alternatives(rule: CepRule) -> Iterator[Parts]:
    """What a match can be made of: for each OR one of its elements."""
    root = rule.pattern.root
    parts = (root,) if isinstance(root, And) else root.parts
    yield from product(*(one.parts if isinstance(one, Or) else (one,) for one in parts))


def positives(parts: Parts) -> Iterator[tuple[Event, ...]]:
    """The elements of events, in the order of time; several, if they may come in any order."""
    for one in parts:
        if isinstance(one, Event):
            yield (one,)
        elif isinstance(one, And):
            yield tuple(event for event in one.parts if isinstance(event, Event))


def streams_of(element: Event | Negated) -> frozenset[str]:
    """The streams whose readings are events of an element."""
    return frozenset(f"{name}/tags" for name in element.types)


def has_gap_at_end(rule: CepRule) -> bool:
    """True if a forbidden element is the last one."""
    return any(isinstance(parts[-1], Negated) for parts in alternatives(rule))


def has_gaps(rule: CepRule) -> bool:
    """True if anything is forbidden."""
    return rule.pattern.select != "any" or any(
        isinstance(one, Negated) for parts in alternatives(rule) for one in parts
    )


def gaps_of(rule: CepRule, parts: Parts, counts: Sequence[int]) -> Iterator[Gap]:
    """What is forbidden where. counts: how many events fill each element. Of events in any order nothing is."""
    numbers = iter(counts)
    elements = [(one, next(numbers)) for one in parts if isinstance(one, Event)]
    last, place = sum(counts) - 1, -1
    numbers = iter(counts)
    for one in parts:
        if isinstance(one, Event):
            place += next(numbers)
        elif isinstance(one, Negated):
            yield Gap(streams_of(one), *_sides(place, last), one.label)
    if rule.pattern.select == "strict":
        everything = frozenset(one.pattern for one in rule.streams)
        yield from (Gap(everything, place, place + 1) for place in range(last))
    elif rule.pattern.select == "next":
        yield from _passed_over(elements)


def _sides(place: int, last: int) -> tuple[int | None, int | None]:
    return (place if place >= 0 else None), (place + 1 if place < last else None)


def _passed_over(elements: Sequence[tuple[Event, int]]) -> Iterator[Gap]:
    """For each two neighbours, what could have come next: once more the same element, or the one after it."""
    place = 0
    for number, (element, count) in enumerate(elements):
        for filled in range(1, count + 1):
            could = [element] if filled < element.most else []
            could += [one for one, _ in elements[number + 1 : number + 2] if filled >= element.least]
            if (number, filled) != (len(elements) - 1, count):
                yield Gap(frozenset().union(*map(streams_of, could)), place, place + 1)
            place += 1
