"""Frames of the ThingMagic / JADAK Mercury serial protocol (M6e Nano, M7E Hecto): checksum and builders.

Host to reader `FF LEN OP data CRC`, reader to host `FF LEN OP STATUS data CRC`; LEN counts only the data. The agent
sends the commands, simulators send the answers. Layout after the vendor's SDK 1.35 and the SparkFun library; every
constant here was compared with captured frames.
Cost: the CRC takes two table steps a byte, from a table of 16 entries that a board can spare.
"""

from whenabouts_hardware.crc16 import TABLE_1021, crc_hqx, epc_crc

START = 0xFF  # first byte of every frame; not escaped inside one
COMMAND_DATA_BYTES_MAX = 250  # largest LEN of a command
ANSWER_DATA_BYTES_MAX = 0xF8  # largest LEN of an answer; the vendor's SDK treats more as garbage
COMMAND_OVERHEAD_BYTES = 5  # FF LEN OP CRC CRC
ANSWER_OVERHEAD_BYTES = 7  # the same and the status word

OP_VERSION = 0x03
OP_BOOT = 0x04
OP_READ_MULTIPLE = 0x22
OP_GET_TAG_BUFFER = 0x29
OP_GET_TEMPERATURE = 0x72
OP_SET_PROTOCOL = 0x93
OP_MULTI_PROTOCOL = 0x2F
OP_SET_ANTENNA = 0x91
OP_SET_READ_POWER = 0x92
OP_SET_REGION = 0x97
OP_SET_OPTIONAL = 0x9A
OP_AUTONOMOUS = 0x9D

STATUS_OK = 0x0000
STATUS_NO_TAGS = 0x0400

# Metadata flags: which fields a tag record carries, in this order.
META_READ_COUNT = 0x0001
META_RSSI = 0x0002
META_ANTENNA = 0x0004
META_FREQUENCY = 0x0008
META_TIMESTAMP = 0x0010
META_PHASE = 0x0020
META_PROTOCOL = 0x0040
META_DATA = 0x0080
META_GPIO = 0x0100
META_Q = 0x0200
META_LINK_FREQUENCY = 0x0400
META_TARGET = 0x0800
META_BRAND = 0x1000
META_KNOWN = 0x1FFF
META_COMMON = 0x01FF  # requested by START_CONTINUOUS: all up to GPIO

PROTOCOL_GEN2 = 5
OPTION_METADATA = 0x10
OPTION_MULTI_SELECT = 0x88  # prefix byte in front of the option on newer firmware
SEARCH_STREAMING = 0x0008  # search flag: send each tag when it is seen, keep none in the buffer
SEARCH_FLAGS = 0x001B  # large population + streaming + use the antenna list
RESPONSE_TAG = 1
RESPONSE_STATISTICS = 2
RESPONSE_END = 0
CYCLE_MS = 1000  # search cycle of START_CONTINUOUS
EPC_BYTES_MAX = 62  # the five length bits of the protocol control word count 31 words


def crc(data: bytes, value: int = 0xFFFF) -> int:
    """Frame checksum over LEN up to the last data byte (the FF is left out); high byte first on the wire.

    Not CRC-16/CCITT-FALSE: bits enter at the low end and no sixteen zero bits are appended, as in the vendor's SDK.
    `value` continues an earlier sum.

    >>> hex(crc(bytes([0x00, 0x03])))
    '0x1d0c'
    """
    if crc_hqx is not None and len(data) >= 2:
        # There the bits enter at the top: the start value is advanced by 16 bits, the last two bytes are XORed unchanged.
        start = _FRESH if value == 0xFFFF else _entered(b"\0\0", value)
        return crc_hqx(data[:-2], start) ^ (data[-2] << 8 | data[-1])
    return _entered(data, value)


def _entered(data: bytes, value: int) -> int:
    """The checksum by its definition, half a byte at a time."""
    table = TABLE_1021
    for byte in data:
        value = ((value << 4 | byte >> 4) & 0xFFFF) ^ table[value >> 12]
        value = ((value << 4 | byte & 15) & 0xFFFF) ^ table[value >> 12]
    return value


_FRESH = _entered(b"\0\0", 0xFFFF)


def _uint(name: str, value: int, size: int) -> bytes:
    """`value` as `size` bytes, most significant first."""
    if not 0 <= value < 1 << 8 * size:
        raise ValueError(f"{name}: found {value}, expected 0..{(1 << 8 * size) - 1}")
    return value.to_bytes(size, "big")


def _framed(head: bytes, data: bytes, data_bytes_max: int) -> bytes:
    if len(data) > data_bytes_max:
        raise ValueError(f"frame data: found {len(data)} bytes, expected at most {data_bytes_max}")
    body = bytes([len(data)]) + head + data
    return bytes([START]) + body + crc(body).to_bytes(2, "big")


def command(op: int, data: bytes = b"") -> bytes:
    """A frame from host to reader.

    Raises:
        ValueError: op is not a byte or data is longer than 250 bytes.
    """
    return _framed(_uint("op", op, 1), data, COMMAND_DATA_BYTES_MAX)


