"""125 kHz EM4100 readers that send ASCII frames at 9600 8N1: RDM6300 / RDM630, and the decoder of `id12la`.

One decoder for both, because they differ only in a line end: `02`, ten hex digits (version or customer code, then the
id, most significant first), two hex digits of checksum, `03`; the ID-xxLA put `0D 0A` before the `03`. The checksum is
the XOR of the five bytes, which is weak: it misses flips of one bit in an even number of bytes. A frame with a bad
checksum is reported, not dropped, because two tags in the field at once produce such frames. Id 0 is a valid tag.
After the ID-12LA data sheet of 2013 and captures of RDM6300 readers.
"""

from whenabouts_hardware.decoding import BAD_BYTE, BAD_CHECKSUM, LOST_END, OVERRUN, Decoder
from whenabouts_hardware.frame import Frame
from whenabouts_hardware.reader import FIELD_SCAN_SOURCE, FIELD_SCAN_US, Reader, Sighting

STX = 0x02
ETX = 0x03
DIGITS = 12  # ten of payload, two of checksum
_DIGITS = b"0123456789ABCDEFabcdef"
_LINE_END = b"\r\n"


def encode(version: int, id: int, crlf: bool = False) -> bytes:
    """The frame of one tag, as sent by an RDM6300 or, with `crlf`, by an ID-12LA.

    Raises:
        ValueError: version is not a byte, or id not a 32-bit number.

    >>> encode(0x10, 8844356)
    b'\\x02100086F44426\\x03'
    """
    if not 0 <= version < 1 << 8:
        raise ValueError(f"version: found {version}, expected 0..255")
    if not 0 <= id < 1 << 32:
        raise ValueError(f"id: found {id}, expected 0..{(1 << 32) - 1}")
    payload = bytes([version]) + id.to_bytes(4, "big")
    text = payload.hex().upper() + f"{_xor(payload):02X}"
    return bytes([STX]) + text.encode() + (_LINE_END if crlf else b"") + bytes([ETX])


def _xor(payload: bytes) -> int:
    value = 0
    for byte in payload:
        value ^= byte
    return value


class Em4100Decoder(Decoder):
    """Frames of kind "tag" with version, id, checksum, and the two forms printed on cards.

    decimal: ten digits. wiegand: "facility,card" from the low three bytes.
    """

    START = STX
    FRAME_BYTES_MAX = 1 + DIGITS + 2 + 1

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        digits_end = at + 1 + DIGITS
        stop = min(digits_end, len(held))
        for i in range(at + 1, stop):
            if held[i] not in _DIGITS:
                return self._broken(held, at, i), False
        i = stop
        while i < len(held) and i < digits_end + 2 and i >= digits_end and held[i] in _LINE_END:
            i += 1
        if i == len(held):
            return (self._broken(held, at, i), False) if final else None
        if held[i] != ETX:
            return self._broken(held, at, i), False
        return self._tag(bytes(held[at : i + 1]), self._offset + at), True

    def _broken(self, held: bytearray, at: int, i: int) -> Frame:
        """The frame from `at` that is damaged at byte `i`; that byte is its last unless it begins another frame."""
        count = i - at - 1
        wanted = f"{DIGITS} hex digits" if count < DIGITS else "end byte 03"
        if i == len(held):
            fault, problem = LOST_END, "silence"
        elif held[i] == STX:
            fault, problem = LOST_END, "the next start byte"
        elif count >= DIGITS and (held[i] in _DIGITS or held[i] in _LINE_END):
            fault, problem = OVERRUN, f"byte {held[i]:02X}"
        else:
            fault, problem = BAD_BYTE, f"byte {held[i]:02X}"
        end = i if fault == LOST_END else i + 1
        error = f"found {problem} after {count} bytes, expected {wanted}"
        return Frame("damaged", {}, bytes(held[at:end]), self._offset + at, error, fault)

    def _tag(self, raw: bytes, start: int) -> Frame:
        payload = bytes.fromhex(raw[1 : DIGITS - 1].decode())
        checksum = int(raw[DIGITS - 1 : DIGITS + 1].decode(), 16)
        id = int.from_bytes(payload[1:], "big")
        fields: dict[str, object] = {
            "version": payload[0],
            "id": id,
            "checksum": checksum,
            "decimal": f"{id:010d}",
            "wiegand": "{},{}".format(payload[2], int.from_bytes(payload[3:], "big")),
        }
        right = _xor(payload)
        if right == checksum:
            return Frame("tag", fields, raw, start)
        error = f"found checksum {checksum:02X}, expected {right:02X}"
        return Frame("tag", fields, raw, start, error, BAD_CHECKSUM)


def tags(frame: Frame) -> "list[Sighting]":
    """The key is version and id, ten digits."""
    return [Sighting(frame.raw[1 : DIGITS - 1].decode().upper(), {}, None, 1)]


READER = Reader(Em4100Decoder, 9600, FIELD_SCAN_US, FIELD_SCAN_SOURCE, tags)
