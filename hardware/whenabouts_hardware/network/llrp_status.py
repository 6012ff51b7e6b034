"""The status of an LLRP answer as text, by the standard's section on LLRPStatus."""

_WHAT = {
    0: "error", 1: "field error", 2: "unexpected parameter", 3: "missing parameter", 4: "duplicate parameter",
    5: "too many parameters", 6: "value beyond its range", 7: "unknown parameter", 8: "unknown field",
    9: "unsupported message", 10: "unsupported version", 11: "unsupported parameter",
}  # fmt: skip
_NAMES = {0: "success", 209: "parameter: unsupported parameter", 300: "invalid value", 301: "value out of range"}


def status_text(status: int) -> str:
    """The meaning of a status code, with its number.

    >>> status_text(104)
    'message: duplicate parameter (104)'
    >>> status_text(401)
    'device error (401)'
    """
    group, what = status // 100, _WHAT.get(status % 100)
    name = _NAMES.get(status)
    if name is None and group in (1, 2) and what is not None:
        name = ("message: ", "parameter: ")[group - 1] + what
    if name is None:
        name = "device error" if group == 4 else "an unknown status"
    return f"{name} ({status})"
