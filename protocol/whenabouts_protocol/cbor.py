"""A restricted profile of CBOR (RFC 8949): one encoding for each value, hard limits on what is decoded.

Encoding: definite lengths, shortest integers, no tags, floats as eight bytes, integer map keys ascending, then text
keys by code point.
Decoding: the same, but floats of any size and map keys in any order. WireError refuses tags, indefinite lengths,
undefined and other simple values, integers beyond 64 bits signed, NaN and infinities, repeated map keys, map keys that
are neither int nor text, invalid UTF-8, nesting deeper than MAX_DEPTH, and bytes after the value. Decoding allocates
memory in proportion to the input, because every item costs at least one byte of input: on CPython 106 times the input
for the worst bytes known (maps of one entry nested in each other).

Written by hand because the same file runs on boards, where the CBOR package has no limits and refuses nothing. The
tests compare it with an independent package. About 0.3 us an item on a 3 GHz core.
"""

import struct

from whenabouts_protocol.errors import WireError
from whenabouts_protocol.utf8 import text_of, utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_DEPTH = 6  # a batch nests four deep; boards have stack for about twenty calls

_SIZES = {24: 1, 25: 2, 26: 4, 27: 8}


def dumps(value: "Any") -> bytes:
    """Encode a value.

    Raises:
        WireError: this profile has no encoding for the value.
    """
    out = bytearray()
    write(value, out, 0)
    return bytes(out)


def write_head(major: int, argument: int, out: bytearray) -> None:
    """Append the head of an item: its major type in the upper three bits, then its value or length."""
    if argument < 24:
        out.append(major | argument)
    elif argument < 0x100:
        out.append(major | 24)
        out.append(argument)
    elif argument < 0x10000:
        out.append(major | 25)
        out.extend(argument.to_bytes(2, "big"))
    elif argument < 0x100000000:
        out.append(major | 26)
        out.extend(argument.to_bytes(4, "big"))
    elif argument < 0x8000000000000000:
        out.append(major | 27)
        out.extend(argument.to_bytes(8, "big"))
    else:
        # The message omits the number: CPython refuses to print one of thousands of digits.
        raise WireError("integer: found more than 64 bits signed")


def write(value: "Any", out: bytearray, depth: int = 0) -> None:
    """Append the encoding of a value at this nesting depth. Raises WireError as `dumps` does."""
    kind = type(value)
    if kind is int:
        if value >= 0:
            write_head(0x00, value, out)
        else:
            write_head(0x20, -1 - value, out)
    elif kind is str:
        text = _utf8(value)
        write_head(0x60, len(text), out)
        out.extend(text)
    elif kind is bytes:
        write_head(0x40, len(value), out)
        out.extend(value)
    elif value is None:
        out.append(0xF6)
    elif kind is bool:
        out.append(0xF5 if value else 0xF4)
    elif kind is float:
        if value - value != 0:
            raise WireError(f"number: found {value}, expected a finite one")
        out.append(0xFB)
        out.extend(struct.pack(">d", value))
    elif depth >= MAX_DEPTH:
        raise WireError(f"nesting: found more than {MAX_DEPTH} levels")
    elif kind is list or kind is tuple:
        write_head(0x80, len(value), out)
        for item in value:
            write(item, out, depth + 1)
    elif kind is dict:
        for key in value:
            if type(key) is not int and type(key) is not str:
                raise WireError(f"map key: found {type(key).__name__}, expected int or text")
        write_head(0xA0, len(value), out)
        for key in sorted(value, key=_key_order):  # dicts on boards have no order
            write(key, out, depth + 1)
            write(value[key], out, depth + 1)
    else:
        raise WireError(f"value: found {kind.__name__}, expected int, float, str, bytes, bool, None, list or dict")


def _key_order(key: "int | str") -> "tuple[int, Any]":
    """Sort key: ints ascending, then texts by code point."""
    return (0, key) if type(key) is int else (1, key)


def _utf8(text: str) -> bytes:
    try:
        return utf8(text)
    except UnicodeError:
        raise WireError("text: found a lone surrogate, expected text that has a UTF-8 form") from None


