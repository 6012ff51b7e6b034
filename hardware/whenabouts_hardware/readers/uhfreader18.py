"""UHFReader18 / RRU9809 / Chafon CF-RU5xxx, 57600 8N1: `Len Adr Cmd data CRC CRC`, answers with a status after the
command.

Len counts all bytes after itself. There is no start byte: a frame is found by its checksum (CRC-16/MCRF4XX over Len to
the last data byte, low byte first). After an error the decoder resynchronises at the next frame that fits, at the
latest when the line falls silent (readers leave 15 ms between frames). In a damaged stretch every position is tried,
and one in 65536 fits by chance: such a false answer can hide the frame that it overlaps. The reader takes one command
at a time; an inventory answers after up to its scan time, and nothing more precise is known of when a tag was seen. In
active mode it sends tags unasked (command EE). Network modules of the family push `56 00 00 00 00 00` every half
minute. The four-antenna UHFReader288 puts an antenna mask before and a signal byte after every EPC. After the
UHFReader18 manual 2.0.
"""

from whenabouts_hardware.crc16 import mcrf4xx
from whenabouts_hardware.decoding import BAD_CHECKSUM, BAD_CONTENT, LOST_END, Decoder
from whenabouts_hardware.frame import Frame
from whenabouts_hardware.polling import Question
from whenabouts_hardware.reader import Reader, Sighting

BROADCAST = 0xFF
LEN_MIN = 4  # Adr, Cmd, two of checksum: a command without data
ANSWER_LEN_MIN = 5
OP_INVENTORY = 0x01
OP_INFO = 0x21
OP_SCAN_TIME = 0x25
OP_BAUD = 0x28
OP_WORK_MODE = 0x35
OP_ACTIVE = 0xEE
HEARTBEAT = bytes([0x56, 0, 0, 0, 0, 0])  # no checksum, and 56 is also a valid length: all six bytes are compared

MORE_FOLLOW = 0x03
_WITH_TAGS = (0x01, 0x02, MORE_FOLLOW, 0x04)
STATUS_NO_TAG = 0xFB
_STATUS = {
    0x00: "success",
    0x01: "inventory done",
    0x02: "scan time over",
    MORE_FOLLOW: "more frames follow",
    0x04: "reader memory full",
    0xF9: "command failed",
    0xFA: "tags, but bad contact",
    STATUS_NO_TAG: "no tag",
    0xFC: "the tag reports an error",
    0xFD: "wrong length",
    0xFE: "illegal command or checksum error",
    0xFF: "wrong parameter",
}


def command(op: int, data: bytes = b"", address: int = 0) -> bytes:
    """A command frame.

    >>> command(OP_INVENTORY).hex()
    '040001db4b'
    """
    return _framed(bytes([address, op]) + data)


def answer(op: int, status: int, data: bytes = b"", address: int = 0) -> bytes:
    """A reader's frame."""
    return _framed(bytes([address, op, status]) + data)


def inventory_answer(epcs: "list[bytes]", status: int = 0x01, address: int = 0) -> bytes:
    """The answer to an inventory that found these tags; without tags, status "no tag"."""
    if not epcs:
        return answer(OP_INVENTORY, STATUS_NO_TAG, b"", address)
    return answer(
        OP_INVENTORY, status, bytes([len(epcs)]) + b"".join([bytes([len(epc)]) + epc for epc in epcs]), address
    )


def _framed(body: bytes) -> bytes:
    if len(body) + 2 > 255:
        raise ValueError(f"frame: found {len(body)} bytes of content, expected at most 253")
    raw = bytes([len(body) + 2]) + body
    return raw + mcrf4xx(raw).to_bytes(2, "little")


INVENTORY = command(OP_INVENTORY)
SCAN_US = 1_075_000  # default scan time of an inventory, 1 s, plus 75 ms that it may last longer (manual 2.0)
GAP_US = 15_000  # between frames, and after a collision (manual 2.0)
# Tags of one inventory are sent one by one after its scan: 3.5 ms for each of the most tags seen at once, assumed 64.
LATENCY_US = SCAN_US + 225_000
_ANTENNA_OF = {1: 1, 2: 2, 4: 3, 8: 4}  # by antenna mask with one bit


