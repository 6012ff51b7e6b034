"""Converts the parse tree of COUNT; patterns that cannot be counted are mistakes, with the reason."""

from typing import Any, cast

from whenabouts_cloud.language.pattern import Pattern
from whenabouts_cloud.language.timing import Notes, duration
from whenabouts_cloud.pattern.expressions import NAMED
from whenabouts_cloud.rules.model import Count, Function


def read_count(tree: Any, pattern: Pattern, notes: Notes) -> Count | None:
    """Return the counts of a rule, or None with notes."""
    from whenabouts_cloud.pattern.countable import NotCountableError, countable, places_of  # loads numba

    before = len(notes.mistakes)
    aggregates: list[tuple[Function, str, str]] = []
    every_us = None
    places = places_of(pattern.names)
    for part in tree.children:
        if part.data == "every":
            every_us = duration(part.children[0], notes)
            if every_us == 0:
                notes.add(part, "found EVERY 0, expected more than 0")
            continue
        function, name, *column = part.children
        if name not in places:
            notes.add(name, f"found {name}, expected one of {', '.join(places)}")
        if len(column) == 2 and column[0] != "attrs":
            notes.add(column[0], f"found {'.'.join(column)}, expected value, an attribute or attrs.{column[1]}")
        if len(column) == 1 and column[0] in NAMED and column[0] != "value":
            notes.add(column[0], f"found {column[0]}, expected value or an attribute: numbers that readings have")
        aggregates.append((cast(Function, str(function).lower()), str(name), ".".join(column)))
    if pattern.emit == "arrival":
        notes.add(tree, "found COUNT with ON ARRIVAL, expected WHEN SURE: counts are not retracted")
    if len(notes.mistakes) > before:
        return None
    try:
        tables = countable(
            pattern.plan(pattern.types), len(pattern.types), [(f, f"{n}.{c}") for f, n, c in aggregates], places
        ).tables
    except NotCountableError as error:
        notes.add(tree, str(error).replace("; use the engine", "; leave out COUNT"))
        return None
    except ValueError as error:
        notes.add(tree, str(error))
        return None
    if every_us is not None and tables.trails.any():
        notes.add(
            tree,
            "found EVERY with a negation behind the last event, expected none: such matches are final after their period",
        )
    return Count(tuple(aggregates), every_us)
