"""The name that an EPC memory holds, by GS1's EPC Tag Data Standard: SGTIN, SSCC, SGLN, GRAI, GIAI, GDTI, GID and others.

epcpy decodes. It takes some bits for a name that are none, so a name counts only if encoding it again gives the same bits,
all of them: then company prefix and reference have the digits that the partition leaves them, and nothing stands behind the
end. Filter values that the standard reserves are taken, as GS1's own examples have them. Of random bits with the header of
an SGTIN half are refused; nothing in the others tells them from a name, so compare company prefixes with those you expect.

Cost: some 50 us a name; names are remembered.
"""

import functools
import inspect
import re
import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import quote

MOST_HEX = 128  # digits: 512 bits, more than any EPC
REMEMBERED = 1 << 16  # names
NAMES = (  # classes of epcpy; its ADI gives other bits than it takes
    "SGTIN", "SSCC", "SGLN", "GRAI", "GIAI", "GDTI", "GID", "GSRN", "GSRNP", "CPI", "SGCN", "ITIP", "USDOD",
)  # fmt: skip


class EpcError(ValueError):
    """The bits are no EPC that has a name. The text says what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class EpcName:
    """A name. hex: the bits, in capitals; they identify the tag.

    scheme: as in sgtin-96. uri: the pure identity. filter: the filter value, None where the scheme has none. gtin: 14
    digits, of SGTIN and ITIP. element_string: GS1's, with application identifiers. digital_link: GS1's, at id.gs1.org.
    company_prefix: None of GID and of names that GS1 does not give.
    """

    hex: str
    scheme: str
    uri: str
    filter: int | None
    gtin: str | None
    element_string: str | None
    digital_link: str | None
    company_prefix: str | None

    def __str__(self) -> str:
        return self.uri


def epc(hex: str) -> EpcName:
    """The name that the EPC memory of a tag holds, from its hexadecimal digits, as readers give them.

    Raises:
        EpcError: the bits hold no name.

    >>> epc("3074257BF7194E4000001A85").uri
    'urn:epc:id:sgtin:0614141.812345.6789'
    """
    if not isinstance(hex, str):
        raise EpcError(f"EPC: found {type(hex).__name__}, expected a text of hexadecimal digits")
    return _named(hex.strip().upper())


@functools.lru_cache(REMEMBERED)
def digital_link(uri: str) -> str | None:
    """GS1's Digital Link of a pure identity such as urn:epc:id:sgtin:...; None if the text is none, or has none."""
    from epcpy.utils.common import ConvertException
    from epcpy.utils.parsers import epc_pure_identity_to_gs1_element_string

    try:
        return _digital_link(epc_pure_identity_to_gs1_element_string(uri))
    except (ConvertException, ValueError, KeyError, IndexError, TypeError):
        return None


@functools.lru_cache(REMEMBERED)
def _named(digits: str) -> EpcName:
    bits = _bits(digits)
    kind = _by_header().get(bits[:8])
    if kind is None:
        raise EpcError(f"EPC {digits}: found the header {digits[:2]}, which is of no name in the tag data standard")
    scheme, coding, filters = kind
    value = _filter(digits, bits, filters)
    from epcpy.utils.common import ConvertException

    try:
        name = scheme.from_binary(bits)
        again = name.binary(**_wanted(name.binary, coding, value))
    except (ConvertException, ValueError, KeyError, IndexError, TypeError) as error:
        raise EpcError(f"EPC {digits}: found no {coding.value} in it ({error or type(error).__name__})") from None
    _check_again(digits, bits, again, coding.value)
    element = _element_string(name)
    return EpcName(
        digits, coding.value, name.epc_uri, None if value is None else int(value.value), _gtin(element), element,
        _digital_link(element), _company_prefix(name, element),
    )  # fmt: skip


def _bits(digits: str) -> str:
    if not 0 < len(digits) <= MOST_HEX or len(digits) % 4 or not set(digits) <= set("0123456789ABCDEF"):
        raise EpcError(
            f"EPC {digits[:MOST_HEX]!r}: found {len(digits)} characters, expected hexadecimal digits, four for each word of "
            f"memory, at most {MOST_HEX}"
        )
    return f"{int(digits, 16):0{4 * len(digits)}b}"


@functools.cache
def _by_header() -> dict[str, tuple[Any, Enum, type[Enum] | None]]:
    """For each header its scheme, its coding and the filter values of the scheme."""
    from epcpy.utils.parsers import TAG_ENCODABLE_CLASSES

    found: dict[str, tuple[Any, Enum, type[Enum] | None]] = {}
    for scheme in TAG_ENCODABLE_CLASSES:
        if scheme.__name__ not in NAMES:
            continue
        filters = getattr(sys.modules[scheme.__module__], f"{scheme.__name__}FilterValue", None)
        for header in scheme.BinaryHeader:
            found[header.value] = scheme, scheme.BinaryCodingScheme[header.name], filters
    return found


def _filter(digits: str, bits: str, filters: type[Enum] | None) -> Enum | None:
    if filters is None:
        return None
    width = max(3, max(len(f"{int(one.value):b}") for one in filters))
    number = str(int(bits[8 : 8 + width], 2))
    value = next((one for one in filters if one.value == number), None)
    if value is None:
        raise EpcError(f"EPC {digits}: found the filter value {number}, which the tag data standard does not have")
    return value


def _wanted(encode: Any, coding: Enum, value: Enum | None) -> dict[str, Enum]:
    """What a scheme wants to know to encode its name: some have one coding, some no filter."""
    known = {"binary_coding_scheme": coding, "filter_value": value}
    return {
        name: one for name, one in known.items() if name in inspect.signature(encode).parameters and one is not None
    }


def _check_again(digits: str, bits: str, again: str, scheme: str) -> None:
    padded = again.ljust(-(-len(again) // 16) * 16, "0")
    if bits != padded and bits.rstrip("0") != again.rstrip("0"):
        raise EpcError(
            f"EPC {digits}: found bits that no {scheme} has: its name makes {int(padded, 2):0{len(padded) // 4}X}"
        )
    if len(bits) > len(padded):
        raise EpcError(f"EPC {digits}: found {len(bits)} bits, expected {len(padded)} of a {scheme}")
    if len(bits) < len(again.rstrip("0")):
        raise EpcError(f"EPC {digits}: found {len(bits)} bits, expected {len(again)} of a {scheme}")


def _element_string(name: Any) -> str | None:
    from epcpy.epc_schemes.base_scheme import GS1Element

    return name.gs1_element_string() if isinstance(name, GS1Element) else None


def _parts(element: str) -> list[tuple[str, str]]:
    """Application identifiers with their values. Values may hold parentheses, but no identifier of digits in them."""
    found = re.split(r"\((\d{2,4})\)", element)
    return list(zip(found[1::2], found[2::2], strict=True))


def _gtin(element: str | None) -> str | None:
    if element is None:
        return None
    identifier, value = _parts(element)[0]
    return value[:14] if identifier in ("01", "8006") else None


def _digital_link(element: str | None) -> str | None:
    if element is None:
        return None
    return "https://id.gs1.org" + "".join(
        f"/{identifier}/{quote(value, safe='')}" for identifier, value in _parts(element)
    )


def _company_prefix(name: Any, element: str | None) -> str | None:
    return name.epc_uri.split(":")[4].split(".")[0] if element is not None else None
