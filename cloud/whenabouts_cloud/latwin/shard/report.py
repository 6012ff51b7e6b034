"""A state of a gateway as a rule about its group takes it, and the way there from readings as they land.

A process of a rule is one of its STREAMs: the gateway of the group whose state readings the stream covers. Which entry of
the vector clocks is that gateway's is known from its readings (`process`), so clocks are cut down to the rule's processes
only when every one of them has been heard (`view`). Of the values only those that the rule reads are kept, in the order of
`columns_of`.

Cost: some microseconds a reading; each different text of attributes is read once a block.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import pyarrow as pa

from whenabouts_cloud.frontier.times import FURTHEST_US
from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_cloud.rules.state_predicate import Scalar, Value, values_of
from whenabouts_protocol.group_state import KIND, state_of
from whenabouts_protocol.reading import Reading

REPORT = pa.schema(
    [
        ("group", pa.string()),
        ("view", pa.int64()),
        ("slot", pa.int16()),
        ("site", pa.string()),
        ("gateway", pa.string()),
        ("boot", pa.int64()),
        ("seq", pa.int64()),
        ("process", pa.int16()),
        ("evidence", pa.bool_()),
        ("clock", pa.list_(pa.int64())),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
        ("values", pa.string()),
    ]
)
INVALID = pa.schema([("readings", pa.int64())])
MAX_SAID = 10_000  # different texts of attributes and values that are remembered at a time
COLUMNS = ("site", "gateway", "boot", "seq", "stream", "kind", "value", "attrs", "t_min", "t_max", "vclock")


class Report(NamedTuple):
    """A state that began between lo and hi (moved by OFFSET), or a clock-only report that state `number` still was on.

    `clock` is that of the view. A stamp that is no time has lo -FURTHEST_US and hi FURTHEST_US.
    """

    slot: int
    number: int
    clock: tuple[int, ...]
    lo: int
    hi: int
    evidence: bool
    boot: int
    seq: int
    t_min: int
    t_max: int
    values: tuple[Scalar, ...]

    @property
    def timed(self) -> bool:
        """Whether its stamp is a time."""
        return self.hi < FURTHEST_US


class Source(NamedTuple):
    """Where a report comes from: its group and view, the gateway, and its place in the view's clocks."""

    group: str
    view: int
    site: str
    gateway: str
    process: int

    @property
    def name(self) -> str:
        """The gateway as promises name it."""
        return f"{self.site}/{self.gateway}"


class _Said(NamedTuple):
    """What a reading says beside its clock; `values` as JSON, of each process it can be; `mine`: its group is the rule's."""

    group: str
    view: int
    process: int
    evidence: bool
    mine: bool
    values: dict[int, str]


class _Landed(NamedTuple):
    """What `state_of` reads of a reading."""

    kind: str
    value: Any
    attrs: dict[str, Any]
    vclock: tuple[int, ...]


def columns_of(rule: LatwinRule) -> list[list[Value]]:
    """For each process of a rule the values that its predicate reads, in the order in which reports hold them."""
    read = values_of(rule.predicate)
    return [[value for value in read if value.stream == stream.name] for stream in rule.streams]


def reports_of(rule: LatwinRule, readings: pa.Table) -> tuple[pa.Table, int]:
    """The reports (REPORT) among readings (COLUMNS) of groups that the rule is about; and how many readings say that they
    are states and are none."""
    columns = columns_of(rule)
    covered: dict[tuple[str, str], tuple[int, ...]] = {}
    said: dict[tuple[str | None, str | None, int, tuple[int, ...]], _Said | None] = {}
    found: list[tuple[Any, ...]] = []
    wrong = 0
    for row in zip(*(_plain(readings[name]) for name in COLUMNS), strict=True):
        site, gateway, boot, seq, stream, kind, value, attrs, t_min, t_max, clock = row
        slots = covered.get((site, stream))
        if slots is None:
            slots = covered[site, stream] = tuple(n for n, s in enumerate(rule.streams) if s.matches(site, stream))
        if not slots or kind != KIND:
            continue
        text = attrs, value, len(clock or ()), slots
        if text not in said:
            if len(said) >= MAX_SAID:
                said.clear()
            said[text] = _said(rule, {slot: columns[slot] for slot in slots}, attrs, value, clock or ())
        state = said[text]
        if state is None or min(clock) < 0:
            wrong += 1
            continue
        for slot in slots if state.mine else ():
            found.append((
                state.group, state.view, slot, site, gateway, boot, seq, state.process, state.evidence, clock, t_min, t_max,
                state.values[slot],
            ))  # fmt: skip
    filled = list(zip(*found, strict=True)) or [()] * len(REPORT)
    return pa.table(dict(zip(REPORT.names, filled, strict=True)), schema=REPORT), wrong


def rows_of(rule: LatwinRule, reports: pa.Table) -> Iterator[tuple[Source, Report]]:
    """Each row of a REPORT table with where it comes from."""
    offsets = [stream.offset_us for stream in rule.streams]
    known: dict[str, tuple[Scalar, ...]] = {}
    for row in zip(*(_plain(reports[name]) for name in REPORT.names), strict=True):
        group, view, slot, site, gateway, boot, seq, process, evidence, clock, t_min, t_max, values = row
        kept = known.get(values)
        if kept is None:
            kept = known[values] = tuple(json.loads(values))
        timed = -FURTHEST_US < t_min <= t_max < FURTHEST_US
        lo, hi = (t_min + offsets[slot], t_max + offsets[slot]) if timed else (-FURTHEST_US, FURTHEST_US)
        report = Report(slot, clock[process], tuple(clock), lo, hi, evidence, boot, seq, t_min, t_max, kept)
        yield Source(group, view, site, gateway, process), report


def _plain(column: Any) -> Iterable[Any]:
    plain: Iterable[Any] = column.to_pylist()
    return plain


def _said(
    rule: LatwinRule, columns: dict[int, list[Value]], attrs: str | None, value: str | None, clock: Sequence[int]
) -> _Said | None:
    """What a landed reading says with these columns of processes; None if it is no state."""
    try:
        named = json.loads(attrs or "{}")
        own = None if value is None else json.loads(value)
    except ValueError:
        return None
    if not isinstance(named, dict):
        return None
    state = state_of(cast(Reading, _Landed(KIND, own, named, tuple(clock))))
    if state is None:
        return None
    values = {
        slot: json.dumps([_scalar(state.values.get(value.name)) for value in read]) for slot, read in columns.items()
    }
    return _Said(state.group, state.view, state.process, state.evidence, rule.covers(state.group), values)


def _scalar(value: Any) -> Scalar:
    """Truth is 1 or 0."""
    return value if value is None or isinstance(value, str) else float(value)
