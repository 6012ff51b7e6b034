"""A state of a gateway as a rule about its group takes it, and the way there from readings as they land.

A process of a rule is one of its STREAMs: the gateway of the group whose state readings the stream covers. Which entry of
the vector clocks is that gateway's is known from its readings (`process`), so clocks are cut down to the rule's processes
only when every one of them has been heard (`view`). Of the values only those that the rule reads are kept, in the order of
`columns_of`.

Cost: some microseconds a reading, most of them for its JSON.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import pyarrow as pa

from whenabouts_cloud.cep.events import FURTHEST_US
from whenabouts_cloud.rules.model import LatwinRule
from whenabouts_cloud.rules.predicate import Scalar, Value, values_of
from whenabouts_protocol.group_state import state_of
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
    covered: dict[tuple[str, str], list[int]] = {}
    mine: dict[str, bool] = {}
    rows: list[dict[str, Any]] = []
    wrong = 0
    for row in readings.select(COLUMNS).to_pylist():
        where = row["site"], row["stream"]
        slots = covered.get(where)
        if slots is None:
            slots = covered[where] = [n for n, stream in enumerate(rule.streams) if stream.matches(*where)]
        if not slots or row["kind"] != "state":
            continue
        state = _state(row)
        if state is None:
            wrong += 1
            continue
        if mine.get(state.group) is None:
            mine[state.group] = rule.covers(state.group)
        if not mine[state.group]:
            continue
        kept = {name: row[name] for name in ("site", "gateway", "boot", "seq", "t_min", "t_max")}
        kept |= {"group": state.group, "view": state.view, "process": state.process, "clock": state.clock}
        for slot in slots:
            values = [_scalar(state.values.get(value.name)) for value in columns[slot]]
            rows.append({**kept, "slot": slot, "evidence": state.evidence, "values": json.dumps(values)})
    return pa.Table.from_pylist(rows, schema=REPORT), wrong


def rows_of(rule: LatwinRule, reports: pa.Table) -> Iterator[tuple[Source, Report]]:
    """Each row of a REPORT table with where it comes from."""
    offsets = [stream.offset_us for stream in rule.streams]
    names = [*REPORT.names]
    for row in zip(*(_plain(reports[name]) for name in names), strict=True):
        group, view, slot, site, gateway, boot, seq, process, evidence, clock, t_min, t_max, values = row
        timed = -FURTHEST_US < t_min <= t_max < FURTHEST_US
        lo, hi = (t_min + offsets[slot], t_max + offsets[slot]) if timed else (-FURTHEST_US, FURTHEST_US)
        kept = tuple(json.loads(values))
        report = Report(slot, clock[process], tuple(clock), lo, hi, evidence, boot, seq, t_min, t_max, kept)
        yield Source(group, view, site, gateway, process), report


def _plain(column: Any) -> Iterable[Any]:
    plain: Iterable[Any] = column.to_pylist()
    return plain


def _state(row: dict[str, Any]) -> Any:
    """The state of a landed reading, or None."""
    try:
        attrs = json.loads(row["attrs"] or "{}")
        value = None if row["value"] is None else json.loads(row["value"])
    except ValueError:
        return None
    clock = row["vclock"]
    if not isinstance(attrs, dict) or clock is None:
        return None
    return state_of(cast(Reading, _Landed("state", value, attrs, tuple(clock))))


def _scalar(value: Any) -> Scalar:
    """Truth is 1 or 0."""
    return value if value is None or isinstance(value, str) else float(value)
