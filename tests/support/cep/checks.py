"""Checks that every engine of event patterns must pass on a case, against the definition at every moment.

`make(case)` gives a fresh engine and `restore(blob)` one from a snapshot; each has feed, advance, finish and snapshot. All
checks raise AssertionError with the difference.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reference import cep as definition
from reference.cep import Case, Row

Make = Callable[[Case], Any]
Restore = Callable[[bytes], Any]


@dataclass
class Course:
    """Output of an engine over a case; moments are indices in `reference.cep.moments`."""

    emitted: dict[Row, int] = field(default_factory=dict)
    retracted: set[Row] = field(default_factory=set)
    late: list[int] = field(default_factory=list)
    late_added: list[tuple[int, Row]] = field(default_factory=list)  # (late event, match)
    late_removed: list[tuple[int, Row]] = field(default_factory=list)
    folds: dict[int, set[Row]] = field(default_factory=dict)  # after the moment at which a call returned


def columns(case: Case, first: int, last: int) -> dict[str, Any]:
    """The events [first, last) as arguments of an engine's `feed`."""
    events = case.events[first:last]
    names = case.plan.attributes
    return {
        "type_code": np.array([e.type_code for e in events], np.int64),
        "key": np.array([e.key for e in events], np.int64),
        "t": np.array([e.t for e in events], np.int64),
        "source": np.array([e.source for e in events], np.int64),
        "t_max": np.array([e.t_max for e in events], np.int64),
        "attributes": {name: np.array([e.attributes[n] for e in events], float) for n, name in enumerate(names)},
    }


def run(make: Make, case: Case, cuts: set[int], restore: Restore | None = None) -> Course:
    """Feed the case in batches that end at the cuts and at advances; with `restore`, through a snapshot after each call."""
    engine, course, place, first = make(case), Course(), -1, 0
    moments = definition.moments(case)
    place_of_event = {moment.event: n for n, moment in enumerate(moments) if moment.event >= 0}
    advances = list(case.advances)
    for end in range(len(case.events) + 1):
        stops = end in cuts or end == len(case.events) or any(after == end for after, _ in advances)
        if stops and first < end:
            out = engine.feed(**columns(case, first, end))
            place = place_of_event[end - 1]
            assert all(first <= i < end for i in out.emitted_at), (
                f"emitted at {out.emitted_at}, fed {first} .. {end - 1}"
            )
            _note(course, case, out, [place_of_event[int(i)] for i in out.emitted_at], place)
            first = end
            engine = restore(engine.snapshot()) if restore else engine
        for _, frontier in (a for a in advances if a[0] == end):
            out = engine.advance(frontier)
            place += 1
            assert all(i == -1 for i in out.emitted_at), f"emitted at {out.emitted_at} by advance, expected -1"
            _note(course, case, out, [place] * len(out.matches), place)
            engine = restore(engine.snapshot()) if restore else engine
    out = engine.finish()
    assert all(i == -1 for i in out.emitted_at), f"emitted at {out.emitted_at} by finish, expected -1"
    _note(course, case, out, [place + 1] * len(out.matches), place + 1)
    assert place + 2 == len(moments)
    return course


def _note(course: Course, case: Case, out: Any, at: list[int], place: int) -> None:
    """Record the output of one call; check shapes, order and that nothing is repeated."""
    for name in ("matches", "retractions", "late_added", "late_removed"):
        array = getattr(out, name)
        assert array.dtype == np.int64, f"{name}: found {array.dtype}, expected int64"
        assert array.ndim == 2, f"{name}: found shape {array.shape}"
        assert array.shape[1] == case.plan.width, f"{name}: found shape {array.shape}, expected width {case.plan.width}"
    matches = [tuple(map(int, row)) for row in out.matches]
    assert len(out.emitted_at) == len(matches) == len(out.pattern)
    order = [(int(i), row) for i, row in zip(out.emitted_at, matches, strict=True)]
    assert order == sorted(order), f"rows not by emitted_at, then lexicographic: {order}"
    for row, moment in zip(matches, at, strict=True):
        assert row not in course.emitted, f"{row} emitted twice"
        course.emitted[row] = moment
    for row in (tuple(map(int, r)) for r in out.retractions):
        assert row in course.emitted, f"{row} retracted, never emitted"
        assert row not in course.retracted, f"{row} retracted twice"
        course.retracted.add(row)
    course.late += [int(i) for i in out.late]
    course.late_added += _effects(out.late_added, out.late_added_by)
    course.late_removed += _effects(out.late_removed, out.late_removed_by)
    course.folds[place] = set(course.emitted) - course.retracted


def _effects(rows: Any, by: Any) -> list[tuple[int, Row]]:
    return [(int(i), tuple(map(int, row))) for i, row in zip(by, rows, strict=True)]


def _ways(make: Make, restore: Restore | None, case: Case) -> list[Course]:
    """Courses of the case fed one by one, at its cuts, and all at once; of the first two also through snapshots."""
    singly, cuts = set(range(len(case.events))), set(case.cuts)
    courses = [run(make, case, where) for where in (singly, cuts, set())]
    if restore is not None:
        courses += [run(make, case, where, restore) for where in (singly, cuts)]
    late = [m.event for m in definition.moments(case) if m.late]
    for course in courses:
        assert course.late == late, f"late: found {course.late}, expected {late}"
    return courses


def check_emitted(make: Make, restore: Restore | None, case: Case, expected: dict[Row, int]) -> None:
    """Exactly these matches are emitted at these moments, and nothing is retracted, for all batches and restarts."""
    for course in _ways(make, restore, case):
        assert course.retracted == set()
        assert course.emitted == expected


def check_sure(make: Make, restore: Restore | None, case: Case) -> None:
    """Each match of the definition is emitted once, at the earliest safe moment."""
    check_emitted(make, restore, case, definition.emitted_sure(case))


def check_final(make: Make, restore: Restore | None, case: Case) -> None:
    """Each match of the definition is emitted once and never retracted; the moment is not checked."""
    for course in _ways(make, restore, case):
        assert course.retracted == set()
        assert set(course.emitted) == definition.final(case)


def check_arrival(make: Make, restore: Restore | None, case: Case) -> None:
    """Emitted as soon as complete and unviolated; after every call the changelog folds to the matches so far."""
    folds = definition.folds(case)
    expected: dict[Row, int] = {}
    for place, fold in enumerate(folds):
        expected |= {row: place for row in fold if row not in expected}
    for course in _ways(make, restore, case):
        for place, fold in course.folds.items():
            assert fold == folds[place], f"at moment {place}: found {fold}, expected {folds[place]}"
        # A match emitted and retracted within one call may be left out; all others are emitted at their moments.
        assert course.emitted.items() <= expected.items()
    assert run(make, case, set(range(len(case.events)))).emitted == expected


def check_late(make: Make, case: Case) -> None:
    """Each late event reports exactly the matches that it certainly added or removed, each once."""
    course = run(make, case, set(range(len(case.events))))
    expected = {name: {i: definition.late_effects(case, i)[name] for i in course.late} for name in ("added", "removed")}
    for name, reported in (("added", course.late_added), ("removed", course.late_removed)):
        rows = [(i, row) for i, effects in expected[name].items() for row in effects]
        assert sorted(reported) == sorted(rows), f"late_{name}: found {sorted(reported)}, expected {sorted(rows)}"
