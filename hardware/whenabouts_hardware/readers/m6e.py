"""ThingMagic / JADAK Mercury readers (M6e Nano, M7E Hecto) on a serial line, 115200 8N1: decoder of their frames.

Commands (`FF LEN OP data CRC`) and answers (`FF LEN OP STATUS data CRC`) have the same start byte. It is not escaped
within frames, and LEN does not count the status: only the fitting checksum shows the direction. A damaged LEN claims up
to 255 bytes; frames within them are found when the claim is refuted, at the latest by `flush` on a silent line. Layouts
after the vendor's SDK 1.35 and captures; multi-select (88) forms only after an M7E emulator and SDK code.
"""

from struct import unpack_from

from whenabouts_hardware.decoding import BAD_CHECKSUM, BAD_CONTENT, LOST_END, OVERRUN, Decoder
from whenabouts_hardware.frame import Frame, as_hex
from whenabouts_hardware.reader import Reader, Sighting
from whenabouts_hardware.readers.m6e_frames import (
    ANSWER_DATA_BYTES_MAX,
    ANSWER_OVERHEAD_BYTES,
    ANTENNA_SEARCH_1_1,
    COMMAND_DATA_BYTES_MAX,
    COMMAND_OVERHEAD_BYTES,
    CYCLE_MS,
    OP_AUTONOMOUS,
    OP_BOOT,
    OP_GET_TAG_BUFFER,
    OP_GET_TEMPERATURE,
    OP_MULTI_PROTOCOL,
    OP_READ_MULTIPLE,
    OP_VERSION,
    OPTION_METADATA,
    OPTION_MULTI_SELECT,
    PROTOCOL_GEN2_ONLY,
    READ_FILTER_OFF,
    RESPONSE_STATISTICS,
    RESPONSE_TAG,
    SEARCH_STREAMING,
    START,
    START_CONTINUOUS,
    STATUS_NO_TAGS,
    STATUS_OK,
    STOP,
    crc,
    set_read_power,
    set_region,
)
from whenabouts_hardware.readers.m6e_records import ContentError, Cursor, statistics, tag_record, temperature, version
from whenabouts_hardware.readers.m6e_status import status_text

MODES = ("reader", "host", "both")
_CYCLE_US = 1000 * CYCLE_MS  # of START_CONTINUOUS
_ATTRS = ("freq_khz", "gpio", "phase", "rssi")


class M6eDecoder(Decoder):
    """Frames of one direction ("reader": answers, "host": commands) or of both.

    Kinds of answers: tag (fields of the record), tags (field `tags`: a list of records), keepalive, status (status,
    text), stats, boot, autonomous, stop, answer (op, status, data). Commands are of kind command (op, data).

    "both" takes the first checksum that fits. The command's comes first, so one answer in 65536 is decoded as a command
    and two bytes of noise: good for a capture of both wires, not for an agent, which knows its direction.
    """

    START = START
    FRAME_BYTES_MAX = max(
        COMMAND_DATA_BYTES_MAX + COMMAND_OVERHEAD_BYTES,
        ANSWER_DATA_BYTES_MAX + ANSWER_OVERHEAD_BYTES,
    )
    OPTIONS = ("mode",)

    def __init__(self, mode: str = "both") -> None:
        """Raises ValueError for an unknown mode."""
        if mode not in MODES:
            raise ValueError("m6e mode: found {!r}, expected one of {}".format(mode, ", ".join(MODES)))
        super().__init__()
        # (overhead, largest LEN) of each direction looked for, the shorter frame first.
        shapes: list[tuple[int, int]] = []
        if mode != "reader":
            shapes.append((COMMAND_OVERHEAD_BYTES, COMMAND_DATA_BYTES_MAX))
        if mode != "host":
            shapes.append((ANSWER_OVERHEAD_BYTES, ANSWER_DATA_BYTES_MAX))
        self._shapes = shapes

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        available = len(held) - at
        if available < 2:
            return self._short(held, at, 2) if final else None
        length = held[at + 1]
        error = None
        size = 0
        for overhead, length_max in self._shapes:
            if length > length_max:
                continue
            size = length + overhead
            if available < size:
                return self._short(held, at, size) if final else None
            raw = bytes(held[at : at + size])
            checksum = raw[-2] << 8 | raw[-1]
            right = crc(raw[1:-2])
            if checksum == right:
                return self._content(raw, overhead, self._offset + at), True
            error = f"found checksum {checksum:04X}, expected {right:04X}"
        if error is None:
            self.counters[OVERRUN] += 1
            return None, False
        return Frame("damaged", {}, bytes(held[at : at + size]), self._offset + at, error, BAD_CHECKSUM), False

    def _short(self, held: bytearray, at: int, size: int) -> "tuple[Frame, bool]":
        error = f"found silence after {len(held) - at} bytes, expected {size}"
        return Frame("damaged", {}, bytes(held[at:]), self._offset + at, error, LOST_END), False

    def _content(self, raw: bytes, overhead: int, start: int) -> Frame:
        """The frame of these bytes, whose checksum fits."""
        if overhead == COMMAND_OVERHEAD_BYTES:
            return Frame("command", {"op": raw[2], "data": as_hex(raw[3:-2])}, raw, start)
        op = raw[2]
        status = raw[3] << 8 | raw[4]
        fields: dict[str, object] = {"op": op, "status": status}
        cursor = Cursor(raw[5:-2])
        kind = _kind(op, status, cursor.data)
        try:
            error = _read(kind, op, status, cursor, fields)
        except ContentError as e:
            error = str(e)
        if kind in _WITH_DATA or error is not None:
            fields["data"] = as_hex(cursor.data)
        return Frame(kind, fields, raw, start, error, None if error is None else BAD_CONTENT)


