"""The observation in a sensor's line: its key, its value, and all other fields.

Only the operator knows the meaning of the fields; by default a line of text is its own value.
"""

from collections import namedtuple

from whenabouts_hardware.frame import Frame

# key: text or None. value: number, text, truth value or None. attrs: the other fields by name.
Observation = namedtuple("Observation", ("key", "value", "attrs"))


def observed(frame: Frame, key: "str | None" = None, value: "str | None" = None) -> "Observation | None":
    """The observation in a frame of kind json, csv, nmea or text; None if the frame is damaged, or lacks the requested
    key or value field.

    key, value: names of fields. The values of an NMEA sentence are fields 1, 2, ... beside its `talker`; all are texts
    except the one used as the value.

    >>> from whenabouts_hardware import decoder
    >>> [frame] = decoder("line").feed(b'{"t": 21.5, "probe": "north"}\\n')
    >>> tuple(observed(frame, key="probe", value="t"))
    ('north', 21.5, {})
    """
    if not frame.ok:
        return None
    fields = _fields(frame)
    if value is None and key is None and frame.kind == "text":
        value = "text"
    for name in (key, value):
        if name is not None and name not in fields:
            return None
    key_text = None if key is None else str(fields[key])
    measured = None if value is None else fields[value]
    if frame.kind == "nmea":
        measured = number_or_text(str(measured)) if measured is not None else None
    return Observation(key_text, measured, {n: v for n, v in fields.items() if n not in (key, value)})


def _fields(frame: Frame) -> "dict[str, object]":
    if frame.kind != "nmea":
        return dict(frame.fields)
    values = frame.fields["values"]
    fields: dict[str, object] = {"talker": frame.fields["talker"]}
    if isinstance(values, list):
        fields.update({str(n + 1): v for n, v in enumerate(values)})
    return fields


def number_or_text(text: str) -> "int | float | str":
    """The text as a number if it is one, else the text."""
    text = text.strip()
    for number in (int, float):
        try:
            parsed = number(text)
        except ValueError:
            continue
        if not is_no_number(parsed) and "_" not in text:
            return parsed
    return text


def is_no_number(value: object) -> bool:
    """True for a float that is infinite or not a number."""
    return type(value) is float and (value != value or value in (float("inf"), float("-inf")))
