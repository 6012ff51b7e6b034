"""Decoder of LLRP: bytes of a TCP connection in, messages out.

TCP loses no byte, and LLRP has no start byte to search for: a head that no message can have means that the rest cannot be
understood. It is a damaged frame of kind "lost"; all later bytes are noise, and the connection has to be opened again.
A message whose inside contradicts itself is damaged alone. A tag's report without an EPC is counted in bad_content, and the
others of its message are taken.

By the standard a reader may leave out a parameter of a tag's report that has not changed since it last sent one: antenna,
signal strength and ROSpec are kept for this.
"""

from whenabouts_hardware.decoding import BAD_BYTE, BAD_CONTENT, LOST_END, OVERRUN, Decoder
from whenabouts_hardware.frame import Frame, as_hex
from whenabouts_hardware.network import llrp_messages as llrp
from whenabouts_hardware.network.llrp_messages import LayoutError, parameters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FRAME_BYTES_MAX = 1 << 16  # capabilities of large readers take some 20 kB
TEXT_BYTES_MAX = 200  # of an error's text that is kept


class LlrpDecoder(Decoder):
    """Messages of a reader.

    Kinds: tags (field `tags`, one record a tag: epc, rospec, antenna, rssi, count, and last_us by the reader's clock, UTC or
    uptime), keepalive, event (connection, rospec, antenna, overflow, exception, closed, utc_us, as far as they are in it),
    answer (status, text; of capabilities antennas, powers, hop_table), other. All have type and number.
    """

    FRAME_BYTES_MAX = FRAME_BYTES_MAX

    def __init__(self) -> None:
        super().__init__()
        self._lost = False
        self._last: dict[str, int] = {}

    def flush(self) -> list[Frame]:
        """A message that is not whole yet stays: TCP may deliver its rest at any time."""
        return []

    def _next(self, held: bytearray, at: int) -> int:
        return len(held) if self._lost else at

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        available = len(held) - at
        if available >= 2:
            version, length = held[at] >> 2, llrp.HEAD_BYTES
            if available >= 6:
                length = int.from_bytes(held[at + 2 : at + 6], "big")
            if version not in llrp.VERSIONS or not llrp.HEAD_BYTES <= length <= FRAME_BYTES_MAX:
                return self._wrong_head(held, at, version, length), False
            if available >= length:
                return self._content(bytes(held[at : at + length]), self._offset + at), True
        return None

    def _wrong_head(self, held: bytearray, at: int, version: int, length: int) -> Frame:
        self._lost = True
        if version not in llrp.VERSIONS:
            error, fault = f"found a message of version {version}, expected LLRP of version 1 or 2", BAD_BYTE
        else:
            error = f"found a message of {length} bytes, expected {llrp.HEAD_BYTES} to {FRAME_BYTES_MAX}"
            fault = OVERRUN if length > FRAME_BYTES_MAX else LOST_END
        return Frame("lost", {}, bytes(held[at : at + 2]), self._offset + at, error, fault)

    def _content(self, raw: bytes, start: int) -> Frame:
        kind = (raw[0] & 3) << 8 | raw[1]
        fields: dict[str, Any] = {"type": kind, "number": int.from_bytes(raw[6:10], "big")}
        name, error = _NAMES.get(kind, "other"), None
        try:
            if name == "tags":
                fields["tags"] = self._tags(raw)
            elif name == "event":
                _event(raw, fields)
            elif name == "answer":
                _answer(raw, fields)
        except LayoutError as found:
            error = str(found)
        return Frame(name, fields, raw, start, error, None if error is None else BAD_CONTENT)

    def _tags(self, raw: bytes) -> "list[dict[str, Any]]":
        found = []
        for kind, begin, end in parameters(raw, llrp.HEAD_BYTES, len(raw)):
            if kind == llrp.TAG:
                tag = self._tag(raw, begin, end)
                if tag.get("epc"):
                    found.append(tag)
                else:
                    self.counters[BAD_CONTENT] += 1
        return found

    def _tag(self, raw: bytes, at: int, end: int) -> "dict[str, Any]":
        tag: dict[str, Any] = {"count": 1}
        last = self._last
        for kind, begin, after in parameters(raw, at, end):
            if kind == llrp.TV_EPC_96:
                tag["epc"] = as_hex(raw[begin:after])
            elif kind == llrp.EPC_DATA:
                tag["epc"] = _epc(raw, begin, after)
            elif kind == llrp.TV_RSSI:
                last["rssi"] = raw[begin] - ((raw[begin] & 0x80) << 1)
            elif kind in _KEPT:
                last[_KEPT[kind]] = int.from_bytes(raw[begin:after], "big")
            elif kind in _OWN:
                tag[_OWN[kind]] = int.from_bytes(raw[begin:after], "big")
        tag.update(last)
        return tag


