"""The explanation of why a pattern has no match: the result of `why_not`, and its text for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

MAX_EVENTS = 500  # nearest to the time; the others are left out and counted
MAX_STEPS = 20_000  # of the search: a few seconds

# From nearest to farthest: a match; complete, but a negated event blocks it; complete, but not probable enough or not
# possible all at once; an element's event fails a condition, has an uncertain order, is beyond the window, is in the wrong
# order; there is no such event; no event of the pattern at all.
Verdict = Literal["match", "blocked", "improbable", "condition", "uncertain", "window", "order", "missing", "nothing"]
FAILURES: tuple[Verdict, ...] = ("condition", "uncertain", "window", "order", "missing")


@dataclass(frozen=True, eq=False)
class Seen:
    """An event: closed interval in microseconds, its name, and the numbers that conditions read.

    Events are compared by identity, since two of them may agree in all fields.
    """

    type_code: int
    t_min: int
    t_max: int
    name: str = ""
    columns: Mapping[str, float] | None = None
    may_be_focus: bool = True


@dataclass(frozen=True)
class Element:
    """A place of the match: the event that fills it, or the nearest one and the reason why it does not fill it.

    `room` is given for a place that is not filled: no event outside it (us, both ends included) could be in order and
    within the window beside the events that fill the other places; first > last: none could.
    """

    name: str
    event: Seen | None
    failure: Verdict | None
    reason: str
    room: tuple[int, int] | None = None


@dataclass(frozen=True)
class Blocker:
    """An event that a negation forbids, and its position."""

    negation: str
    event: Seen
    where: str


@dataclass(frozen=True)
class Explanation:
    """Why a pattern has no match. `probability` is given only for OVER; `left_out` counts events beyond MAX_EVENTS.

    `searched_all` is False if the search ended early; then there may be a nearer way. `examined` are the events that were
    looked at, those nearest to the time first.
    """

    verdict: Verdict
    time_us: int
    focus: Seen | None
    elements: tuple[Element, ...]
    blockers: tuple[Blocker, ...]
    probability: float | None
    left_out: int
    searched_all: bool
    examined: tuple[Seen, ...] = ()


def lines(explanation: Explanation) -> list[str]:
    """Text of an explanation: the verdict, then a line for each element and each blocking event."""
    said = [_HEADLINES[explanation.verdict]]
    width = max((len(e.name) for e in explanation.elements), default=0)
    for element in explanation.elements:
        at = "" if element.event is None else f"{moment(element.event)}  {element.event.name}".rstrip()
        if element.failure is None:
            said.append(f"  {element.name:<{width}}  {at}")
        else:
            said.append(f"  {element.name:<{width}}  missing: {f'{at} {element.reason}' if at else element.reason}")
    said += [f"  {b.negation}: {moment(b.event)}  {b.event.name} {b.where}" for b in explanation.blockers]
    if explanation.probability is not None:
        said.append(f"  probability {explanation.probability:.6g}")
    if explanation.left_out:
        said.append(
            f"  {explanation.left_out} events further from the time were not looked at: the limit is {MAX_EVENTS}"
        )
    if not explanation.searched_all:
        said.append(f"  not every way was looked at: the search ended after {MAX_STEPS} steps")
    return said


_HEADLINES: dict[Verdict, str] = {
    "match": "a match",
    "blocked": "complete, but a negated event is in the way",
    "improbable": "complete, but not probable enough, or not possible all at once",
    "condition": "not complete: an event fails a condition",
    "uncertain": "not complete: the order of two events is not certain",
    "window": "not complete: an event is beyond the window",
    "order": "not complete: an event is in the wrong order",
    "missing": "not complete: there is no such event",
    "nothing": "no event around that time could play a part",
}


def moment(event: Seen) -> str:
    """Time of the event in UTC; in microseconds since 1970 if it is beyond the calendar."""
    try:
        first, last = (
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us) for us in (event.t_min, event.t_max)
        )
    except OverflowError:
        return f"{event.t_min} .. {event.t_max} us"
    shown = first.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if event.t_min == event.t_max:
        return shown
    later = last.time().isoformat(timespec="microseconds") if first.date() == last.date() else last.isoformat()
    return f"{shown} .. {later}"


def duration(us: int) -> str:
    """Text of a duration, in the largest unit that is not longer."""
    for unit, size in (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000)):
        if us >= size:
            return f"{us / size:.6g} {unit}"
    return f"{us} us"
