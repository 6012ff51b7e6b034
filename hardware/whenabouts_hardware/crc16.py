"""16-bit checksums of readers and tags, two table steps a byte from tables of 16 entries.

CPython has one of them in C (`crc_hqx`); the other is its mirror image. Boards have neither.
"""

import binascii

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

crc_hqx: "Callable[[bytes, int], int] | None" = getattr(binascii, "crc_hqx", None)


def _shifted(polynomial: int) -> "tuple[int, ...]":
    """Remainders of the 16 possible top nibbles."""
    table = []
    for nibble in range(16):
        remainder = nibble << 12
        for _ in range(4):
            remainder = (remainder << 1) ^ (polynomial if remainder & 0x8000 else 0)
        table.append(remainder & 0xFFFF)
    return tuple(table)


def _reflected(polynomial: int) -> "tuple[int, ...]":
    """Remainders of the 16 possible low nibbles, bits in transmission order."""
    table = []
    for nibble in range(16):
        remainder = nibble
        for _ in range(4):
            remainder = remainder >> 1 ^ (polynomial if remainder & 1 else 0)
        table.append(remainder)
    return tuple(table)


def _mirrored() -> bytes:
    """All 256 bytes, each with its bits reversed."""
    return bytes([sum([(byte >> n & 1) << 7 - n for n in range(8)]) for byte in range(256)])


_MIRRORED = b"" if crc_hqx is None else _mirrored()
TABLE_1021 = _shifted(0x1021)
_TABLE_8408 = _reflected(0x8408)


def epc_crc(data: bytes) -> int:
    """A tag's own checksum over PC, XPC words and EPC (polynomial 1021, start FFFF, inverted).

    After EPC Radio-Frequency Identity Protocols Generation-2, annex F.

    >>> hex(epc_crc(bytes.fromhex("3000000000000000000000001545")))
    '0xe94a'
    """
    if crc_hqx is not None:
        return crc_hqx(data, 0xFFFF) ^ 0xFFFF
    table = TABLE_1021
    value = 0xFFFF
    for byte in data:
        value = (value << 4 & 0xFFFF) ^ table[value >> 12 ^ byte >> 4]
        value = (value << 4 & 0xFFFF) ^ table[value >> 12 ^ byte & 15]
    return value ^ 0xFFFF


def mcrf4xx(data: bytes) -> int:
    """CRC-16/MCRF4XX (polynomial 1021 reflected, start FFFF, not inverted). Appended low byte first, it makes the sum
    of the whole 0.

    >>> hex(mcrf4xx(bytes([0x04, 0xFF, 0x01])))
    '0xb41b'
    """
    if crc_hqx is not None:
        mirror = crc_hqx(data.translate(_MIRRORED), 0xFFFF)
        return _MIRRORED[mirror & 0xFF] << 8 | _MIRRORED[mirror >> 8]
    table = _TABLE_8408
    value = 0xFFFF
    for byte in data:
        value = value >> 4 ^ table[(value ^ byte) & 15]
        value = value >> 4 ^ table[(value ^ byte >> 4) & 15]
    return value