_KEPT = {llrp.TV_ANTENNA: "antenna", llrp.TV_ROSPEC: "rospec"}
_OWN = {llrp.TV_LAST_UTC: "last_us", llrp.TV_LAST_UPTIME: "last_us", llrp.TV_COUNT: "count"}
_NAMES = {llrp.REPORT: "tags", llrp.KEEPALIVE: "keepalive", llrp.EVENT: "event", llrp.ERROR: "answer"}
_NAMES.update(dict.fromkeys((llrp.CAPABILITIES, llrp.CONFIG, llrp.CONFIG_SET, llrp.CLOSED), "answer"))
_NAMES.update({kind + llrp.ANSWER_OF_ROSPEC: "answer" for kind in range(llrp.ADD_ROSPEC, llrp.ENABLE_ROSPEC + 1)})


def _epc(raw: bytes, begin: int, end: int) -> str:
    """An EPC of any length, in whole bytes."""
    bits = _uint(raw, begin, 2, end)
    size = (bits + 7) >> 3
    if begin + 2 + size > end:
        raise LayoutError(f"found an EPC of {bits} bits in {end - begin - 2} bytes, expected as many as fit")
    return as_hex(raw[begin + 2 : begin + 2 + size])


def _event(raw: bytes, fields: "dict[str, Any]") -> None:
    for outer, at, end in parameters(raw, llrp.HEAD_BYTES, len(raw)):
        if outer != llrp.EVENT_DATA:
            continue
        for kind, begin, after in parameters(raw, at, end):
            if kind == llrp.UTC:
                fields["utc_us"] = _uint(raw, begin, 8, after)
            elif kind == llrp.CONNECTION_EVENT:
                fields["connection"] = _uint(raw, begin, 2, after)
            elif kind == llrp.CONNECTION_CLOSED:
                fields["closed"] = True
            elif kind == llrp.ROSPEC_EVENT:
                fields["rospec"] = _uint(raw, begin, 1, after), _uint(raw, begin + 1, 4, after)
            elif kind == llrp.ANTENNA_EVENT:
                fields["antenna"] = _uint(raw, begin, 1, after), _uint(raw, begin + 1, 2, after)
            elif kind == llrp.OVERFLOW_EVENT:
                fields["overflow"] = True
            elif kind == llrp.EXCEPTION_EVENT:
                fields["exception"] = _text(raw, begin, after)


def _answer(raw: bytes, fields: "dict[str, Any]") -> None:
    for kind, begin, end in parameters(raw, llrp.HEAD_BYTES, len(raw)):
        if kind == llrp.STATUS:
            fields["status"] = _uint(raw, begin, 2, end)
            fields["text"] = _text(raw, begin + 2, end)
        elif kind == llrp.GENERAL:
            fields["antennas"] = _uint(raw, begin, 2, end)
        elif kind == llrp.REGULATORY:
            _powers(raw, begin + 4, end, fields)


def _powers(raw: bytes, at: int, end: int, fields: "dict[str, Any]") -> None:
    """The transmit powers, as (index, hundredths of dBm), and the first table of hops."""
    powers: list[tuple[int, int]] = []
    for outer, band_at, band_end in parameters(raw, at, end):
        for kind, begin, after in parameters(raw, band_at, band_end) if outer == llrp.BAND else ():
            if kind == llrp.POWER_LEVEL:
                value = _uint(raw, begin + 2, 2, after)
                powers.append((_uint(raw, begin, 2, after), value - ((value & 0x8000) << 1)))
            elif kind == llrp.FREQUENCIES:
                for table, table_at, table_end in parameters(raw, begin + 1, after):
                    if table == llrp.HOP_TABLE and "hop_table" not in fields:
                        fields["hop_table"] = _uint(raw, table_at, 1, table_end)
    fields["powers"] = powers


def _uint(raw: bytes, at: int, size: int, end: int) -> int:
    if at + size > end:
        raise LayoutError(f"found {max(0, end - at)} bytes, expected a number of {size}")
    return int.from_bytes(raw[at : at + size], "big")


def _text(raw: bytes, at: int, end: int) -> str:
    """A text, cut and without what would disturb a log."""
    size = _uint(raw, at, 2, end)
    if at + 2 + size > end:
        raise LayoutError(f"found a text of {size} bytes in {end - at - 2}, expected one that fits")
    kept = raw[at + 2 : at + 2 + min(size, TEXT_BYTES_MAX)]
    return "".join([chr(byte) if 32 <= byte < 127 else "?" for byte in kept])
