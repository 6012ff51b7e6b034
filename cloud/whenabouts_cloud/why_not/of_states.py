"""What the gateways of a group were in around a time, and which part of a rule's predicate did not hold then.

The state of a gateway at a time is the latest one that may have begun by then. Whether states were on at once is decided by
the engine, from clocks and stamps of all states; here only stamps are compared: if the last of the states had begun before
the first of them ended, they certainly were on together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from whenabouts_cloud.cep.explain.explanation import Seen, moment
from whenabouts_cloud.landing.schema import of
from whenabouts_cloud.landing.selection import Selection, overlapping
from whenabouts_cloud.landing.store import Store
from whenabouts_cloud.latwin.picture.picture import NothingToDrawError, picture
from whenabouts_cloud.latwin.shard.report import COLUMNS, Report, Source, reports_of, rows_of
from whenabouts_cloud.latwin.shard.watch import WatchPlan
from whenabouts_cloud.rules.coverage import may_cover
from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_cloud.rules.state_predicate import Scalar, Value
from whenabouts_cloud.why_not.around import nearest
from whenabouts_protocol.group_state import KIND

SPANS_US = tuple(
    s * 1_000_000 for s in (60, 1800, 43_200, 864_000, 34_560_000)
)  # before a time, until all have a state
MAX_STATES = 5000  # readings of states that are looked at
WIDEST_PICTURE = 1 << 16  # global states of the windows of a rule whose lattice is drawn

StatesVerdict = Literal["held", "false", "unknown", "nothing"]
HEADLINES: dict[StatesVerdict, str] = {
    "held": "the predicate held in the states around that time",
    "false": "the predicate did not hold in the states around that time",
    "unknown": "no verdict: not every gateway has sent a state by then",
    "nothing": "no gateway of the group has sent a state by then",
}


@dataclass(frozen=True)
class Member:
    """A gateway of the group by its STREAM: its state at the time, and the one that followed.

    `holds`: for each alternative of the predicate True if its local predicate holds, None if it has none about this
    stream; empty if the predicate has no alternatives. `heartbeat_us`: begin of the last stamp that reports the state as on.
    """

    stream: str
    gateway: str | None
    state: Report | None
    following: Report | None
    heartbeat_us: int | None
    values: dict[str, Scalar]
    holds: tuple[bool | None, ...]


@dataclass(frozen=True)
class StatesAnswer:
    """The states of a group at a time; `svg` is the lattice of the windows then, if there is one that can be drawn.

    `together_us`: all states were certainly on from the first to the second of these times.
    """

    rule: LatwinRule
    group: str
    time_us: int
    verdict: StatesVerdict
    view: int | None
    members: tuple[Member, ...]
    together_us: tuple[int, int] | None
    readings: int
    more: bool
    svg: str | None

    def lines(self) -> list[str]:
        """The answer for people; the first line is the verdict."""
        width = max(len(member.stream) for member in self.members)
        said = [HEADLINES[self.verdict], *(f"  {one.stream:<{width}}  {_shown(one)}" for one in self.members)]
        for n, part in enumerate(self._alternatives()):
            false = [one.stream for one in self.members if one.holds and one.holds[n] is False]
            known = all(one.state is not None for one in self.members if not one.holds or one.holds[n] is not None)
            outcome = f"not in {', '.join(false)}" if false else "held" if known else "not known"
            said.append(f"  {' AND '.join(part)}: {outcome}")
        if self.verdict == "held" and all(one.state is not None for one in self.members):
            said.append(f"  {self._together()}")
        said.append(f"  looked at {self.readings} readings of states")
        if self.more:
            said.append(f"  more than {MAX_STATES} have landed: those nearest to the time were examined")
        return said

    def json(self) -> dict[str, Any]:
        """The answer as JSON values."""
        return {
            "kind": "states",
            "rule": self.rule.name,
            "key": self.group,
            "time_us": self.time_us,
            "verdict": self.verdict,
            "predicate": self.rule.predicate.text(),
            "alternatives": [" AND ".join(part) for part in self._alternatives()],
            "view": self.view,
            "members": [_member(one) for one in self.members],
            "together_us": None if self.together_us is None else list(self.together_us),
            "readings": self.readings,
            "more_readings_landed": self.more,
            "svg": self.svg,
        }

    def _alternatives(self) -> list[list[str]]:
        return [[one.text() for one in part.values()] for part in self.rule.alternatives or []]

    def _together(self) -> str:
        if self.together_us is None:
            return "by their stamps alone they need not have been on at once: vector clocks decide"
        return f"they certainly were on together within {moment(Seen(0, *self.together_us))}"


def why_not_states(landing: Store, rule: LatwinRule, group: str, time_us: int) -> StatesAnswer:
    """Explain the states of a group at a time, in the view in which a gateway last began a state by then.

    Raises:
        OSError: the landing cannot be listed.
    """
    plan = WatchPlan(rule)
    readings, more = states_before(landing, rule, time_us, group)
    reports = [one for one in rows_of(rule, reports_of(rule, readings)[0]) if one[0].group == group and one[1].timed]
    begun = [(report.lo, source.view) for source, report in reports if report.lo <= time_us]
    if not begun:
        members = tuple(_nobody(rule, n) for n in range(len(rule.streams)))
        return StatesAnswer(rule, group, time_us, "nothing", None, members, None, readings.num_rows, more, None)
    view = max(begun)[1]
    mine = [one for one in reports if one[0].view == view]
    members = tuple(
        _member_of(plan, n, [one for one in mine if one[1].slot == n], time_us) for n in range(len(rule.streams))
    )
    values: dict[Value, Scalar] = {}
    for n, member in enumerate(members):
        if member.state is not None:
            values |= plan.values(n, member.state.values)
    known = all(member.state is not None for member in members)
    verdict: StatesVerdict = "held" if plan.holds(values) else "false" if known else "unknown"
    past = readings.filter(pc.field("t_min") <= time_us)
    drawn = lattice(rule, past) if known else None
    together = _together(members) if verdict == "held" and known else None
    return StatesAnswer(rule, group, time_us, verdict, view, members, together, readings.num_rows, more, drawn)


def states_before(landing: Store, rule: LatwinRule, time_us: int, group: str | None = None) -> tuple[pa.Table, bool]:
    """Readings of states (`report.COLUMNS`) of the rule's streams around a time, so far back that each has a window full.

    As far back as SPANS_US allow, and not after one minute behind the time. True: there are more than the MAX_STATES
    nearest ones.
    """
    table, count = of(*COLUMNS).empty_table(), 0
    for span_us in SPANS_US:
        where = (
            overlapping(time_us - span_us, time_us + SPANS_US[0]) & (pc.field("kind") == KIND) & may_cover(rule.streams)
        )
        parts, count = [of(*COLUMNS).empty_table()], 0
        for one in Selection(landing, of(*COLUMNS), where):
            parts.append(one)
            count += one.num_rows
            if count > 4 * MAX_STATES:
                break
        table, _ = nearest(pa.concat_tables(parts), time_us, MAX_STATES)
        if count > MAX_STATES or _windows_full(rule, table, time_us, group):
            break
    return table, count > MAX_STATES


def lattice(rule: LatwinRule, readings: pa.Table) -> str | None:
    """The windows at the end of these readings as an SVG; None if they cannot be drawn, or are too wide to do it at once."""
    width = 1
    for window in rule.windows:
        width *= window + 1
    if width > WIDEST_PICTURE:
        return None
    try:
        return picture(rule, readings, None)
    except NothingToDrawError:
        return None


def _windows_full(rule: LatwinRule, table: pa.Table, time_us: int, group: str | None) -> bool:
    """True if each stream has as many states begun by the time as its window holds, or began its view in these."""
    begun: list[set[int]] = [set() for _ in rule.streams]
    for source, report in rows_of(rule, reports_of(rule, table)[0]):
        if group in (None, source.group) and not report.is_heartbeat and report.lo <= time_us:
            begun[report.slot].add(report.number)
    return all(len(some) >= window or 0 in some for some, window in zip(begun, rule.windows, strict=True))


def _member_of(plan: WatchPlan, slot: int, reports: Sequence[tuple[Source, Report]], time_us: int) -> Member:
    """The member of a process, from its reports of a view; of several gateways the one that came first counts."""
    if not reports:
        return _nobody(plan.rule, slot)
    name = min(reports, key=lambda one: (one[1].lo, one[0].name))[0].name
    own = [report for source, report in reports if source.name == name]
    states = sorted((one for one in own if not one.is_heartbeat), key=lambda one: one.number)
    before = [one for one in states if one.lo <= time_us]
    if not before:
        return Member(plan.rule.streams[slot].name, name, None, None, None, {}, _nobody(plan.rule, slot).holds)
    state = before[-1]
    following = next((one for one in states if one.number > state.number), None)
    still = [one.lo for one in own if one.is_heartbeat and one.number == state.number]
    values = plan.values(slot, state.values)
    holds = tuple(part.tests[slot](values) if slot in part.tests else None for part in plan.parts)
    named = {value.name: scalar for value, scalar in values.items()}
    return Member(plan.rule.streams[slot].name, name, state, following, max(still, default=None), named, holds)


def _nobody(rule: LatwinRule, slot: int) -> Member:
    return Member(rule.streams[slot].name, None, None, None, None, {}, ())


def _together(members: Sequence[Member]) -> tuple[int, int] | None:
    """From when to when all states were certainly on, by stamps; None if that is not certain for any time.

    A state lasts until the earliest begin of the next one, if that has landed, and until the begin of the last heartbeat
    that reports it as on.
    """
    first, last = [], []
    for one in members:
        assert one.state is not None
        first.append(one.state.hi)
        next_is_known = one.following is not None and one.following.number == one.state.number + 1
        ends = [one.following.lo] if one.following is not None and next_is_known else []
        ends += [] if one.heartbeat_us is None else [one.heartbeat_us]
        last.append(max(ends, default=one.state.hi - 1))
    return (max(first), min(last)) if max(first) <= min(last) else None


def _shown(one: Member) -> str:
    if one.state is None:
        return "has sent no state" if one.gateway is None else f"{one.gateway} had begun no state"
    stamp = moment(Seen(0, one.state.lo, one.state.hi))
    values = ", ".join(f"{name} {value!r}" for name, value in one.values.items())
    return f"{one.gateway}  state {one.state.number} began {stamp}{f', {values}' if values else ''}"


def _member(one: Member) -> dict[str, Any]:
    return {
        "stream": one.stream,
        "gateway": one.gateway,
        "state": _report(one.state),
        "following": _report(one.following),
        "heartbeat_us": one.heartbeat_us,
        "values": one.values,
        "holds": list(one.holds),
    }


def _report(one: Report | None) -> dict[str, Any] | None:
    return (
        None
        if one is None
        else {"number": one.number, "t_min": one.lo, "t_max": one.hi, "boot": one.boot, "seq": one.seq}
    )
