"""The trace format: serial traffic with the times between which each piece of it happened.

A trace is a text file of JSON lines, one object a line, ended by a line feed. Line 1 is the head:

    {"whenabouts_trace":1,"wall_us":1767225600000000,"monotonic_ns":81234567890,"port":"/dev/ttyUSB0","baud":115200,
     "bytesize":8,"parity":"N","stopbits":1,"clock_bound_us":1500}

`wall_us` (microseconds since 1970 UTC) and `monotonic_ns` are one moment on two clocks; `wall_us` is null where it is
unknown, as are the port's settings. `clock_bound_us` is optional: the largest error of wall_us. All further lines are
records, in the order in which they returned:

    {"d":"rx","entry_ns":81250000000,"return_ns":81250140000,"hex":"ff00031d0c"}
    {"d":"tx","entry_ns":81260000000,"return_ns":81260090000,"hex":"ff1403"}
    {"d":"error","entry_ns":81270000000,"return_ns":81290000000,"error":"device disconnected"}

Times are monotonic nanoseconds of the capturing machine, entry_ns <= return_ns. No byte of an rx record reached
the host before entry_ns, and all had by return_ns. An rx record without bytes means that nothing arrived in between. A
tx record was handed to the driver between its two times. An error record ended the capture: the port failed between
its times. Unknown fields are ignored; an unknown version is refused.

This module has the pure part, values to lines and back. `reader` reads files, including torn ones.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

VERSION = 1

RECORD_BYTES_MAX = 65_536
"""Longest data of one record, 16 times the longest chunk; a writer refuses more."""

LINE_BYTES_MAX = 262_144
"""Longest line that a reader accepts, room for the longest record and a long error text; more is a TraceError, so no file
can fill the memory."""

ERROR_CHARS_MAX = 4096
"""Longest text of an error record; a writer cuts the rest off."""

Direction = Literal["rx", "tx", "error"]


class TraceError(Exception):
    """A trace cannot be read further; the text names file and line, what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class Head:
    """Place and time of a recording; None for unknown values."""

    port: str
    monotonic_ns: int = 0
    wall_us: int | None = None
    baud: int | None = None
    bytesize: int | None = None
    parity: str | None = None
    stopbits: float | None = None
    clock_bound_us: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One piece of traffic: `data` for rx and tx, `error` for an error. Monotonic nanoseconds."""

    direction: Direction
    entry_ns: int
    return_ns: int
    data: bytes = b""
    error: str = ""


class LineError(ValueError):
    """A line that does not follow the format; the reader adds file and line number."""

    def __init__(self, actual: str, expected: str) -> None:
        super().__init__(f"found {actual}, expected {expected}")


def encode_head(head: Head) -> bytes:
    """The first line of a trace, with its line feed."""
    fields: dict[str, Any] = {
        "whenabouts_trace": VERSION,
        "wall_us": head.wall_us,
        "monotonic_ns": head.monotonic_ns,
        "port": head.port,
        "baud": head.baud,
        "bytesize": head.bytesize,
        "parity": head.parity,
        "stopbits": head.stopbits,
    }
    if head.clock_bound_us is not None:
        fields["clock_bound_us"] = head.clock_bound_us
    return _line(fields)


def encode_record(record: Record) -> bytes:
    """One record as a line, with its line feed.

    Raises:
        ValueError: more than RECORD_BYTES_MAX bytes, or the times are the wrong way round.
    """
    if len(record.data) > RECORD_BYTES_MAX:
        raise ValueError(f"record of {len(record.data)} bytes, expected at most {RECORD_BYTES_MAX}; split it")
    if record.entry_ns > record.return_ns:
        raise ValueError(f"record with entry_ns {record.entry_ns} after return_ns {record.return_ns}")
    fields: dict[str, Any] = {"d": record.direction, "entry_ns": record.entry_ns, "return_ns": record.return_ns}
    if record.direction == "error":
        fields["error"] = record.error[:ERROR_CHARS_MAX]
    else:
        fields["hex"] = record.data.hex()
    return _line(fields)


def decode_head(line: bytes) -> Head:
    """The head in a line.

    Raises:
        LineError: it is not a head of this version.
    """
    fields = _object(line)
    version = fields.get("whenabouts_trace")
    if type(version) is not int or version != VERSION:
        raise LineError(f'"whenabouts_trace": {_short(version)}', f"version {VERSION}")
    stopbits = fields.get("stopbits")
    if not (stopbits is None or (type(stopbits) in (int, float) and stopbits in (1, 1.5, 2))):
        raise LineError(f'"stopbits": {_short(stopbits)}', "1, 1.5, 2 or null")
    return Head(
        port=_text(fields, "port"),
        monotonic_ns=_integer(fields, "monotonic_ns"),
        wall_us=_integer_or_none(fields, "wall_us"),
        baud=_integer_or_none(fields, "baud"),
        bytesize=_integer_or_none(fields, "bytesize"),
        parity=None if fields.get("parity") is None else _text(fields, "parity"),
        stopbits=stopbits,
        clock_bound_us=_integer_or_none(fields, "clock_bound_us"),
    )


def decode_record(line: bytes) -> Record:
    """The record in a line.

    Raises:
        LineError: a field is missing or malformed.
    """
    fields = _object(line)
    direction = fields.get("d")
    entry_ns, return_ns = _integer(fields, "entry_ns"), _integer(fields, "return_ns")
    if entry_ns > return_ns:
        raise LineError(f"entry_ns {entry_ns} after return_ns {return_ns}", "entry_ns <= return_ns")
    if direction == "error":
        return Record("error", entry_ns, return_ns, error=_text(fields, "error"))
    if direction == "rx" or direction == "tx":
        return Record(direction, entry_ns, return_ns, _bytes(fields))
    raise LineError(f'"d": {_short(direction)}', '"rx", "tx" or "error"')


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise LineError(_short(line.decode("ascii", "backslashreplace")), "one JSON object") from None
    if not isinstance(value, dict):
        raise LineError(_short(value), "one JSON object")
    return value


def _integer(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if type(value) is not int:
        raise LineError(f'"{name}": {_short(value)}', "an integer")
    return value


def _integer_or_none(fields: dict[str, Any], name: str) -> int | None:
    return None if fields.get(name) is None else _integer(fields, name)


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise LineError(f'"{name}": {_short(value)}', "a text")
    return value


def _bytes(fields: dict[str, Any]) -> bytes:
    digits = _text(fields, "hex")
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        data = None
    if data is None or len(digits) != 2 * len(data):  # fromhex() accepts blanks
        raise LineError(f'"hex": {_short(digits)}', "pairs of hexadecimal digits")
    return data


def _short(value: object) -> str:
    """The value, short enough for an error text."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