def answer(op: int, status: int = STATUS_OK, data: bytes = b"") -> bytes:
    """A frame from reader to host; `status` 0 is success, `m6e_status` names the others.

    Raises:
        ValueError: op is not a byte, status not a 16-bit number, or data is longer than 248 bytes.
    """
    return _framed(_uint("op", op, 1) + _uint("status", status, 2), data, ANSWER_DATA_BYTES_MAX)


def _antenna_byte(antenna: str) -> int:
    """`tx/rx` ports 1..16 as two nibbles, with 16 encoded as 0."""
    tx, _, rx = antenna.partition("/")
    if not (tx.isdigit() and rx.isdigit() and 1 <= int(tx) <= 16 and 1 <= int(rx) <= 16):
        raise ValueError(f"antenna: found {antenna!r}, expected tx/rx with ports 1..16, as in '1/1'")
    return (int(tx) & 15) << 4 | int(rx) & 15


def tag_notice(
    epc: bytes,
    *,
    rssi: int,
    antenna: str,
    freq_khz: int,
    ts_ms: int,
    read_count: int = 1,
    phase: int = 0,
    gpio: int = 0,
) -> bytes:
    """The stream frame of one Gen2 tag, with the metadata requested by START_CONTINUOUS and a correct EPC CRC.

    `epc`: whole 16-bit words, at most 62 bytes. `rssi`: dBm, -128..127. `antenna`: "tx/rx". `ts_ms`: milliseconds since
    the search cycle began. `phase`: degrees.

    Raises:
        ValueError: a value does not fit its field.
    """
    if len(epc) % 2 or len(epc) > EPC_BYTES_MAX:
        raise ValueError(f"epc: found {len(epc)} bytes, expected an even number up to {EPC_BYTES_MAX}")
    if not -128 <= rssi <= 127:
        raise ValueError(f"rssi: found {rssi}, expected -128..127 dBm")
    reply = (len(epc) // 2 << 11).to_bytes(2, "big") + epc
    reply += epc_crc(reply).to_bytes(2, "big")
    return answer(
        OP_READ_MULTIPLE,
        STATUS_OK,
        bytes([OPTION_METADATA])
        + SEARCH_FLAGS.to_bytes(2, "big")
        + META_COMMON.to_bytes(2, "big")
        + bytes([RESPONSE_TAG])
        + _uint("read_count", read_count, 1)
        + bytes([rssi & 0xFF, _antenna_byte(antenna)])
        + _uint("freq_khz", freq_khz, 3)
        + _uint("ts_ms", ts_ms, 4)
        + _uint("phase", phase, 2)
        + bytes([PROTOCOL_GEN2, 0, 0])  # no embedded data: its length in bits is 0
        + _uint("gpio", gpio, 1)
        + (8 * len(reply)).to_bytes(2, "big")
        + reply,
    )


def start_continuous(cycle_ms: int = CYCLE_MS) -> bytes:
    """The command that makes the reader search without end and send each tag when it is seen.

    A keep-alive ends every cycle of `cycle_ms` without tags, so the stamp of a tag without a timestamp is at most this
    wide.
    """
    return command(
        OP_MULTI_PROTOCOL,
        bytes([0, 0, 1, OP_READ_MULTIPLE, 0, 0, PROTOCOL_GEN2, 7, OP_READ_MULTIPLE, OPTION_METADATA])
        + SEARCH_FLAGS.to_bytes(2, "big")
        + _uint("cycle_ms", cycle_ms, 2)
        + META_COMMON.to_bytes(2, "big"),
    )


def set_region(region: int) -> bytes:
    """The command that sets the regulatory region by the vendor's code, for example 0D North America 2."""
    return command(OP_SET_REGION, _uint("region", region, 1))


def set_read_power(centi_dbm: int) -> bytes:
    """The command that sets the transmit power for reading in hundredths of dBm; an M6e Nano allows 2700."""
    return command(OP_SET_READ_POWER, _uint("centi_dbm", centi_dbm, 2))


VERSION = command(OP_VERSION)
PROTOCOL_GEN2_ONLY = command(OP_SET_PROTOCOL, bytes([0, PROTOCOL_GEN2]))
ANTENNA_SEARCH_1_1 = command(OP_SET_ANTENNA, bytes([2, 1, 1]))  # the list that the search flags refer to: only port 1
READ_FILTER_OFF = command(OP_SET_OPTIONAL, bytes([1, 0x0C, 0]))  # report a tag again each time it is seen
START_CONTINUOUS = start_continuous()
START_ACK = answer(OP_MULTI_PROTOCOL, STATUS_OK, bytes([1, OP_READ_MULTIPLE, 0, 0]))
STOP = command(OP_MULTI_PROTOCOL, bytes([0, 0, 2]))
KEEPALIVE = answer(OP_READ_MULTIPLE, STATUS_NO_TAGS)
