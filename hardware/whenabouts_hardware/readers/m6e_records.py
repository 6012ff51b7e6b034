"""The content of Mercury answers: tag records, their metadata, streamed statistics, the version.

A record carries only the metadata whose flags are set, in flag order, then the tag's reply: its length in bits, PC, XPC
words, EPC and the tag's own CRC. That CRC is a second checksum at no cost: it rejects serial errors that the first one
missed. Order after the vendor's SDK 1.35; a widespread library puts the EPC CRC one byte late and calls the GPIO byte
reserved, but only this order makes the checksums of all captured records fit.
"""

from struct import calcsize, unpack_from

from whenabouts_hardware.crc16 import epc_crc
from whenabouts_hardware.frame import as_hex
from whenabouts_hardware.readers.m6e_frames import (
    META_ANTENNA,
    META_BRAND,
    META_DATA,
    META_FREQUENCY,
    META_GPIO,
    META_KNOWN,
    META_LINK_FREQUENCY,
    META_PHASE,
    META_PROTOCOL,
    META_Q,
    META_READ_COUNT,
    META_RSSI,
    META_TARGET,
    META_TIMESTAMP,
    PROTOCOL_GEN2,
)

_DATA_FAILED_BITS = 0x8000  # in place of the length: the embedded operation failed, an error word follows
_STAT_TEMPERATURE = 0x100

# Unsigned fields of a fixed size, in flag order; fields with a special form have size 0.
_METADATA = (
    (META_READ_COUNT, "read_count", 1),
    (META_RSSI, "rssi", 0),
    (META_ANTENNA, "antenna", 0),
    (META_FREQUENCY, "freq_khz", 3),
    (META_TIMESTAMP, "ts_ms", 4),
    (META_PHASE, "phase", 2),
    (META_PROTOCOL, "protocol", 1),
    (META_DATA, "data_bits", 0),
    (META_GPIO, "gpio", 1),
    (META_Q, "q", 1),
    (META_LINK_FREQUENCY, "link_frequency", 1),
    (META_TARGET, "target", 1),
)
_GEN2_ONLY = META_Q | META_LINK_FREQUENCY | META_TARGET

# A reader sends the same metadata with every tag: a few layouts are cached.
_LAYOUTS_MAX = 8
_CODES = {1: "B", 2: "H", 3: "3s", 4: "I"}
_layouts: "dict[int, tuple[str, int, tuple[str, ...]]]" = {}


class ContentError(Exception):
    """The content of a frame contradicts itself; the decoder turns this into the frame's `error`."""


