"""The status word of a Mercury answer as text: the important ones by name, the others by their group.

Groups and names after the vendor's SDK 1.35 (tm_reader status header): the high byte is the group.
"""

_NAMES = {
    0x0000: "success",
    0x0101: "unknown opcode",
    0x0105: "parameter value out of range",
    0x010A: "baud rate not supported",
    0x010B: "region not supported",
    0x0400: "no tags found",
    0x0401: "no protocol set",
    0x040A: "tag error",
    0x0503: "no antenna connected",
    0x0504: "too hot, transmitter throttled",
    0x0505: "too much power reflected, check the antenna",
    0x0601: "tag buffer full",
    0x7F01: "assertion in the firmware",
}

_GROUPS = {
    0x01: "message error",
    0x02: "flash error",
    0x03: "flash error",
    0x04: "protocol error",
    0x05: "radio error",
    0x06: "buffer error",
    0x7F: "system error",
}


def status_text(status: int) -> str:
    """The meaning of a status word.

    >>> status_text(0x0504)
    'too hot, transmitter throttled'
    >>> status_text(0x0424)
    'Gen2 error 0424'
    """
    name = _NAMES.get(status)
    if name is not None:
        return name
    group = "Gen2 error" if 0x0420 <= status <= 0x04FF else _GROUPS.get(status >> 8, "status")
    return f"{group} {status:04X}"
