"""Compiles a plan to tables for `sweep`, which counts its matches without listing them.

Each alternative must be a chain whose conditions are on one event each. Then the continuation of a partial match depends
only on the time of its first event and on the number of its events, so all equal partial matches are one number. Everything
else is refused with its reason. The requirement of one place of a chain or of one negation on an event is a *term*: types
and a condition. Equal terms are one, and an event is represented by the bits of the terms that it satisfies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from whenabouts_cloud.jit import Array, columns
from whenabouts_cloud.pattern.expressions import both
from whenabouts_cloud.pattern.plan import NEGATED, TIME_LIMIT, Alternative, Negation, Plan, Program, Resolved, Step

Function = Literal["sum", "min", "max", "avg"]
Aggregate = tuple[Function, str]  # of a column of an element: ("sum", "d.value")

TERMS = 62  # bits of a mask
MEASURES = 16  # most columns of elements that are aggregated
FUNCTIONS = ("sum", "min", "max", "avg")
STAMPS = ("t_min", "t_max")


class NotCountableError(ValueError):
    """The matches of this plan cannot be counted without listing them; the text gives the reason."""


class Limits(NamedTuple):
    """Numbers of all alternatives."""

    window: int  # border included
    leads: int  # alternatives with a negation before their first event
    starting: int  # bits of the terms that start a match
    back: int  # bits of the leading negations


LIMIT = columns(Limits)


class Tables(NamedTuple):
    """Alternatives one after the other; `x_start[v] : x_start[v + 1]` are the rows of table x of alternative v."""

    place_start: Array
    place_term: Array
    terms: Array  # by alternative: bits of all its terms
    lead: Array  # by alternative: its number among those with a negation before their first event, -1: none
    trails: Array  # by alternative: true if a negation reaches beyond its last event
    negation_start: Array
    negation_term: Array
    negation_left: Array  # the place in the alternative behind which the gap begins, -1: before all
    negation_right: Array  # the place before which the gap ends, the number of places: beyond all
    reads: Array  # (measures, places): column of an event's values read there, -1: none
    first_read: Array  # (measures, alternatives): the first such place in the alternative, the number of places: none
    limits: Array  # (`Limits`,)


@dataclass(frozen=True)
class Countable:
    """The tables, and the values for making masks of events and aggregates of measures in Python."""

    tables: Tables
    type_mask: Array  # by type code: terms without a condition
    conditions: tuple[tuple[int, tuple[int, ...], Resolved], ...]  # bit of the term, types, condition
    columns: tuple[str, ...]  # required by feed
    values: tuple[str, ...]  # columns kept with the events, from `columns` or STAMPS
    aggregates: tuple[tuple[Function, int], ...]  # function and measure
    names: tuple[str, ...]  # of the aggregates, as requested: sum(d.value)
    per_key: bool


def countable(plan: Plan, types: int, aggregates: Sequence[Aggregate], places: dict[str, list[int]]) -> Countable:
    """Compile a plan over `types` type codes; `places` maps a name to its places in a match.

    Raises:
        NotCountableError: the matches of the plan cannot be counted in this way.
        ValueError: an unknown aggregate, or an aggregate of an unknown element.
    """
    if plan.mode != "certain":
        raise NotCountableError(
            f"found {plan.mode.upper()}, expected CERTAIN: only points in time can be counted; use the engine"
        )
    if plan.skip != "none":
        raise NotCountableError(
            "found an after-match SKIP, expected none: what it keeps depends on single matches; use the engine"
        )
    terms = _Terms(plan, types)
    rows = [_chain(plan, alternative, terms) for alternative in plan.alternatives]
    measures, functions = _measures(aggregates, places)
    values = tuple(dict.fromkeys(column for _, column in measures))
    asked = [name for name in (*plan.attributes, *values) if name not in STAMPS]
    return Countable(
        _tables(plan, rows, [(placed, values.index(column)) for placed, column in measures]),
        terms.type_mask(),
        terms.conditions(),
        tuple(dict.fromkeys(asked)),
        values,
        tuple(functions),
        tuple(f"{function}({column_of})" for function, column_of in aggregates),
        plan.per_key,
    )


def places_of(names: Sequence[str]) -> dict[str, list[int]]:
    """Places in a match by name of `Pattern.names`; the name of a repeated element has those of all repetitions."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places[name] = [place]
        if name.endswith("]"):
            places.setdefault(name.rpartition("[")[0], []).append(place)
    return places


class _Chain(NamedTuple):
    columns: tuple[int, ...]
    terms: list[int]
    negations: list[tuple[int, int, int]]  # term, left, right


