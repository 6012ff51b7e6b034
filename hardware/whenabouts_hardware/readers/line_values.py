"""The observation in a line of a sensor: the key it belongs to, the value, and all else it said.

Only the operator knows which field is which; without being told, a text is the value of its line.
"""

from collections import namedtuple

from whenabouts_hardware.frame import Frame

# key: text or None. value: number, text, truth value or None. attrs: the other fields by name.
Observation = namedtuple("Observation", ("key", "value", "attrs"))


def observed(frame: Frame, key: "str | None" = None, value: "str | None" = None) -> "Observation | None":
    """The observation in a frame of kind json, csv, nmea or text; None if it is damaged, or lacks the field of the key or
    the value that was asked for.

    key, value: names of fields. The values of an NMEA sentence are fields 1, 2, ... beside its `talker`, texts but
    for the one that is the value.

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
    found_key = None if key is None else str(fields[key])
    found = None if value is None else fields[value]
    if frame.kind == "nmea":
        found = number_or_text(str(found)) if found is not None else None
    return Observation(found_key, found, {n: v for n, v in fields.items() if n not in (key, value)})


def _fields(frame: Frame) -> "dict[str, object]":
    if frame.kind != "nmea":
        return dict(frame.fields)
    values = frame.fields["values"]
    fields: dict[str, object] = {"talker": frame.fields["talker"]}
    if isinstance(values, list):
        fields.update({str(n + 1): v for n, v in enumerate(values)})
    return fields


def number_or_text(text: str) -> "int | float | str":
    """A number where the text is one."""
    text = text.strip()
    for number in (int, float):
        try:
            found = number(text)
        except ValueError:
            continue
        if not is_no_number(found) and "_" not in text:
            return found
    return text


def is_no_number(value: object) -> bool:
    """True of a float that is infinite or not a number."""
    return type(value) is float and (value != value or value in (float("inf"), float("-inf")))