class UhfReader18Decoder(Decoder):
    """Frames of kind tags (status, num, epcs, tags), more_tags (as tags, and another frame follows), no_tag, active
    (one tag unasked), heartbeat, answer and command.

    `tags` is a list of records with epc and, from a UHFReader288, rssi (a byte without a known unit); then the frame
    has antenna_mask. An ambiguous answer is decoded as that of a UHFReader18. A frame of four bytes after its Len is a
    command; longer commands cannot be distinguished from answers and get that kind.
    """

    FRAME_BYTES_MAX = 256

    def _next(self, held: bytearray, at: int) -> int:
        while at < len(held) and held[at] < LEN_MIN:
            at += 1
        return at

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        size = held[at] + 1
        left = len(held) - at
        if held[at : at + len(HEARTBEAT)] == HEARTBEAT:
            return Frame("heartbeat", {}, HEARTBEAT, self._offset + at), True
        if left < size:
            if not final:
                return None
            error = f"found silence after {left} bytes, expected {size}"
            return Frame("damaged", {}, bytes(held[at:]), self._offset + at, error, LOST_END), False
        raw = bytes(held[at : at + size])
        right = mcrf4xx(raw[:-2])
        checksum = raw[-2] | raw[-1] << 8
        if checksum != right:
            error = f"found checksum {checksum:04X}, expected {right:04X}"
            return Frame("damaged", {}, raw, self._offset + at, error, BAD_CHECKSUM), False
        return _content(raw, self._offset + at), True


def _content(raw: bytes, start: int) -> Frame:
    """The frame of these bytes, whose checksum fits."""
    fields: dict[str, object] = {"address": raw[1], "recmd": raw[2]}
    if len(raw) - 1 < ANSWER_LEN_MIN:
        return Frame("command", fields, raw, start)
    status, data = raw[3], raw[4:-2]
    fields["status"] = status
    fields["text"] = _STATUS.get(status, f"status {status:02X}")
    if raw[2] == OP_ACTIVE:
        fields["epc"] = data.hex() if data else ""  # MicroPython 1.27 makes b"" of b"".hex()
        return Frame("active", fields, raw, start)
    if raw[2] == OP_INVENTORY and status in _WITH_TAGS:
        error = _tags(data, fields)
        return Frame(
            "tags" if status != MORE_FOLLOW else "more_tags",
            fields,
            raw,
            start,
            error,
            None if error is None else BAD_CONTENT,
        )
    fields["data"] = data.hex()
    kind = "no_tag" if raw[2] == OP_INVENTORY and status == STATUS_NO_TAG else "answer"
    return Frame(kind, fields, raw, start)


def _tags(data: bytes, fields: "dict[str, object]") -> "str | None":
    """Read an inventory's tags into the fields; returns None, or the error."""
    plain = _records(data, 0, 0)
    four_antennas = None if plain is not None else _records(data, 1, 1)
    records = plain if plain is not None else four_antennas
    if records is None:
        fields["data"] = data.hex()
        return f"found {len(data)} bytes of tags whose lengths do not add up"
    if four_antennas is not None:
        fields["antenna_mask"] = data[0]
        if len(records) == 1:
            fields["rssi"] = records[0]["rssi"]
            fields["epc"] = records[0]["epc"]
    fields["num"] = len(records)
    fields["epcs"] = [record["epc"] for record in records]
    fields["tags"] = records
    return None


def _records(data: bytes, at: int, behind: int) -> "list[dict[str, object]] | None":
    """The records from the count at `at` on, each with `behind` bytes after its EPC; None if they do not fill the data."""
    if len(data) <= at:
        return None
    count = data[at]
    at += 1
    records: list[dict[str, object]] = []
    for _ in range(count):
        if at >= len(data):
            return None
        size = data[at]
        end = at + 1 + size
        if end + behind > len(data):
            return None
        record: dict[str, object] = {"epc": data[at + 1 : end].hex() if end > at + 1 else ""}
        if behind:
            record["rssi"] = data[end]
        records.append(record)
        at = end + behind
    return records if at == len(data) else None


def _sightings(frame: Frame) -> "list[Sighting]":
    if frame.kind == "active":
        return [Sighting(str(frame.fields["epc"]).upper(), {}, None, 1)]
    records = frame.fields.get("tags")
    if not isinstance(records, list):
        return []
    antenna = _ANTENNA_OF.get(frame.fields.get("antenna_mask"))  # type: ignore[call-overload]
    sightings = []
    for record in records:
        attrs: dict[str, object] = {}
        if "rssi" in record:
            attrs["rssi_raw"] = record["rssi"]
        if antenna is not None:
            attrs["antenna"] = antenna
        sightings.append(Sighting(str(record["epc"]).upper(), attrs, None, 1))
    return sightings


READER = Reader(
    UhfReader18Decoder,
    57600,
    LATENCY_US,
    "default scan time of an inventory, 1 s, plus 75 ms that it may last longer (manual 2.0), and 64 answers",
    _sightings,
    question=Question(INVENTORY, ("tags", "no_tag"), LATENCY_US, GAP_US, parts=("more_tags",)),
)
