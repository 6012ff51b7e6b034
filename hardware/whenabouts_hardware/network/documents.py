"""Decoder of the JSON that readers publish by themselves, over HTTP or MQTT.

A port hands over each message as a text sequence (RFC 7464): a record separator, the text, a line feed; neither byte can be
inside JSON but as white space. A text is an object, a list of objects, or objects one after the other, as some firmware
joins them.
"""

import json

from whenabouts_hardware.decoding import BAD_CONTENT, LOST_END, OVERRUN, Decoder
from whenabouts_hardware.frame import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_hardware.reader import Sighting

MESSAGE_BYTES_MAX = 1 << 18  # some thousand events
EPC_DIGITS_MAX = 128
_BEGIN, _END = b"\x1e", b"\n"
_DIGITS = "0123456789ABCDEF"


def message(text: bytes) -> bytes:
    """The bytes of a message on the way to its decoder."""
    return _BEGIN + text.replace(_BEGIN, b" ").replace(_END, b" ") + _END


class DocumentDecoder(Decoder):
    """Messages of kind "tags", field `tags`: a `Sighting` for each event about a tag.

    Subclasses say in `sighting` what an event means. Events that are about a tag and cannot be used are counted in
    bad_content; the others of their message are taken.
    """

    START = _BEGIN[0]
    FRAME_BYTES_MAX = MESSAGE_BYTES_MAX + 2

    def sighting(self, event: "dict[str, Any]") -> "Sighting | None":
        """The sighting in an event, None if it is about something else.

        Raises:
            ValueError: it is about a tag and has no EPC.
        """
        raise NotImplementedError

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        end, other = held.find(_END, at), held.find(_BEGIN, at + 1)
        if end < 0 <= other or 0 <= other < end or (end < 0 and final):
            raw = bytes(held[at : other if other >= 0 else len(held)])
            error = f"found the end after {len(raw)} bytes, expected a line feed before it"
            return Frame("damaged", {}, raw, self._offset + at, error, LOST_END), False
        if end < 0:
            if len(held) - at < self.FRAME_BYTES_MAX:
                return None
            self.counters[OVERRUN] += 1
            return None, False
        return self._read(bytes(held[at : end + 1]), self._offset + at), True

    def _read(self, raw: bytes, start: int) -> Frame:
        try:
            events = _events(raw[1:-1])
        except (ValueError, RuntimeError):  # RuntimeError: thousands of brackets
            return Frame("tags", {}, raw, start, "found no JSON, expected an object or a list of objects", BAD_CONTENT)
        seen = []
        for event in events:
            try:
                sighting = self.sighting(event) if type(event) is dict else None
            except ValueError:
                self.counters[BAD_CONTENT] += 1
                continue
            if sighting is not None:
                seen.append(sighting)
        return Frame("tags", {"tags": seen}, raw, start)


def _events(text: bytes) -> "list[Any]":
    words = text.decode()
    try:
        found = json.loads(words)
    except ValueError:
        joined = " ".join(words.split()).replace("} {", "}{")
        found = json.loads("[" + joined.replace("}{", "},{") + "]")
    return found if type(found) is list else [found]


def tags(frame: Frame) -> "list[Sighting]":
    """The sightings in a message."""
    found: list[Sighting] = frame.fields["tags"]  # type: ignore[assignment]
    return found


def epc(given: "Any") -> str:
    """An EPC in upper-case hexadecimal digits.

    Raises:
        ValueError: it is none.
    """
    digits = given.upper() if type(given) is str else ""
    if not 0 < len(digits) <= EPC_DIGITS_MAX or not all(digit in _DIGITS for digit in digits):
        raise ValueError("found no EPC, expected hexadecimal digits")
    return digits


def whole(attrs: "dict[str, Any]", name: str, given: "Any", divisor: int = 1) -> None:
    """Keep a number under this name, rounded down; anything else is left out."""
    if (type(given) is int or type(given) is float) and abs(given) < 1 << 31:
        attrs[name] = int(given // divisor)
