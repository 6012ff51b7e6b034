"""UHF readers with the M100 / YRM100 / YRM1003 chip set, 115200 8N1: `BB type cmd PL PL payload sum 7E`.

Type 00 is a command, 01 an answer, 02 an unsolicited notice; PL counts the payload, `sum` is the low byte of the sum
from the type to the payload. The end byte is not escaped inside, so only PL gives the length of a frame. A tag notice
carries the signal strength, PC, EPC and the tag's own checksum, but neither time nor antenna. In multiple inventory the
reader answers every round without a tag with an error, a sign that it is alive; it stops after the requested rounds, at
most 65535. After the Invelion protocol description 2.1, whose printed sum of the module answer (22) is a misprint.
"""

from whenabouts_hardware.crc16 import epc_crc
from whenabouts_hardware.decoding import BAD_BYTE, BAD_CHECKSUM, BAD_CONTENT, LOST_END, OVERRUN, Decoder
from whenabouts_hardware.frame import Frame
from whenabouts_hardware.reader import FIELD_SCAN_SOURCE, FIELD_SCAN_US, Reader, Sighting

START = 0xBB
END = 0x7E
PAYLOAD_BYTES_MAX = 255  # far above the longest documented answer; the field allows 65535
_OVERHEAD_BYTES = 7

COMMAND, ANSWER, NOTICE = 0, 1, 2
OP_VERSION = 0x03
OP_INVENTORY = 0x22
OP_INVENTORY_MANY = 0x27
OP_STOP = 0x28
OP_POWER = 0xB6
OP_ERROR = 0xFF
ROUNDS_MAX = 0xFFFF
# Every round without a tag is answered: after three seconds without an answer the rounds are over or the reader is off.
SILENCE_US = 3_000_000

ERROR_NO_TAG = 0x15
_ERRORS = {
    0x09: "read failed",
    0x10: "write failed",
    0x13: "lock or kill failed",
    ERROR_NO_TAG: "no tag, or a checksum error on air",
    0x16: "access denied",
    0x17: "unknown command",
    0x20: "no free channel",
}


def framed(type: int, op: int, payload: bytes = b"") -> bytes:
    """A frame; agents send commands, simulators the other types.

    Raises:
        ValueError: the payload is longer than 255 bytes.
    """
    if len(payload) > PAYLOAD_BYTES_MAX:
        raise ValueError(f"payload: found {len(payload)} bytes, expected at most {PAYLOAD_BYTES_MAX}")
    body = bytes([type, op]) + len(payload).to_bytes(2, "big") + payload
    return bytes([START]) + body + bytes([sum(body) & 0xFF, END])


def inventory(rounds: int) -> bytes:
    """The command to search for tags for a number of rounds. Raises ValueError outside 1..65535."""
    if not 1 <= rounds <= ROUNDS_MAX:
        raise ValueError(f"rounds: found {rounds}, expected 1..{ROUNDS_MAX}")
    return framed(COMMAND, OP_INVENTORY_MANY, bytes([0x22]) + rounds.to_bytes(2, "big"))


