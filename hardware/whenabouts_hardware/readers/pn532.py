"""Decoder of the PN532's serial frames, both directions (`pn532_frames`).

Any number of zeros may precede and follow a frame; one on each side belongs to the frame, the others are noise. A frame
is found by its start code `00 FF`; its length has its own checksum, so a flipped bit in the length hides no other
frame.
"""

from whenabouts_hardware.decoding import BAD_CHECKSUM, BAD_CONTENT, LOST_END, OVERRUN, Decoder
from whenabouts_hardware.frame import Frame, as_hex
from whenabouts_hardware.polling import Question
from whenabouts_hardware.reader import Reader, Sighting
from whenabouts_hardware.readers.pn532_frames import (
    ACK,
    BODY_BYTES_MAX,
    LIST_ONE_106A,
    OP_AUTO_POLL,
    OP_FIRMWARE,
    OP_LIST_PASSIVE,
    SAM_NORMAL,
    SYNTAX_ERROR,
    TO_CHIP,
    TO_HOST,
    WAKEUP,
)
from whenabouts_hardware.readers.pn532_targets import TargetError, listed, polled

WAIT_US = 250_000  # chosen: wait of one question for a card; a stamp is up to twice as wide
PAUSE_US = 20_000  # chosen
_EXTENDED_BYTES_MAX = 1 + 2 + 5 + BODY_BYTES_MAX + 2  # preamble, start code, lengths, body, checksum and postamble


class Pn532Decoder(Decoder):
    """Kinds: ack, nack, error, wakeup, command (op, data). Kinds of answers: firmware (ic, ver, rev, support), targets
    (nbtg, targets, and the fields of the target when there is one), answer (op, data). `op` is the command's code.
    """

    FRAME_BYTES_MAX = _EXTENDED_BYTES_MAX

    def _next(self, held: bytearray, at: int) -> int:
        while at < len(held) and held[at] not in (0x00, WAKEUP[0]):
            at += 1
        return at

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        if held[at] == WAKEUP[0]:
            return self._wakeup(held, at, final)
        code = at if held[at + 1 : at + 2] == b"\xff" else at + 1
        head = held[code : code + 2]
        if head != b"\x00\xff"[: len(head)]:
            return None, False
        if len(head) < 2 or len(held) < code + 4:
            return self._cut(held, at, 4, final) if len(head) == 2 else self._undecided(final)
        return self._framed(held, at, code + 2, final)

    def _framed(self, held: bytearray, at: int, lengths: int, final: bool) -> "tuple[Frame | None, bool] | None":
        """The frame from `at` whose length field is at `lengths`."""
        a, b = held[lengths], held[lengths + 1]
        if (a, b) in ((0x00, 0xFF), (0xFF, 0x00)):
            return self._whole(held, at, lengths + 2, "nack" if a else "ack", final)
        body = lengths + 2
        size = a
        right = a + b
        if (a, b) == (0xFF, 0xFF):
            body = lengths + 5
            if len(held) < body:
                return self._cut(held, at, body - at, final)
            size = held[lengths + 2] << 8 | held[lengths + 3]
            right = held[lengths + 2] + held[lengths + 3] + held[lengths + 4]
        if right & 0xFF:
            return self._wrong(held, at, body, "length", right & 0xFF)
        if size > BODY_BYTES_MAX or size == 0:
            self.counters[OVERRUN] += 1
            return None, False
        end = body + size + 1
        if len(held) < end:
            return self._cut(held, at, end - at, final)
        total = sum(held[body:end]) & 0xFF
        if total:
            return self._wrong(held, at, end, "data", total)
        return self._whole(held, at, end, None, final, bytes(held[body : end - 1]))

    def _whole(
        self, held: bytearray, at: int, end: int, kind: "str | None", final: bool, body: bytes = b""
    ) -> "tuple[Frame | None, bool] | None":
        """A good frame with the zero after it; waits for that byte."""
        if end == len(held) and not final:
            return None
        if held[end : end + 1] == b"\x00":
            end += 1
        raw = bytes(held[at:end])
        start = self._offset + at
        return (Frame(kind, {}, raw, start) if kind is not None else _content(body, raw, start)), True

    def _wakeup(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        prefix = bytes(held[at : at + len(WAKEUP)])
        if prefix == WAKEUP:
            return Frame("wakeup", {}, prefix, self._offset + at), True
        return self._undecided(final) if WAKEUP[: len(prefix)] == prefix else (None, False)

    def _undecided(self, final: bool) -> "tuple[Frame | None, bool] | None":
        return (None, False) if final else None

    def _cut(self, held: bytearray, at: int, size: int, final: bool) -> "tuple[Frame | None, bool] | None":
        if not final:
            return None
        error = f"found silence after {len(held) - at} bytes, expected {size}"
        return Frame("damaged", {}, bytes(held[at:]), self._offset + at, error, LOST_END), False

    def _wrong(self, held: bytearray, at: int, end: int, of: str, total: int) -> "tuple[Frame | None, bool]":
        error = f"found a sum of {total:02X} over the {of}, expected 00"
        return Frame("damaged", {}, bytes(held[at:end]), self._offset + at, error, BAD_CHECKSUM), False


def _content(body: bytes, raw: bytes, start: int) -> Frame:
    """The frame of a body whose checksums fit."""
    tfi = body[0]
    if tfi == SYNTAX_ERROR and len(body) == 1:
        return Frame("error", {}, raw, start)
    if tfi not in (TO_CHIP, TO_HOST) or len(body) < 2:
        error = f"found frame identifier {tfi:02X} and {len(body) - 1} bytes, expected D4 or D5 and a command code"
        return Frame("answer", {"data": as_hex(body)}, raw, start, error, BAD_CONTENT)
    op, data = body[1], body[2:]
    fields: dict[str, object] = {"op": op}
    if tfi == TO_CHIP:
        if op == OP_AUTO_POLL and len(data) >= 2:
            fields["pollnr"], fields["period"], fields["types"] = data[0], data[1], list(data[2:])
        fields["data"] = as_hex(data)
        return Frame("command", fields, raw, start)
    fields["op"] = op = (op - 1) & 0xFF
    if op == OP_FIRMWARE and len(data) == 4:
        fields["ic"], fields["ver"], fields["rev"], fields["support"] = data[0], data[1], data[2], data[3]
        return Frame("firmware", fields, raw, start)
    fields["data"] = as_hex(data)
    if op not in (OP_LIST_PASSIVE, OP_AUTO_POLL):
        return Frame("answer", fields, raw, start)
    try:
        targets = listed(data) if op == OP_LIST_PASSIVE else polled(data)
    except TargetError as e:
        return Frame("targets", fields, raw, start, str(e), BAD_CONTENT)
    fields["nbtg"], fields["targets"] = len(targets), targets
    if len(targets) == 1:
        fields.update(targets[0])
    return Frame("targets", fields, raw, start)


def _tags(frame: Frame) -> "list[Sighting]":
    """The key is the identifier of a card."""
    targets = frame.fields.get("targets")
    if not isinstance(targets, list):
        return []
    return [Sighting(one["uid"].upper(), {}, None, 1) for one in targets if "uid" in one]


READER = Reader(
    Pn532Decoder,
    115200,
    2 * WAIT_US,
    "a card is reported by the current question, or by the previous one, aborted just as the card came",
    _tags,
    start=(WAKEUP + SAM_NORMAL,),
    question=Question(LIST_ONE_106A, ("targets",), WAIT_US, PAUSE_US, abort=ACK),
)
