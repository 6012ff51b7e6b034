"""Batches: one MQTT message of readings.

Values shared by many readings are sent once in the head (origin, clocks, streams, keys, attribute names); each reading
is a row of small integers: 21.9 bytes a reading at 50 a batch of 7 tags with two attributes. Layout in `wire.cddl`; the
decoder (`unbatch`) is the authority at run time, since schema tools accept more than the schema allows (negative
numbers for unsigned ones, for example).

Rows hold differences to the previous row (number, t_min), so readings may come in any order and numbers may jump. A key
of upper-case hexadecimal digits, as tags have, is sent as bytes, at half the size.
"""

from whenabouts_protocol.cbor import dumps
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.layout import (
    CLOCK_STATES,
    K_ATTRS,
    K_BOOT,
    K_GATEWAY,
    K_KEYS,
    K_ROWS,
    K_SCHEMA,
    K_SEQ,
    K_SITE,
    K_STREAMS,
    K_T_MIN,
    K_VCLOCKS,
    KINDS,
    MAX_BATCH_READINGS,
    MAX_MESSAGE_BYTES,
    SCHEMA,
    Dictionary,
    check_size,
    pack_key,
)
from whenabouts_protocol.reading import Reading, check_reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def encode_batch(readings: "list[Reading]") -> bytes:
    """Encode 1 to MAX_BATCH_READINGS readings of one boot of one gateway, in the order given.

    The same readings give the same bytes on every machine.

    Raises:
        WireError: no readings, too many, several origins, or a field was set to an invalid value.
    """
    try:
        for r in readings:
            check_reading(r)  # fields can be assigned after construction
    except (ValueError, TypeError, AttributeError) as error:
        raise WireError(f"batch: found a reading that has no wire form: {error}") from None
    return encode_checked(readings)


def encode_checked(readings: "list[Reading]") -> bytes:
    """Encode readings whose fields were checked before and have not changed since; see `encode_batch`.

    Raises:
        WireError: no readings, too many, several origins, or a message above MAX_MESSAGE_BYTES.
    """
    if not 0 < len(readings) <= MAX_BATCH_READINGS:
        raise WireError(f"batch: found {len(readings)} readings, expected 1 to {MAX_BATCH_READINGS}")
    first = readings[0]
    streams, keys, attr_names, vclocks = Dictionary(), Dictionary(), Dictionary(), Dictionary()
    rows: list[list[Any]] = []
    try:
        seq, t_min = first.seq, first.t_min
        for r in readings:
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
        message = dumps(
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
    check_size(message)
    return message


def decode_batch(data: bytes) -> "list[Reading]":
    """Decode the readings of a message, in the order they were encoded. Unknown head keys are ignored.

    Takes time and memory proportional to the message; a message above MAX_MESSAGE_BYTES is refused.

    Raises:
        WireError: anything other than a batch of this schema, whatever the bytes; the text names what was found and where.
    """
    from whenabouts_protocol.messages.unbatch import readings_in  # separate: a board that only sends has little memory

    return readings_in(data)


__all__ = ["MAX_BATCH_READINGS", "MAX_MESSAGE_BYTES", "decode_batch", "encode_batch", "encode_checked"]