def loads(data: bytes) -> "Any":
    """Decode the one value in data; arrays become lists, maps become dicts.

    Raises:
        WireError: data is not exactly one value of this profile.
    """
    value, end = _read(data, 0, 0)
    if end != len(data):
        raise WireError(f"message: found {len(data) - end} bytes after its end at byte {end}, expected none")
    return value


def _truncated(at: int) -> WireError:
    return WireError(f"message: found its end inside an item at byte {at}")


def _read(data: bytes, at: int, depth: int) -> "tuple[Any, int]":
    if at >= len(data):
        raise _truncated(at)
    initial = data[at]
    if initial < 24:  # a small integer, by far the most frequent item
        return initial, at + 1
    major = initial >> 5
    if major == 7:
        return _read_simple(data, at)
    start = at
    argument = initial & 31
    at += 1
    if argument >= 24:
        size = _SIZES.get(argument)
        if size is None:
            raise WireError(f"item at byte {start}: found an indefinite or reserved length, expected a definite one")
        if at + size > len(data):
            raise _truncated(start)
        argument = int.from_bytes(data[at : at + size], "big")
        at += size
    if major <= 1:
        if argument > 0x7FFFFFFFFFFFFFFF:
            raise WireError(f"integer at byte {start}: found more than 64 bits signed")
        return (argument if major == 0 else -1 - argument), at
    if major == 2 or major == 3:
        end = at + argument
        if end > len(data):
            raise _truncated(start)
        piece = bytes(data[at:end])
        if major == 2:
            return piece, end
        try:
            return text_of(piece), end
        except UnicodeError:
            raise WireError(f"text at byte {start}: found bytes that are no UTF-8") from None
    if major == 6:
        raise WireError(f"item at byte {start}: found a tag, expected none")
    if depth >= MAX_DEPTH:
        raise WireError(f"item at byte {start}: found nesting deeper than {MAX_DEPTH} levels")
    if argument > len(data) - at:  # every item costs a byte: refuse before allocating
        raise _truncated(start)
    if major == 4:
        return _read_array(data, at, argument, depth + 1)
    return _read_map(data, at, argument, depth + 1)


def _read_array(data: bytes, at: int, count: int, depth: int) -> "tuple[list[Any], int]":
    items: list[Any] = []
    for _ in range(count):
        value, at = _read(data, at, depth)
        items.append(value)
    return items, at


def _read_map(data: bytes, at: int, count: int, depth: int) -> "tuple[dict[Any, Any], int]":
    entries: dict[Any, Any] = {}
    for _ in range(count):
        start = at
        key, at = _read(data, at, depth)
        if type(key) is not int and type(key) is not str:
            raise WireError(f"map key at byte {start}: found {type(key).__name__}, expected int or text")
        if key in entries:
            raise WireError(f"map key at byte {start}: found {key!r} a second time")
        entries[key], at = _read(data, at, depth)
    return entries, at


def _read_simple(data: bytes, at: int) -> "tuple[Any, int]":
    initial = data[at]
    if initial == 0xF6:
        return None, at + 1
    if initial == 0xF4 or initial == 0xF5:
        return initial == 0xF5, at + 1
    if initial == 0xFB or initial == 0xFA:
        size = 8 if initial == 0xFB else 4
        if at + 1 + size > len(data):
            raise _truncated(at)
        value = struct.unpack(">d" if size == 8 else ">f", data[at + 1 : at + 1 + size])[0]
    elif initial == 0xF9:
        if at + 3 > len(data):
            raise _truncated(at)
        value = _half(data[at + 1] << 8 | data[at + 2])
    else:
        raise WireError(f"item at byte {at}: found simple value {initial & 31}, expected false, true, null or a float")
    if value - value != 0:
        raise WireError(f"number at byte {at}: found a NaN or infinity, expected a finite one")
    return value, at + (9 if initial == 0xFB else 5 if initial == 0xFA else 3)


def _half(bits: int) -> float:
    """Decode a half-precision float (RFC 8949 appendix D); `struct` on boards cannot unpack it."""
    exponent = bits >> 10 & 31
    mantissa = bits & 1023
    if exponent == 31:
        value = float("nan") if mantissa else float("inf")
    elif exponent == 0:
        value = mantissa / (1 << 24)
    else:
        value = (1024 + mantissa) * (1 << exponent) / (1 << 25)
    return -value if bits & 0x8000 else value