class _Terms:
    """Terms by types and condition, in the order of first use."""

    def __init__(self, plan: Plan, types: int) -> None:
        self._plan, self._types = plan, types
        self._numbers: dict[tuple[frozenset[int], Resolved], int] = {}

    def of(self, event_class: int, more: list[Program]) -> int:
        """Bit number of a class with more conditions, all of whose steps name one event."""
        wanted = self._plan.classes[event_class]
        beyond = [code for code in wanted.types if not 0 <= code < self._types]
        if beyond:
            raise ValueError(f"type code of a class: found {beyond[0]}, expected 0 .. {self._types - 1}")
        steps = both([program for program in (wanted.condition, *more) if program])
        term = self._numbers.setdefault((wanted.types, tuple(map(self._resolved, steps))), len(self._numbers))
        if term >= TERMS:
            raise NotCountableError(f"found more than {TERMS} different elements, expected no more; use the engine")
        return term

    def _resolved(self, step: Step) -> tuple[str, int, Any, float]:
        return step.op, 0, self._plan.attributes[step.column] if step.op == "attribute" else None, step.value

    def type_mask(self) -> Array:
        mask = np.zeros(self._types, np.int64)
        for (codes, steps), term in self._numbers.items():
            if not steps:
                mask[sorted(codes)] |= 1 << term
        return mask

    def conditions(self) -> tuple[tuple[int, tuple[int, ...], Resolved], ...]:
        return tuple((t, tuple(sorted(codes)), steps) for (codes, steps), t in self._numbers.items() if steps)


def _chain(plan: Plan, alternative: Alternative, terms: _Terms) -> _Chain:
    if not alternative.is_chain:
        raise NotCountableError(
            "found AND, expected elements one after the other: parts in any order are not counted; use the engine"
        )
    own: list[list[Program]] = [[] for _ in alternative.classes]
    for condition in alternative.conditions:
        named = {step.element for step in condition if step.op == "attribute"} or {0}
        if len(named) > 1:
            raise NotCountableError(
                f"found a condition across {len(named)} events, expected each on only one event; use the engine"
            )
        own[named.pop()].append(condition)
    places = [terms.of(c, more) for c, more in zip(alternative.classes, own, strict=True)]
    gaps = [_gap(negation, len(places), terms) for negation in alternative.negations]
    return _Chain(alternative.columns, places, [(term, left, right) for term, left, right in gaps if left < right])


def _gap(negation: Negation, places: int, terms: _Terms) -> tuple[int, int, int]:
    """Term and borders of a negation: behind the latest of its left positives, before the earliest of its right ones."""
    if any(step.op == "attribute" and step.element != NEGATED for step in negation.condition):
        raise NotCountableError(
            "found a condition between a negated event and another one, expected each on only one event; use the engine"
        )
    right = (negation.right & -negation.right).bit_length() - 1 if negation.right else places
    return terms.of(negation.event_class, [negation.condition]), negation.left.bit_length() - 1, right


def _measures(
    aggregates: Sequence[Aggregate], places: dict[str, list[int]]
) -> tuple[list[tuple[tuple[int, ...], str]], list[tuple[Function, int]]]:
    """The measures, (places of a match, column), and the function and measure of each aggregate."""
    measures: dict[tuple[tuple[int, ...], str], int] = {}
    functions = []
    for function, column_of in aggregates:
        name, dot, column = column_of.partition(".")
        if function not in FUNCTIONS:
            raise ValueError(f"aggregate: found {function!r}, expected one of {', '.join(FUNCTIONS)}")
        if name not in places or not dot or not column:
            raise ValueError(f"aggregate: found {column_of!r}, expected ELEMENT.COLUMN with one of {', '.join(places)}")
        functions.append((function, measures.setdefault((tuple(places[name]), column), len(measures))))
    if len(measures) > MEASURES:
        raise ValueError(f"aggregates: found {len(measures)} columns of elements, expected at most {MEASURES}")
    return list(measures), functions


def _tables(plan: Plan, chains: list[_Chain], measures: list[tuple[tuple[int, ...], int]]) -> Tables:
    place_start = np.cumsum([0, *(len(c.terms) for c in chains)])
    reads = np.full((len(measures), place_start[-1]), -1, np.int64)
    first_read = np.array([[len(c.terms) for c in chains] for _ in measures], np.int64).reshape(-1, len(chains))
    for m, (wanted, column) in enumerate(measures):
        for v, chain in enumerate(chains):
            read = [p for p, place in enumerate(chain.columns) if place in wanted]
            reads[m, [place_start[v] + p for p in read]] = column
            first_read[m, v] = min(read, default=len(chain.terms))
    lead = np.full(len(chains), -1, np.int64)
    looking = [v for v, c in enumerate(chains) if any(left < 0 for _, left, _ in c.negations)]
    lead[looking] = np.arange(len(looking))
    negations = [gap for c in chains for gap in c.negations]
    term, left, right = np.array(negations, np.int64).reshape(-1, 3).T
    bits = [[*c.terms, *(term for term, _, _ in c.negations)] for c in chains]
    starting = _bits([c.terms[0] for c in chains])
    back = _bits([term for term, left, _ in negations if left < 0])
    window = min(plan.window, TIME_LIMIT) - plan.strict_window
    return Tables(
        place_start,
        np.array([term for c in chains for term in c.terms], np.int64),
        np.array([_bits(numbers) for numbers in bits], np.int64),
        lead,
        np.array([any(right == len(c.terms) for _, _, right in c.negations) for c in chains], np.bool_),
        np.cumsum([0, *(len(c.negations) for c in chains)]),
        np.ascontiguousarray(term),
        np.ascontiguousarray(left),
        np.ascontiguousarray(right),
        reads,
        first_read,
        np.array(Limits(window, len(looking), starting, back), np.int64),
    )


def _bits(terms: list[int]) -> int:
    mask = 0
    for term in terms:
        mask |= 1 << term
    return mask