_MULTI_SELECT = bytes([OPTION_MULTI_SELECT])
_WITH_DATA = ("status", "boot", "autonomous", "stop", "answer")


def _kind(op: int, status: int, data: bytes) -> str:
    """The kind of an answer; an empty or unknown stream frame is a plain "answer"."""
    if op == OP_BOOT:
        return "boot"
    if op == OP_AUTONOMOUS:
        return "autonomous"
    if status != STATUS_OK:
        return "keepalive" if op == OP_READ_MULTIPLE and status == STATUS_NO_TAGS else "status"
    if op == OP_MULTI_PROTOCOL and data[:1] == b"\x02":
        return "stop"
    if op == OP_GET_TAG_BUFFER and data[:2] != b"\x00\x00" and data:
        return "tags"
    if op == OP_READ_MULTIPLE:
        return _stream_kind(data)
    return "answer"


def _stream_offset(data: bytes) -> int:
    """Index of the option byte: after the multi-select prefix, if there is one."""
    return 1 if data[:1] == _MULTI_SELECT else 0


def _stream_kind(data: bytes) -> str:
    """Kind of a streamed frame by its response type; the answer to a timed search has none."""
    at = _stream_offset(data)
    if len(data) < at + 3 or not data[at + 2] & SEARCH_STREAMING:
        return "answer"
    response_at = at + (5 if data[at] & OPTION_METADATA else 3)
    response = data[response_at] if response_at < len(data) else RESPONSE_TAG
    return "stats" if response == RESPONSE_STATISTICS else "tag" if response == RESPONSE_TAG else "answer"


def _read(kind: str, op: int, status: int, cursor: Cursor, fields: "dict[str, object]") -> "str | None":
    """Read the content into `fields`; returns None, or the error of a tag's checksum.

    Raises:
        ContentError: the lengths inside contradict the frame's.
    """
    if kind == "tags":
        return _tag_buffer(cursor, fields)
    if kind == "keepalive":
        if cursor.left() >= 4:
            fields["elapsed_ms"] = int.from_bytes(cursor.data[-4:], "big")
    elif kind == "status":
        fields["text"] = status_text(status)
    elif status != STATUS_OK:
        pass  # a boot or autonomous message with an error has no content
    elif op == OP_READ_MULTIPLE:
        return _read_multiple(kind, cursor, fields)
    elif op == OP_VERSION or (kind == "boot" and cursor.left() == 20):
        version(cursor, fields)
    elif op == OP_GET_TEMPERATURE:
        temperature(cursor, fields)
    return None


