"""What there is to say of why a pattern has no match: the answer of `why_not`, and its text for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

MAX_EVENTS = 500  # nearest to the time; the others are left out, and counted
MAX_STEPS = 20_000  # of the search: some seconds

# From near to far: a match; complete, but a negated event is in the way; complete, but not probable enough or never all at
# once; an element's event fails a condition, its order is uncertain, it is beyond the window, it is in the wrong order;
# there is no such event; no event of the pattern at all.
Verdict = Literal["match", "blocked", "improbable", "condition", "uncertain", "window", "order", "missing", "nothing"]
FAILURES: tuple[Verdict, ...] = ("condition", "uncertain", "window", "order", "missing")


@dataclass(frozen=True, eq=False)
class Seen:
    """An event: closed interval in microseconds, its name, numbers that conditions read, whether it may be the focus.

    Equal to nothing but itself: two events may agree in all of that.
    """

    type_code: int
    t_min: int
    t_max: int
    name: str = ""
    columns: Mapping[str, float] | None = None
    may_be_focus: bool = True


@dataclass(frozen=True)
class Element:
    """A place of the match: the event that fills it, or the one that comes nearest, and why it does not (empty: it does)."""

    name: str
    event: Seen | None
    failure: Verdict | None
    reason: str


@dataclass(frozen=True)
class Blocker:
    """An event that a negation forbids, and where it lies."""

    negation: str
    event: Seen
    where: str


@dataclass(frozen=True)
class Explanation:
    """What there is to say. `probability` is of OVER alone, `left_out` counts events beyond MAX_EVENTS.

    `searched_all` is false where the search ended early: then there may be a nearer way.
    """

    verdict: Verdict
    time_us: int
    focus: Seen | None
    elements: tuple[Element, ...]
    blockers: tuple[Blocker, ...]
    probability: float | None
    left_out: int
    searched_all: bool


def lines(found: Explanation) -> list[str]:
    """The explanation for people: the verdict, then a line for each element and each event in the way."""
    said = [_HEADLINES[found.verdict]]
    width = max((len(e.name) for e in found.elements), default=0)
    for element in found.elements:
        at = "" if element.event is None else f"{moment(element.event)}  {element.event.name}".rstrip()
        if element.failure is None:
            said.append(f"  {element.name:<{width}}  {at}")
        else:
            said.append(f"  {element.name:<{width}}  missing: {f'{at} {element.reason}' if at else element.reason}")
    said += [f"  {b.negation}: {moment(b.event)}  {b.event.name} {b.where}" for b in found.blockers]
    if found.probability is not None:
        said.append(f"  probability {found.probability:.6g}")
    if found.left_out:
        said.append(f"  {found.left_out} events further from the time were not looked at: the limit is {MAX_EVENTS}")
    if not found.searched_all:
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
    """When it happened, UTC; microseconds since 1970 where no calendar goes."""
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
    """In the largest unit in which it is short."""
    for unit, size in (("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000)):
        if us >= size:
            return f"{us / size:.6g} {unit}"
    return f"{us} us"