def tag_notice(epc: bytes, rssi: int) -> bytes:
    """The notice of one tag, whole words of EPC, rssi in dBm.

    Raises:
        ValueError: the EPC has an odd number of bytes or more than 62, or rssi does not fit a signed byte.
    """
    if len(epc) % 2 or len(epc) > 62:
        raise ValueError(f"epc: found {len(epc)} bytes, expected an even number up to 62")
    if not -128 <= rssi <= 127:
        raise ValueError(f"rssi: found {rssi}, expected -128..127 dBm")
    reply = (len(epc) // 2 << 11).to_bytes(2, "big") + epc
    return framed(NOTICE, OP_INVENTORY, bytes([rssi & 0xFF]) + reply + epc_crc(reply).to_bytes(2, "big"))


NO_TAG = framed(ANSWER, OP_ERROR, bytes([ERROR_NO_TAG]))
INVENTORY_ENDLESS = inventory(ROUNDS_MAX)
STOP = framed(COMMAND, OP_STOP)
STOPPED = framed(ANSWER, OP_STOP, b"\0")


class Yrm100Decoder(Decoder):
    """Frames of kind tag (rssi, pc, epc, epc_crc), no_tag, error (error, text), stop, answer and command (op, data)."""

    START = START
    FRAME_BYTES_MAX = PAYLOAD_BYTES_MAX + _OVERHEAD_BYTES

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        left = len(held) - at
        if left >= 2 and held[at + 1] > NOTICE:
            return None, False
        length = held[at + 3] << 8 | held[at + 4] if left >= 5 else 0
        if length > PAYLOAD_BYTES_MAX:
            self.counters[OVERRUN] += 1
            return None, False
        size = _OVERHEAD_BYTES + length
        if left < size:
            return (
                (self._damaged_frame(held, at, left, f"silence after {left} bytes", LOST_END), False) if final else None
            )
        end = at + size
        right = sum(held[at + 1 : end - 2]) & 0xFF
        if held[end - 2] != right:
            return self._damaged_frame(
                held, at, size, f"sum {held[end - 2]:02X}, expected {right:02X}", BAD_CHECKSUM
            ), False
        if held[end - 1] != END:
            return self._damaged_frame(held, at, size, f"{held[end - 1]:02X}, expected end byte 7E", BAD_BYTE), False
        return self._content(bytes(held[at:end]), self._offset + at), True

    def _damaged_frame(self, held: bytearray, at: int, size: int, problem: str, fault: str) -> Frame:
        return Frame("damaged", {}, bytes(held[at : at + size]), self._offset + at, "found " + problem, fault)

    def _content(self, raw: bytes, start: int) -> Frame:
        """The frame of these bytes, whose sum fits."""
        type, op, payload = raw[1], raw[2], raw[5:-2]
        fields: dict[str, object] = {"op": op}
        if type == NOTICE and op == OP_INVENTORY:
            return _tag(fields, payload, raw, start)
        if type == ANSWER and op == OP_ERROR and payload:
            fields["error"] = payload[0]
            fields["text"] = _ERRORS.get(payload[0], f"error {payload[0]:02X}")
            return Frame("no_tag" if payload[0] == ERROR_NO_TAG else "error", fields, raw, start)
        fields["data"] = payload.hex()
        kind = "command" if type == COMMAND else "stop" if op == OP_STOP else "answer"
        return Frame(kind, fields, raw, start)


def _tag(fields: "dict[str, object]", payload: bytes, raw: bytes, start: int) -> Frame:
    if len(payload) < 5:
        fields["data"] = payload.hex()
        return Frame("tag", fields, raw, start, f"found {len(payload)} bytes, expected at least 5", BAD_CONTENT)
    rssi, reply, checksum = payload[0], payload[1:-2], int.from_bytes(payload[-2:], "big")
    fields["rssi"] = rssi - 256 if rssi > 127 else rssi
    fields["pc"] = reply[:2].hex()
    fields["epc"] = reply[2:].hex() if reply[2:] else ""  # MicroPython 1.27 makes b"" of b"".hex()
    fields["epc_crc"] = f"{checksum:04x}"
    right = epc_crc(reply)
    if checksum != right:
        return Frame(
            "tag", fields, raw, start, f"found EPC checksum {checksum:04X}, expected {right:04X}", BAD_CHECKSUM
        )
    return Frame("tag", fields, raw, start)


def _tags(frame: Frame) -> "list[Sighting]":
    if frame.kind != "tag":
        return []
    return [Sighting(str(frame.fields["epc"]).upper(), {"rssi": frame.fields["rssi"]}, None, 1)]


READER = Reader(
    Yrm100Decoder,
    115200,
    FIELD_SCAN_US,
    FIELD_SCAN_SOURCE,
    _tags,
    start=(STOP, INVENTORY_ENDLESS),
    silence_us=SILENCE_US,
)
