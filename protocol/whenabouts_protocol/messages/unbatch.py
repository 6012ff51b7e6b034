"""Decoder of batches, the inverse of `batch`. This decoder is the authority at run time."""

from whenabouts_protocol.errors import WireError
from whenabouts_protocol.layout import (
    K_ATTRS,
    K_BOOT,
    K_GATEWAY,
    K_KEYS,
    K_ROWS,
    K_SEQ,
    K_SITE,
    K_STREAMS,
    K_T_MIN,
    K_VCLOCKS,
    MAX_BATCH_READINGS,
    read_head,
)
from whenabouts_protocol.reading import CLOCK_STATES, KINDS, Reading, is_text, is_vclock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ROW_FIXED = 8  # number, t_min, width, stream, key, clock state, clock, value; then attributes if any


def readings_in(data: bytes) -> "list[Reading]":
    """Implementation of `batch.decode_batch`."""
    head = read_head(data)
    site, gateway, boot = head.get(K_SITE), head.get(K_GATEWAY), head.get(K_BOOT)
    seq, t_min = head.get(K_SEQ), head.get(K_T_MIN)
    if type(seq) is not int or type(t_min) is not int:
        raise WireError("batch: found no integers for the first number and the base time")
    vclocks = [_vclock(v) for v in _table(head, K_VCLOCKS)]
    streams = [_stream(s) for s in _table(head, K_STREAMS)]
    keys = [_unpack_key(k) for k in _table(head, K_KEYS)]
    attr_names = [_names(n) for n in _table(head, K_ATTRS)]
    rows = _table(head, K_ROWS)
    if not 0 < len(rows) <= MAX_BATCH_READINGS:
        raise WireError(f"batch: found {len(rows)} readings, expected 1 to {MAX_BATCH_READINGS}")
    readings = []
    for number, row in enumerate(rows):
        try:
            if type(row) is not list or len(row) < _ROW_FIXED:
                raise ValueError(f"found no array of at least {_ROW_FIXED} fields")
            seq_step, t_step, width, stream_at, key_at, state_at, vclock_at, value = row[:_ROW_FIXED]
            if not (type(seq_step) is type(t_step) is type(width) is int):
                raise ValueError("found a number, time or width that is no integer")
            seq += seq_step
            t_min += t_step
            stream, kind, unit = _entry(streams, stream_at)
            reading = Reading(
                site=site,  # type: ignore[arg-type]  # checked by Reading
                gateway=gateway,  # type: ignore[arg-type]
                boot=boot,  # type: ignore[arg-type]
                seq=seq,
                stream=stream,
                kind=kind,
                key=None if key_at is None else _entry(keys, key_at),
                value=value,
                unit=unit,
                attrs=_attrs(attr_names, row),
                t_min=t_min,
                t_max=t_min + width,
                clock_state=_entry(CLOCK_STATES, state_at),
                vclock=_entry(vclocks, vclock_at),
            )
        except (ValueError, TypeError) as error:
            raise WireError(f"batch row {number}: {error}") from None
        readings.append(reading)
        seq += 1
    return readings


def _table(head: "dict[Any, Any]", key: int) -> "list[Any]":
    table = head.get(key)
    if type(table) is not list:
        raise WireError(f"batch: found no array under key {key}")
    return table


def _entry(table: "Any", index: "Any") -> "Any":
    if type(index) is not int or not 0 <= index < len(table):
        raise ValueError(f"found index {index!r}, expected 0 to {len(table) - 1}")
    return table[index]


def _stream(entry: "Any") -> "tuple[Any, str, Any]":
    if (
        type(entry) is not list
        or len(entry) < 3
        or not is_text(entry[0])
        or not (entry[2] is None or is_text(entry[2]))
    ):
        raise WireError("batch streams: found an entry that is not [name, kind, unit]")
    try:
        return entry[0], _entry(KINDS, entry[1]), entry[2]
    except ValueError as error:
        raise WireError(f"batch streams: {error}") from None


def _vclock(entry: "Any") -> "tuple[int, ...]":
    if type(entry) is not list or not is_vclock(tuple(entry)):
        raise WireError("batch clocks: found an entry that is no short array of counts")
    return tuple(entry)


def _names(entry: "Any") -> "list[str]":
    if type(entry) is not list or not all(is_text(name) for name in entry):
        raise WireError("batch attribute names: found an entry that is no array of text")
    if len(set(entry)) != len(entry):
        raise WireError("batch attribute names: found a name twice in one entry")
    return entry


def _attrs(attr_names: "list[list[str]]", row: "list[Any]") -> "dict[str, Any]":
    if len(row) == _ROW_FIXED:
        return {}
    names = _entry(attr_names, row[_ROW_FIXED])
    values = row[_ROW_FIXED + 1 :]
    if len(names) != len(values):
        raise ValueError(f"found {len(values)} attributes for {len(names)} names")
    return dict(zip(names, values))


def _unpack_key(entry: "Any") -> str:
    key = entry.hex().upper() if type(entry) is bytes else entry
    if not is_text(key):
        raise WireError("batch keys: found an entry that is no short text or bytes")
    return str(key)