class Cursor:
    """Reads big-endian fields off a frame's data, refusing to pass its end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int, name: str) -> bytes:
        """The next `size` bytes; `name` is for the error."""
        at = self.at
        end = at + size
        if end > len(self.data):
            raise ContentError(f"{name}: found {self.left()} bytes, expected {size}")
        self.at = end
        return self.data[at:end]

    def uint(self, size: int, name: str) -> int:
        return int.from_bytes(self.take(size, name), "big")

    def ebv(self, name: str) -> int:
        """An extensible bit vector: seven bits a byte, the top bit is set if another byte follows."""
        value = 0
        for _ in range(4):
            byte = self.uint(1, name)
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value
        raise ContentError(f"{name}: found more than 4 bytes of a bit vector, expected its end")

    def end(self) -> None:
        if self.left():
            raise ContentError(f"found {self.left()} bytes behind the content, expected none")


def tag_record(cursor: Cursor, metadata: int, fields: "dict[str, object]") -> "str | None":
    """Read one tag record into `fields`; returns None, or the error of the EPC CRC.

    Raises:
        ContentError: unknown metadata flags, or the record extends beyond the frame.
    """
    if metadata & ~META_KNOWN:
        raise ContentError(f"metadata: found flags {metadata:04X}, expected none beyond {META_KNOWN:04X}")
    if _read_at_once(_layouts.get(metadata) or _layout(metadata), cursor, fields):
        return _reply(cursor, PROTOCOL_GEN2, bool(metadata & META_BRAND), fields)
    protocol = PROTOCOL_GEN2
    for flag, name, size in _METADATA:
        if not metadata & flag or (flag & _GEN2_ONLY and protocol != PROTOCOL_GEN2):
            continue
        if size:
            value = cursor.uint(size, name)
            fields[name] = value
            if flag == META_PROTOCOL:
                protocol = value
        elif flag == META_RSSI:
            fields[name] = _int8(cursor.uint(1, name))
        elif flag == META_ANTENNA:
            fields[name] = _ports(cursor.uint(1, name))
        else:
            _embedded_data(cursor, fields)
    return _reply(cursor, protocol, bool(metadata & META_BRAND), fields)


def _layout(metadata: int) -> "tuple[str, int, tuple[str, ...]]":
    """(format, size, names) of this metadata for a Gen2 tag without embedded data."""
    form = ">"
    names = []
    for flag, name, size in _METADATA:
        if metadata & flag:
            form += "b" if flag == META_RSSI else "H" if flag == META_DATA else _CODES[size or 1]
            names.append(name)
    layout = form, calcsize(form), tuple(names)
    if len(_layouts) < _LAYOUTS_MAX:
        _layouts[metadata] = layout
    return layout


def _read_at_once(layout: "tuple[str, int, tuple[str, ...]]", cursor: Cursor, fields: "dict[str, object]") -> bool:
    """Read all metadata of a Gen2 tag; False, with nothing read, if the metadata does not have this layout."""
    form, size, names = layout
    end = cursor.at + size
    if end > len(cursor.data):
        return False
    values = dict(zip(names, unpack_from(form, cursor.data, cursor.at)))
    if values.get("protocol", PROTOCOL_GEN2) != PROTOCOL_GEN2 or values.get("data_bits"):
        return False
    if "antenna" in values:
        values["antenna"] = _ports(values["antenna"])
    if "freq_khz" in values:
        values["freq_khz"] = int.from_bytes(values["freq_khz"], "big")
    if "data_bits" in values:
        values["data"] = ""
    fields.update(values)
    cursor.at = end
    return True


def _ports(byte: int) -> str:
    """Transmitting and receiving port of an antenna byte."""
    return f"{byte >> 4 or 16}/{byte & 15 or 16}"


def _int8(byte: int) -> int:
    return byte - 256 if byte >= 128 else byte


def _embedded_data(cursor: Cursor, fields: "dict[str, object]") -> None:
    bits = cursor.uint(2, "data_bits")
    if bits == _DATA_FAILED_BITS:
        fields["data_bits"] = 0
        fields["data_error"] = cursor.take(2, "data_error").hex()
        return
    fields["data_bits"] = bits
    fields["data"] = as_hex(cursor.take((bits + 7) // 8, "data"))


def _reply(cursor: Cursor, protocol: int, brand: bool, fields: "dict[str, object]") -> "str | None":
    """The tag's answer: length in bits of all that follows, PC, XPC words, EPC, brand id, CRC.

    Only Gen2 has a PC and this CRC; another protocol's CRC is given unverified.
    """
    if protocol == PROTOCOL_GEN2 and not brand:
        end = _plain_reply_end(cursor)
        if end:
            return _plain_reply(cursor, end, fields)
    bits = cursor.uint(2, "epc_bits")
    fields["epc_bits"] = bits
    reply = Cursor(cursor.take((bits + 7) // 8, "epc"))
    gen2 = protocol == PROTOCOL_GEN2
    if gen2:
        pc = reply.take(2, "pc")
        fields["pc"] = pc.hex()
        if pc[0] & 0x02:
            xpc = reply.take(2, "xpc")
            if xpc[0] & 0x80:
                xpc += reply.take(2, "xpc")
            fields["xpc"] = xpc.hex()
    tail = 4 if brand else 2
    epc = reply.take(max(0, reply.left() - tail), "epc")
    fields["epc"] = as_hex(epc)
    if brand:
        fields["brand"] = reply.take(2, "brand").hex()
    covered = reply.data[: reply.at]
    checksum = reply.uint(2, "epc_crc")
    fields["epc_crc"] = f"{checksum:04x}"
    right = epc_crc(covered)
    if gen2 and checksum != right:
        return f"found EPC checksum {checksum:04X}, expected {right:04X}"
    return None


def _plain_reply_end(cursor: Cursor) -> int:
    """End index of the answer of a Gen2 tag without XPC words; 0 if it has another form or is incomplete."""
    data, at = cursor.data, cursor.at
    if at + 6 > len(data) or data[at + 2] & 0x02:
        return 0
    size = ((data[at] << 8 | data[at + 1]) + 7) // 8
    end = at + 2 + size
    return end if size >= 4 and end <= len(data) else 0


def _plain_reply(cursor: Cursor, end: int, fields: "dict[str, object]") -> "str | None":
    """Fast path for almost every tag: read the parts of a plain answer at once: length, PC, EPC, CRC."""
    data, at = cursor.data, cursor.at
    fields["epc_bits"] = data[at] << 8 | data[at + 1]
    fields["pc"] = data[at + 2 : at + 4].hex()
    fields["epc"] = as_hex(data[at + 4 : end - 2])
    fields["epc_crc"] = data[end - 2 : end].hex()
    cursor.at = end
    checksum = data[end - 2] << 8 | data[end - 1]
    right = epc_crc(data[at + 2 : end - 2])
    return None if checksum == right else f"found EPC checksum {checksum:04X}, expected {right:04X}"


def statistics(cursor: Cursor, fields: "dict[str, object]") -> None:
    """Read streamed statistics: `stats` is a list of (id, hex); also the temperature as `temp` in degrees Celsius."""
    fields["stat_flags"] = cursor.ebv("stat_flags")
    stats: list[tuple[int, str]] = []
    while cursor.left():
        id = cursor.ebv("stat id")
        value = cursor.take(cursor.uint(1, "stat length"), "stat value")
        stats.append((id, as_hex(value)))
        if id == _STAT_TEMPERATURE and len(value) == 1:
            fields["temp"] = _int8(value[0])
    fields["stats"] = stats


def version(cursor: Cursor, fields: "dict[str, object]") -> None:
    """Read boot loader, hardware and firmware versions, the firmware's date and the supported protocols, as hex."""
    for name in ("bootloader", "hardware", "fw_date", "fw", "protocols"):
        fields[name] = cursor.take(4, name).hex()


def temperature(cursor: Cursor, fields: "dict[str, object]") -> None:
    """Read the answer to a temperature command, degrees Celsius."""
    fields["temp"] = _int8(cursor.uint(1, "temp"))