def _read_multiple(kind: str, cursor: Cursor, fields: "dict[str, object]") -> "str | None":
    """An answer of OP 22: option, search flags, then a streamed record or a timed search's number of tags."""
    if not cursor.left():
        return None
    cursor.at = at = _stream_offset(cursor.data)
    if kind == "tag" and len(cursor.data) >= at + 6 and cursor.data[at] & OPTION_METADATA:
        # Fast path for almost every frame: reads the four fields below at once.
        option, search_flags, metadata, response = unpack_from(">BHHB", cursor.data, at)
        fields["option"], fields["search_flags"] = option, search_flags
        fields["metadata"], fields["response_type"] = metadata, response
        cursor.at = at + 6
        error = tag_record(cursor, metadata, fields)
        cursor.end()
        return error
    fields["option"] = option = cursor.uint(1, "option")
    fields["search_flags"] = search_flags = cursor.uint(2, "search_flags")
    if not search_flags & SEARCH_STREAMING:
        fields["tags"] = cursor.uint(4, "tags")
        return None
    metadata = 0
    if option & OPTION_METADATA:
        fields["metadata"] = metadata = cursor.uint(2, "metadata")
    fields["response_type"] = cursor.uint(1, "response_type")
    error = None
    if kind == "stats":
        statistics(cursor, fields)
    elif kind == "tag":
        error = tag_record(cursor, metadata, fields)
        cursor.end()
    return error


def _tag_buffer(cursor: Cursor, fields: "dict[str, object]") -> "str | None":
    """An answer of OP 29: metadata flags, an option byte, the number of records, the records."""
    metadata = cursor.uint(2, "metadata")
    fields["metadata"] = metadata
    fields["option"] = cursor.uint(1, "option")
    count = cursor.uint(1, "count")
    tags: list[dict[str, object]] = []
    fields["tags"] = tags
    error = None
    for i in range(count):
        record: dict[str, object] = {}
        wrong = tag_record(cursor, metadata, record)
        tags.append(record)
        if wrong is not None and error is None:
            error = f"record {i + 1} of {count}: {wrong}"
    cursor.end()
    return error


def _tags(frame: Frame) -> "list[Sighting]":
    records = [frame.fields] if frame.kind == "tag" else frame.fields["tags"] if frame.kind == "tags" else ()
    return [_sighting(record) for record in records] if isinstance(records, list) else []


def _sighting(record: "dict[str, object]") -> Sighting:
    attrs = {name: record[name] for name in _ATTRS if name in record}
    antenna = record.get("antenna")
    if isinstance(antenna, str):
        attrs["antenna"] = int(antenna.split("/")[0])
    return Sighting(str(record["epc"]).upper(), attrs, record.get("ts_ms"), record.get("read_count", 1))


def _settings(config: "dict[str, object]") -> "tuple[bytes, ...]":
    """The commands for region and power, which the operator chooses."""
    commands: tuple[bytes, ...] = ()
    if "region" in config:
        commands += (set_region(config["region"]),)  # type: ignore[arg-type]
    if "read_power_cdbm" in config:
        commands += (set_read_power(config["read_power_cdbm"]),)  # type: ignore[arg-type]
    return commands


READER = Reader(
    M6eDecoder,
    115200,
    _CYCLE_US,
    "one search cycle of the start command, unless the reader's own timestamp narrows it",
    _tags,
    options={"mode": "reader"},
    # A reader that is still running accepts no other command before STOP.
    start=(STOP, PROTOCOL_GEN2_ONLY, ANTENNA_SEARCH_1_1, READ_FILTER_OFF, START_CONTINUOUS),
    settings=_settings,
    own_keys={
        "region": (0, 255, "regulatory region by the vendor's code, such as 13 for North America 2.", 13),
        "read_power_cdbm": (0, 3000, "power for reading in hundredths of dBm; an M6e Nano allows 2700.", 2200),
    },
    silence_us=3 * _CYCLE_US,  # it reports every cycle, tags or none: three missing reports are a fault
    cycle_us=_CYCLE_US,
    anchor="keepalive",
    buffered="tags",
)
