"""Any sensor that sends lines: JSON objects, comma-separated values, NMEA sentences, or plain text.

A line ends with LF, CR LF or CR; blank lines are noise. A CR is known to end the line only when the next byte has come,
or when the line falls silent. Forms of a line:

    json   {"t": 21.5, "ok": true}    an object of numbers, texts and truth values; null is left out
    csv    21.5,ok                    by the names of `columns`, in order; an empty name skips a value
    nmea   $GPGLL,5300.97,N*28        talker and values; the checksum after `*`, if present, must fit
    text   anything                   unchanged

`auto` chooses the form of each line: `{` begins JSON, `$` and `!` begin NMEA, the rest is csv if columns are given and
text if not. NMEA 0183 allows 82 characters a line; loggers exceed that.
"""

import json

from whenabouts_hardware.decoding import BAD_BYTE, BAD_CHECKSUM, BAD_CONTENT, LOST_END, OVERRUN, Decoder
from whenabouts_hardware.frame import Frame
from whenabouts_hardware.reader import Reader
from whenabouts_hardware.readers.line_values import is_no_number, number_or_text, observed

FORMS = ("auto", "json", "csv", "nmea", "text")
LINE_BYTES_MAX = 1024  # with its end; a longer line becomes damaged frames of this size
COLUMNS_MAX = 64
LATENCY_US = 1_000_000
BLANKS = b" \t\r\n\x0b\x0c\x1c\x1d\x1e\x1f"
_LF, _CR = 0x0A, 0x0D


class LineDecoder(Decoder):
    """Frames of kind json, csv, nmea or text; `fields` are the values by name, in text `text`, in NMEA `talker` and
    `values`.

    With `midway` the first line counts as damaged: the port may have been opened in the middle of it, and `3.5` may be
    the rest of `23.5`. Exceptions are an object and a sentence with a checksum, which prove that they are whole.

    Raises:
        ValueError: an unknown form, or columns that are none or more than 64.
    """

    FRAME_BYTES_MAX = LINE_BYTES_MAX
    OPTIONS = ("form", "columns", "midway")

    def __init__(self, form: str = "auto", columns: "tuple[str, ...]" = (), midway: bool = False) -> None:
        if form not in FORMS:
            raise ValueError("line form: found {!r}, expected one of {}".format(form, ", ".join(FORMS)))
        if form == "csv" and not any(columns):
            raise ValueError("line columns: found none, expected the name of at least one value")
        if len(columns) > COLUMNS_MAX:
            raise ValueError(f"line columns: found {len(columns)}, expected at most {COLUMNS_MAX}")
        super().__init__()
        self._form = form
        self._columns = tuple(columns)
        self._midway = midway

    def _next(self, held: bytearray, at: int) -> int:
        """Blanks before a line are none of it: they may be noise, and would count as time on the wire."""
        while at < len(held) and held[at] in BLANKS:
            self._midway = self._midway and held[at] not in b"\r\n"
            at += 1
        return at

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        end = _end_of_line(held, at)
        if end is None:
            if len(held) - at < LINE_BYTES_MAX and not final:
                return None
            raw = bytes(held[at:])
            return self._unended(raw, self._offset + at), True
        if end == len(held) and held[end - 1] == _CR and not final and end - at < LINE_BYTES_MAX:
            return None  # an LF may follow and belong to this line
        midway, self._midway = self._midway, False
        return self._line(bytes(held[at:end]), self._offset + at, midway), True

    def _unended(self, raw: bytes, start: int) -> Frame:
        """A piece of a line without its end: too long, or cut short by silence."""
        self._midway = True  # the rest of this line follows
        if len(raw) >= LINE_BYTES_MAX:
            error = f"found {len(raw)} bytes without a line end, expected at most {LINE_BYTES_MAX}"
            return Frame("damaged", {}, raw, start, error, OVERRUN)
        return Frame("damaged", {}, raw, start, f"found silence after {len(raw)} bytes, expected a line end", LOST_END)

    def _line(self, raw: bytes, start: int, midway: bool) -> Frame:
        try:
            text = raw.decode().strip(BLANKS.decode())
        except UnicodeError:
            return Frame("damaged", {}, raw, start, "found bytes that are no UTF-8, expected text", BAD_BYTE)
        form = self._form_of(text)
        read = {"json": _json, "csv": self._csv, "nmea": _nmea, "text": _text}[form]
        fields, error, fault = read(text)
        shows_itself = form == "json" or "checksum" in fields
        if midway and error is None and not shows_itself:
            error, fault = "found a line that may have begun before the port was opened, expected a whole one", LOST_END
        return Frame(form, fields, raw, start, error, fault)

    def _form_of(self, text: str) -> str:
        if self._form != "auto":
            return self._form
        if text[:1] == "{":
            return "json"
        if text[:1] in ("$", "!"):
            return "nmea"
        return "csv" if self._columns else "text"

    def _csv(self, text: str) -> "tuple[dict[str, object], str | None, str | None]":
        values = text.split(",")
        if len(values) != len(self._columns):
            error = f"found {len(values)} values, expected {len(self._columns)}: {','.join(self._columns)}"
            return {"text": text}, error, BAD_CONTENT
        return {name: number_or_text(v) for name, v in zip(self._columns, values) if name}, None, None


def _end_of_line(held: bytearray, at: int) -> "int | None":
    """The index after the end of the line that begins at `at`; None if its end has not come."""
    lf, cr = held.find(b"\n", at), held.find(b"\r", at)
    if cr >= 0 and (lf < 0 or cr < lf - 1):
        return cr + 1
    return lf + 1 if lf >= 0 else None


def _text(text: str) -> "tuple[dict[str, object], str | None, str | None]":
    return {"text": text}, None, None


def _json(text: str) -> "tuple[dict[str, object], str | None, str | None]":
    try:
        values = json.loads(text)
    except (ValueError, RuntimeError):  # RuntimeError: nested too deeply; boards lack RecursionError
        values = None
    if type(values) is not dict:
        return {"text": text}, "found no JSON object, expected one on each line", BAD_CONTENT
    for name in sorted(values):
        value = values[name]
        if not (value is None or type(value) in (int, float, str, bool)) or is_no_number(value):
            return (
                {"text": text},
                f"value {name}: found {value!r}, expected a finite number, text or truth value",
                BAD_CONTENT,
            )
    return {name: value for name, value in values.items() if value is not None}, None, None


def _nmea(text: str) -> "tuple[dict[str, object], str | None, str | None]":
    body, star, digits = text[1:].partition("*")
    fields: dict[str, object] = {}
    values = body.split(",")
    fields["talker"], fields["values"] = values[0], values[1:]
    if text[:1] not in ("$", "!"):
        return {"text": text}, f"found {text[:1]!r}, expected $ or !", BAD_CONTENT
    if not star:
        return fields, None, None
    right = 0
    for byte in body.encode():
        right ^= byte
    fields["checksum"] = right
    if digits.upper() == f"{right:02X}":
        return fields, None, None
    return fields, f"found checksum {digits}, expected {right:02X}", BAD_CHECKSUM


READER = Reader(
    LineDecoder,
    9600,
    LATENCY_US,
    "assumed; see the sensor's data sheet and set latency_us",
    observe=observed,
    options={"midway": True},
)
