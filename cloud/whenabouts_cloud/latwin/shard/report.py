"""Reports: the states of gateways in the form that a rule about their group uses, extracted from landed readings.

A process of a rule is one of its STREAMs: the gateway of the group whose state readings the stream covers. The entry of
that gateway in vector clocks is known only from its readings (`process`), so clocks are reduced to the rule's processes
when every one of them has reported (`view`). Only values that the rule reads are kept, in the order of `columns_of`.

Cost: some microseconds per reading; each distinct text of attributes is parsed once per block.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import pyarrow as pa

from whenabouts_cloud.frontier.times import FURTHEST_US, TIMELESS_US
from whenabouts_cloud.landing import schema as landing
from whenabouts_cloud.landing.schema import IDENTITY, json_in
from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_cloud.rules.state_predicate import Scalar, Value, values_of
from whenabouts_protocol.group_state import KIND, state_of
from whenabouts_protocol.reading import Reading, is_scalar

REPORT = pa.schema(
    [
        ("group", pa.string()),
        ("view", pa.int64()),
        ("slot", pa.int16()),
        *landing.of(*IDENTITY),
        ("process", pa.int16()),
        ("is_heartbeat", pa.bool_()),
        ("is_earlier", pa.bool_()),
        ("clock", pa.list_(pa.int64())),
        ("t_min", pa.int64()),
        ("t_max", pa.int64()),
        ("values", pa.string()),
    ]
)
INVALID = pa.schema([("readings", pa.int64())])
MAX_CACHED = 10_000  # distinct texts of attributes and values cached at a time
COLUMNS = (*IDENTITY, "stream", "kind", "value", "attrs", "t_min", "t_max", "vclock")


class Report(NamedTuple):
    """A state that began between lo and hi (shifted by OFFSET), or a clock heartbeat: state `number` was still on then.

    `clock` is that of the view. is_earlier: of an earlier start than its boot says.
    A stamp that is not a time has lo -FURTHEST_US and hi FURTHEST_US.
    """

    slot: int
    number: int
    clock: tuple[int, ...]
    lo: int
    hi: int
    is_heartbeat: bool
    boot: int
    seq: int
    t_min: int
    t_max: int
    values: tuple[Scalar, ...]
    is_earlier: bool = False

    @property
    def place(self) -> tuple[int, int]:
        """Boot and number of its reading: a view holds states that several starts of a gateway have stored."""
        return self.boot, self.seq

    @property
    def timed(self) -> bool:
        """True if its stamp is a time."""
        return self.hi < FURTHEST_US


class Source(NamedTuple):
    """The source of a report: its group and view, the gateway, and the gateway's entry in the view's clocks."""

    group: str
    view: int
    site: str
    gateway: str
    process: int

    @property
    def name(self) -> str:
        """The gateway's name in watermarks."""
        return f"{self.site}/{self.gateway}"


class _Content(NamedTuple):
    """The content of a reading without its clock.

    `in_rule`: its group is one of the rule's. `values`: as JSON, for each process of the rule that the gateway can be.
    """

    group: str
    view: int
    process: int
    is_heartbeat: bool
    is_earlier: bool
    in_rule: bool
    values: dict[int, str]


class _Landed(NamedTuple):
    """The fields of a reading that `state_of` reads."""

    kind: str
    value: Any
    attrs: dict[str, Any]
    vclock: tuple[int, ...]


def columns_of(rule: LatwinRule) -> list[list[Value]]:
    """For each process of a rule the values that its predicate reads, in the order in which reports hold them."""
    read = values_of(rule.predicate)
    return [[value for value in read if value.stream == stream.name] for stream in rule.streams]


def reports_of(rule: LatwinRule, readings: pa.Table) -> tuple[pa.Table, int]:
    """Returns the reports (REPORT) among readings (COLUMNS) of the rule's groups, and the number of invalid states."""
    columns = columns_of(rule)
    covered: dict[tuple[str, str, str], tuple[int, ...]] = {}
    contents: dict[tuple[str | None, str | None, int, tuple[int, ...]], _Content | None] = {}
    rows: list[tuple[Any, ...]] = []
    wrong = 0
    for row in zip(*(_plain(readings[name]) for name in COLUMNS), strict=True):
        site, gateway, boot, seq, stream, kind, value, attrs, t_min, t_max, clock = row
        slots = covered.get((site, gateway, stream))
        if slots is None:
            own = enumerate(rule.streams)
            slots = covered[site, gateway, stream] = tuple(n for n, s in own if s.matches(site, gateway, stream))
        if not slots or kind != KIND:
            continue
        text = attrs, value, len(clock or ()), slots
        if text not in contents:
            if len(contents) >= MAX_CACHED:
                contents.clear()
            contents[text] = _parsed_content(rule, {slot: columns[slot] for slot in slots}, attrs, value, clock or ())
        state = contents[text]
        if state is None or min(clock) < 0:
            wrong += 1
            continue
        for slot in slots if state.in_rule else ():
            rows.append((
                state.group, state.view, slot, site, gateway, boot, seq, state.process, state.is_heartbeat,
                state.is_earlier, clock, t_min, t_max, state.values[slot],
            ))  # fmt: skip
    filled = list(zip(*rows, strict=True)) or [()] * len(REPORT)
    return pa.table(dict(zip(REPORT.names, filled, strict=True)), schema=REPORT), wrong


def rows_of(rule: LatwinRule, reports: pa.Table) -> Iterator[tuple[Source, Report]]:
    """Yields each row of a REPORT table with its source."""
    offsets = [stream.offset_us for stream in rule.streams]
    known: dict[str, tuple[Scalar, ...]] = {}
    for row in zip(*(_plain(reports[name]) for name in REPORT.names), strict=True):
        group, view, slot, site, gateway, boot, seq, process, is_heartbeat, is_earlier, clock, t_min, t_max, values = (
            row
        )
        kept = known.get(values)
        if kept is None:
            kept = known[values] = tuple(json.loads(values))
        timed = -FURTHEST_US < t_min <= t_max < FURTHEST_US and t_max - t_min < TIMELESS_US
        lo, hi = (t_min + offsets[slot], t_max + offsets[slot]) if timed else (-FURTHEST_US, FURTHEST_US)
        report = Report(
            slot, clock[process], tuple(clock), lo, hi, is_heartbeat, boot, seq, t_min, t_max, kept, is_earlier
        )
        yield Source(group, view, site, gateway, process), report


def _plain(column: Any) -> Iterable[Any]:
    plain: Iterable[Any] = column.to_pylist()
    return plain


def _parsed_content(
    rule: LatwinRule, columns: dict[int, list[Value]], attrs: str | None, value: str | None, clock: Sequence[int]
) -> _Content | None:
    """The content of a landed reading, with these columns of processes; None if it is not a state."""
    named, own = json_in(attrs or "{}"), json_in(value)
    if not isinstance(named, dict) or (own is None and value not in (None, "null")):
        return None
    state = state_of(cast(Reading, _Landed(KIND, own, named, tuple(clock))))
    if state is None:
        return None
    values = {
        slot: json.dumps([_scalar(state.values.get(value.name)) for value in read]) for slot, read in columns.items()
    }
    in_rule = rule.covers(state.group)
    return _Content(state.group, state.view, state.process, state.is_heartbeat, state.is_earlier, in_rule, values)


def _scalar(value: Any) -> Scalar:
    """A value for comparisons: a boolean is 1 or 0, and what no reading can hold is no value."""
    if not is_scalar(value):
        return None
    return value if isinstance(value, str) else float(value)
