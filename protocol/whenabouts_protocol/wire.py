"""One MQTT message of readings: a batch.

What is the same for many readings stands once in the head (origin, clocks, streams, keys, attribute names), each reading
is a row of small integers: 21.9 bytes a reading at 50 a batch of 7 tags with two attributes. Layout in `wire.cddl`; the
decoder (`unbatch`) is the authority at run time, since schema tools accept more than the schema says (negative numbers for
unsigned ones, for example).

Rows hold differences to the row before (number, t_min), so readings may come in any order and numbers may jump. A key of
upper-case hexadecimal digits, as tags have, travels as bytes and costs half.
"""

from whenabouts_protocol import cbor
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.reading import CLOCK_STATES, KINDS, Reading, check_reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = 1  # major version: a decoder refuses any other
MAX_MESSAGE_BYTES = 262144  # above this nothing is parsed: a gateway's batch of 50 is about a kilobyte
MAX_BATCH_READINGS = 2000  # bounds what one message can make a receiver hold

# Keys of the head; every message of the protocol has the first three.
K_SCHEMA, K_SITE, K_GATEWAY, K_BOOT, K_SEQ, K_T_MIN, K_VCLOCKS, K_STREAMS, K_KEYS, K_ATTRS, K_ROWS = range(11)

_HEX = "0123456789ABCDEF"


class Dictionary:
    """Distinct values in order of first appearance, each with its index."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._index: dict[Any, int] = {}

    def index(self, value: "Any") -> int:
        """Its index, a new one when it comes for the first time."""
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
    streams, keys, attr_names, vclocks = Dictionary(), Dictionary(), Dictionary(), Dictionary()
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
                None if r.key is None else keys.index(pack_key(r.key)),
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
    from whenabouts_protocol.unbatch import readings_in  # apart, as a board that only sends has little memory

    return readings_in(data)


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


def pack_key(key: str) -> "str | bytes":
    """A key as it travels."""
    if len(key) % 2 or not key:
        return key
    for c in key:
        if c not in _HEX:
            return key
    return bytes.fromhex(key)
