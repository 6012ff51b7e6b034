"""One MQTT message of readings: a batch.

What is the same for many readings stands once in the head (origin, clocks, streams, keys, attribute names), each reading
is a row of small integers: 21.9 bytes a reading at 50 a batch of 7 tags with two attributes. Layout in `wire.cddl`; this
decoder is the authority at run time, since schema tools accept more than the schema says (negative numbers for unsigned
ones, for example).

Rows hold differences to the row before (number, t_min), so readings may come in any order and numbers may jump. A key of
upper-case hexadecimal digits, as tags have, travels as bytes and costs half.
"""

from whenabouts_protocol import cbor
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.reading import CLOCK_STATES, KINDS, Reading, check_reading, is_text, is_vclock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = 1  # major version: a decoder refuses any other
MAX_MESSAGE_BYTES = 262144  # above this nothing is parsed: a gateway's batch of 50 is about a kilobyte
MAX_BATCH_READINGS = 2000  # bounds what one message can make a receiver hold

# Keys of the head; every message of the protocol has the first three.
K_SCHEMA, K_SITE, K_GATEWAY, K_BOOT, K_SEQ, K_T_MIN, K_VCLOCKS, K_STREAMS, K_KEYS, K_ATTRS, K_ROWS = range(11)

_ROW_FIXED = 8  # number, t_min, width, stream, key, clock state, clock, value; then attributes if any
_HEX = "0123456789ABCDEF"


class _Dictionary:
    """Distinct values in order of first appearance, each with its index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._index: dict[Any, int] = {}

    def index(self, value: "Any") -> int:
        found = self._index.get(value)
        if found is None:
            found = self._index[value] = len(self.values)
            self.values.append(value)
        return found


def encode_batch(readings: "list[Reading]") -> bytes:
    """The message that carries these readings, 1 to MAX_BATCH_READINGS of one boot of one gateway, in the order given.

    The same readings give the same bytes on every machine.

    Raises:
        WireError: no readings, too many, of several origins, or a field was set to what a reading cannot hold.
    """
    if not 0 < len(readings) <= MAX_BATCH_READINGS:
        raise WireError(f"batch: found {len(readings)} readings, expected 1 to {MAX_BATCH_READINGS}")
    first = readings[0]
    streams, keys, attr_names, vclocks = _Dictionary(), _Dictionary(), _Dictionary(), _Dictionary()
    rows: list[list[Any]] = []
    try:
        seq, t_min = first.seq, first.t_min
        for r in readings:
            check_reading(r)  # fields can be assigned after construction
            if r.gateway != first.gateway or r.site != first.site or r.boot != first.boot:
                raise WireError(
                    f"batch: found readings of {first.site}/{first.gateway} boot {first.boot} and "
                    f"{r.site}/{r.gateway} boot {r.boot}, expected one origin"
                )
            row = [
                r.seq - seq,
                r.t_min - t_min,
                r.t_max - r.t_min,
                streams.index((r.stream, KINDS.index(r.kind), r.unit)),
                None if r.key is None else keys.index(_pack_key(r.key)),
                CLOCK_STATES.index(r.clock_state),
                vclocks.index(r.vclock),
                r.value,
            ]
            if r.attrs:
                names = tuple(sorted(r.attrs))
                row.append(attr_names.index(names))
                row.extend([r.attrs[name] for name in names])
            rows.append(row)
            seq, t_min = r.seq + 1, r.t_min
        message = cbor.dumps(
            {
                K_SCHEMA: SCHEMA,
                K_SITE: first.site,
                K_GATEWAY: first.gateway,
                K_BOOT: first.boot,
                K_SEQ: first.seq,
                K_T_MIN: first.t_min,
                K_VCLOCKS: vclocks.values,
                K_STREAMS: streams.values,
                K_KEYS: keys.values,
                K_ATTRS: attr_names.values,
                K_ROWS: rows,
            }
        )
    except WireError:
        raise
    except (ValueError, TypeError, AttributeError) as error:
        raise WireError(f"batch: found a reading that has no wire form: {error}") from None
    _check_size(message)
    return message


def decode_batch(data: bytes) -> "list[Reading]":
    """The readings of a message, in the order they were encoded. Unknown head keys are ignored.

    Takes time and memory proportional to the message, which is refused above MAX_MESSAGE_BYTES.

    Raises:
        WireError: anything else than a batch of this schema, whatever the bytes; the text says what and where.
    """
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


def read_head(data: bytes) -> "dict[Any, Any]":
    """The map of any message of this protocol, its size and schema checked.

    Raises:
        WireError: too large, no map, or another schema.
    """
    _check_size(data)
    head = cbor.loads(data)
    if type(head) is not dict:
        raise WireError(f"message: found {type(head).__name__}, expected a map")
    schema = head.get(K_SCHEMA)
    if type(schema) is not int or schema != SCHEMA:
        shown = schema if type(schema) is int else "none"
        raise WireError(f"message schema: found {shown}, expected {SCHEMA}; a newer gateway needs a newer receiver")
    return head


def _check_size(data: bytes) -> None:
    if len(data) > MAX_MESSAGE_BYTES:
        raise WireError(f"message: found {len(data)} bytes, expected at most {MAX_MESSAGE_BYTES}")


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


def _pack_key(key: str) -> "str | bytes":
    if len(key) % 2 or not key:
        return key
    for c in key:
        if c not in _HEX:
            return key
    return bytes.fromhex(key)


def _unpack_key(entry: "Any") -> str:
    key = entry.hex().upper() if type(entry) is bytes else entry
    if not is_text(key):
        raise WireError("batch keys: found an entry that is no short text or bytes")
    return str(key)
