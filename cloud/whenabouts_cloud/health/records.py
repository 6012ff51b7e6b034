"""The form of health records: one JSON object a line, beside the readings of a landing.

    LANDING[/ingest=NAME]/_health/hour=2026-01-31T17/part-*.jsonl      hour: that of `at_us`

`at_us` is when the ingest heard it, microseconds since 1970 UTC. A record has all keys of its type; what is not known is
null. Each hour begins with the last birth and status of every gateway again, so one hour can be read without those before.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from whenabouts_protocol import Birth, Heartbeat, Status

Record = dict[str, Any]

PARTS = ("latency_us", "adapter_us", "wire_us", "poll_us")  # of a stamp, beside the bound of the clock
STREAM = ("name", "kind", "unit", "delay_us", "length_us_max", *PARTS)
CONDITIONS = ("online", "offline", "stopped")
MAX_STREAMS = 256  # read of a birth
LAST_US = 253_402_300_799_999_999  # the year 9999


def heartbeat(m: Heartbeat, at_us: int) -> Record:
    """The record of a heartbeat."""
    known = {name: getattr(m, name) for name in _FIELDS["heartbeat"] if name != "at_us"}
    return {"type": "heartbeat", "at_us": at_us, **known}


def birth(m: Birth, at_us: int) -> Record:
    """The record of a birth."""
    streams = [dict(zip(STREAM, stream, strict=True)) for stream in m.streams]
    return {
        "type": "birth", "at_us": at_us, "site": m.site, "gateway": m.gateway, "boot": m.boot, "build": m.build or None,
        "group": m.group, "streams": streams,
    }  # fmt: skip


def status(m: Status, at_us: int) -> Record:
    """The record of a status."""
    return {
        "type": "status", "at_us": at_us, "site": m.site, "gateway": m.gateway, "boot": m.boot, "condition": m.condition
    }  # fmt: skip


def ingest(
    name: str, at_us: int, counters: Mapping[str, int], dead_letters: Mapping[str, int], connected: bool
) -> Record:
    """The record of an ingest about itself; counts are since its start, dead letters by reason. name: "" for none."""
    return {
        "type": "ingest", "at_us": at_us, "ingest": name, "counters": dict(counters), "dead_letters": dict(dead_letters),
        "connected": connected,
    }  # fmt: skip


def line_of(record: Record) -> bytes:
    """A record as a line."""
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def record_in(line: bytes) -> Record | None:
    """The record in a line, with all keys of its type and no others; None if the line holds none.

    A value of another kind than its key's is null, so readers need not look at what a damaged or foreign file holds.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if type(found) is not dict or type(found.get("at_us")) is not int or not 0 <= found["at_us"] <= LAST_US:
        return None
    fields = _FIELDS.get(found["type"]) if type(found.get("type")) is str else None
    if fields is None:
        return None
    record = {"type": found["type"], **{name: known(found.get(name)) for name, known in fields.items()}}
    return record if record.get("gateway", "") is not None and record.get("site", "") is not None else None


def hour_of(at_us: int) -> str:
    """The hour of a time, as in 2026-01-31T17; times that no calendar has are cut."""
    return datetime.fromtimestamp(min(max(at_us, 0), LAST_US) // 1_000_000, UTC).strftime("%Y-%m-%dT%H")


def _int(value: object) -> int | None:
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else None


def _text(value: object) -> str | None:
    return value if type(value) is str else None


def _bool(value: object) -> bool | None:
    return value if type(value) is bool else None


def _condition(value: object) -> str | None:
    return value if type(value) is str and value in CONDITIONS else None


def _counts(value: object) -> dict[str, int]:
    return {name: n for name, n in value.items() if _int(n) is not None} if type(value) is dict else {}


def _streams(value: object) -> list[Record]:
    rows = value if type(value) is list else []
    return [
        {name: known(row.get(name)) for name, known in _STREAM.items()}
        for row in rows[:MAX_STREAMS]
        if type(row) is dict
    ]


_ORIGIN: dict[str, Callable[[object], Any]] = {"at_us": _int, "site": _text, "gateway": _text, "boot": _int}
_STREAM: dict[str, Callable[[object], Any]] = {
    name: _int if name.endswith(("_us", "_max")) else _text for name in STREAM
}
_FIELDS: dict[str, dict[str, Callable[[object], Any]]] = {
    "heartbeat": {
        **_ORIGIN, "clock_state": _text, "clock_source": _text, "bound_us": _int, "spool_readings": _int,
        "spool_bytes": _int, "refused": _int, "invalid": _int, "certificate_ends_s": _int, "frontier_us": _int,
    },
    "birth": {**_ORIGIN, "build": _text, "group": _text, "streams": _streams},
    "status": {**_ORIGIN, "condition": _condition},
    "ingest": {"at_us": _int, "ingest": _text, "counters": _counts, "dead_letters": _counts, "connected": _bool},
}  # fmt: skip
TYPES = tuple(_FIELDS)
