"""Text to bytes and back, with the same refusals on every machine.

CPython refuses what RFC 3629 forbids. MicroPython checks only the shape of each sequence and accepts surrogates,
overlong forms and code points above U+10FFFF, so a board could send text that no receiver can read. On MicroPython this
module searches for the forbidden pairs of first and second byte (RFC 3629 section 4); on CPython it skips the search.
"""


def _lets_surrogates_through() -> bool:
    try:
        str(b"\xed\xa0\x80", "utf-8")
    except UnicodeError:
        return False
    return True


LAX = _lets_surrogates_through()  # True if this interpreter needs the check


def utf8(text: str) -> bytes:
    """The UTF-8 encoding of text. Raises UnicodeError for a lone surrogate, which has none."""
    data = text.encode()
    if LAX and is_forbidden(data):
        raise UnicodeError
    return data


def text_of(data: bytes) -> str:
    """Decode UTF-8. Raises UnicodeError for invalid bytes."""
    if LAX and is_forbidden(data):
        raise UnicodeError
    return str(data, "utf-8")


def is_forbidden(data: bytes) -> bool:
    """True if data, otherwise well-shaped, holds a pair of first and second byte that RFC 3629 forbids."""
    for at in range(len(data) - 1):
        first = data[at]
        if first < 0xC0:
            continue
        second = data[at + 1]
        if (
            first < 0xC2  # overlong in two bytes
            or first > 0xF4  # beyond U+10FFFF
            or (first == 0xE0 and second < 0xA0)  # overlong in three
            or (first == 0xED and second > 0x9F)  # a surrogate
            or (first == 0xF0 and second < 0x90)  # overlong in four
            or (first == 0xF4 and second > 0x8F)  # beyond U+10FFFF
        ):
            return True
    return False
