"""Frames of the NXP PN532 over its high-speed UART, 115200 8N1: builders, and the commands that an agent needs.

Host to chip TFI D4, chip to host TFI D5 with the command's code plus one. `00 00 FF LEN LCS TFI data DCS 00`, where LEN
counts TFI and data, LEN + LCS and TFI + data + DCS are 0 modulo 256; above 255 bytes LEN and LCS are FF FF, followed by
two bytes of length with their checksum. The chip answers every command with an acknowledgement first. After NXP
UM0701-02, section 6.2.1.
"""

ACK = bytes([0x00, 0x00, 0xFF, 0x00, 0xFF, 0x00])  # from the host it aborts the running command
NACK = bytes([0x00, 0x00, 0xFF, 0xFF, 0x00, 0x00])
ERROR = bytes([0x00, 0x00, 0xFF, 0x01, 0xFF, 0x7F, 0x81, 0x00])
# After power-on the chip sleeps; drivers differ in how many bytes wake it. This is libnfc's form.
WAKEUP = bytes([0x55, 0x55] + 14 * [0])

TO_CHIP = 0xD4
TO_HOST = 0xD5
SYNTAX_ERROR = 0x7F
BODY_BYTES_MAX = 265  # TFI and data; the limit of the firmware

OP_FIRMWARE = 0x02
OP_SAM = 0x14
OP_LIST_PASSIVE = 0x4A
OP_AUTO_POLL = 0x60


def framed(tfi: int, data: bytes) -> bytes:
    """A frame with one preamble and one postamble byte.

    Raises:
        ValueError: more data than the chip accepts.
    """
    body = bytes([tfi]) + data
    if len(body) > BODY_BYTES_MAX:
        raise ValueError(f"frame: found {len(data)} bytes of data, expected at most {BODY_BYTES_MAX - 1}")
    length = len(body)
    if length < 0xFF:
        head = bytes([length, -length & 0xFF])
    else:
        size = length.to_bytes(2, "big")
        head = b"\xff\xff" + size + bytes([-sum(size) & 0xFF])
    return b"\x00\x00\xff" + head + body + bytes([-sum(body) & 0xFF, 0])


def command(op: int, data: bytes = b"") -> bytes:
    """A command to the chip."""
    return framed(TO_CHIP, bytes([op]) + data)


def answer(op: int, data: bytes = b"") -> bytes:
    """The chip's answer to the command `op`."""
    return framed(TO_HOST, bytes([op + 1]) + data)


def target_106a(number: int, uid: bytes, sens_res: int = 0x0044, sel_res: int = 0) -> bytes:
    """One card of type A at 106 kbit/s as encoded in an answer."""
    return bytes([number]) + sens_res.to_bytes(2, "big") + bytes([sel_res, len(uid)]) + uid


SAM_NORMAL = command(OP_SAM, bytes([1, 0, 0]))  # no time-out, no interrupt line
LIST_ONE_106A = command(OP_LIST_PASSIVE, bytes([1, 0]))  # waits for a card; the chip sends nothing until one comes
NO_TARGET = answer(OP_LIST_PASSIVE, b"\0")
