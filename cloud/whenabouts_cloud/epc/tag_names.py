"""The name that an EPC memory holds, by GS1's EPC Tag Data Standard: SGTIN, SSCC, SGLN, GRAI, GIAI, GDTI, GID and others.

epcpy decodes. It takes some bits for a name that are none, so a name counts only if encoding it again gives the same bits,
all of them: then company prefix and reference have the digits that the partition leaves them, and nothing stands behind the
end. Filter values that the standard reserves are taken, as GS1's own examples have them. Of random bits with the header of
an SGTIN half are refused; nothing in the others tells them from a name, so give the company prefixes that you expect.

Cost: some 0.1 ms a name, 1 us for one of the REMEMBERED last ones; what holds no name is remembered too.
"""

import functools
import inspect
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple
from urllib.parse import quote

MOST_HEX = 128  # digits: 512 bits, more than any EPC
REMEMBERED = 1 << 16  # names and bits that hold none, 50 MB
NAMES = (  # classes of epcpy; its ADI gives other bits than it takes
    "SGTIN", "SSCC", "SGLN", "GRAI", "GIAI", "GDTI", "GID", "GSRN", "GSRNP", "CPI", "SGCN", "ITIP", "USDOD",
)  # fmt: skip
SECOND = {"01": "21", "414": "254", "8006": "21", "8010": "8011"}  # identifiers that follow others in element strings


class EpcError(ValueError):
    """The bits are no EPC that has a name. The text says what was found and what was expected."""


@dataclass(frozen=True, slots=True)
class EpcName:
    """A name. hex: the bits, in capitals; they identify the tag.

    scheme: as in sgtin; coding: as in sgtin-96. uri: the pure identity. filter: the filter value, None where the scheme has
    none. gtin: 14 digits, of SGTIN and ITIP. element_string: GS1's, with application identifiers. digital_link: GS1's, at
    id.gs1.org. company_prefix: None of GID and of names that GS1 does not give.
    """

    hex: str
    scheme: str
    coding: str
    uri: str
    filter: int | None
    gtin: str | None
    element_string: str | None
    digital_link: str | None
    company_prefix: str | None

    def __str__(self) -> str:
        return self.uri


class _Kind(NamedTuple):
    """What a header says: the class of epcpy, its coding, its filter values and their bits, what its encoder takes."""

    scheme: Any
    coding: Enum
    filters: dict[str, Enum]
    filter_bits: int
    takes: frozenset[str]


def epc(hex: str, prefixes: Collection[str] | None = None) -> EpcName:
    """The name that the EPC memory of a tag holds, from its hexadecimal digits, as readers give them.

    prefixes: the company prefixes that you expect. Other names, and those without one, are refused then: of random bits
    that look like an SGTIN one in millions has a given prefix.

    Raises:
        EpcError: the bits hold no name, or one of another company.

    >>> epc("3074257BF7194E4000001A85").uri
    'urn:epc:id:sgtin:0614141.812345.6789'
    """
    if not isinstance(hex, str):
        raise EpcError(f"EPC: found {type(hex).__name__}, expected a text of hexadecimal digits")
    found = _looked_up(hex)
    if isinstance(found, str):
        raise EpcError(found)
    if prefixes is not None and found.company_prefix not in (expected := checked(prefixes)):
        raise EpcError(
            f"EPC {found.hex}: found the company prefix {found.company_prefix} in {found.uri}, expected one of "
            f"{', '.join(sorted(expected)[:20]) or 'none'}"
        )
    return found


def name_in(key: str | None) -> EpcName | None:
    """The name that a key holds; None if it is no EPC, or holds none."""
    found = None if key is None else _looked_up(key)
    return None if isinstance(found, str) else found


def checked(prefixes: Collection[str]) -> frozenset[str]:
    """Company prefixes, each a text of 6 to 12 digits.

    Raises:
        EpcError: they are something else.
    """
    some = frozenset([prefixes] if isinstance(prefixes, str) or not isinstance(prefixes, Collection) else prefixes)
    for one in some:
        if not isinstance(one, str) or not re.fullmatch(r"[0-9]{6,12}", one):
            raise EpcError(f"prefixes: found {one!r}, expected company prefixes, texts of 6 to 12 digits")
    return some


def _looked_up(key: str) -> EpcName | str:
    """The name, or why there is none; what is too long is not remembered."""
    return _name_or_reason(key.strip().upper()) if len(key) <= 2 * MOST_HEX else _no_digits(key)


@functools.lru_cache(REMEMBERED)
def digital_link(uri: str) -> str | None:
    """GS1's Digital Link of a pure identity such as urn:epc:id:sgtin:...; None if the text is none, or has none."""
    from epcpy.utils.common import ConvertException
    from epcpy.utils.parsers import epc_pure_identity_to_gs1_element_string

    try:
        return _digital_link(_parts(epc_pure_identity_to_gs1_element_string(uri)))
    except (ConvertException, ValueError, KeyError, IndexError, TypeError):
        return None


@functools.lru_cache(REMEMBERED)
def _name_or_reason(digits: str) -> EpcName | str:
    """The name, or why there is none."""
    try:
        return _named(digits)
    except EpcError as error:
        return str(error)


def _named(digits: str) -> EpcName:
    bits = _bits(digits)
    kind = _by_header().get(bits[:8])
    if kind is None:
        raise EpcError(f"EPC {digits}: found the header {digits[:2]}, which is of no name in the tag data standard")
    value = _filter(digits, bits, kind)
    from epcpy.utils.common import ConvertException

    known = {"binary_coding_scheme": kind.coding, "filter_value": value}
    try:
        name = kind.scheme.from_binary(bits)
        again = name.binary(**{one: known[one] for one in kind.takes if known[one] is not None})
    except (ConvertException, ValueError, KeyError, IndexError, TypeError) as error:
        raise EpcError(f"EPC {digits}: found no {kind.coding.value} in it ({error or type(error).__name__})") from None
    _check_again(digits, bits, again, kind.coding.value)
    element = _element_string(name)
    parts = _parts(element)
    uri: str = name.epc_uri
    return EpcName(
        digits, uri.split(":")[3], kind.coding.value, uri, None if value is None else int(value.value), _gtin(parts),
        element, _digital_link(parts), _company_prefix(uri, element),
    )  # fmt: skip


def _bits(digits: str) -> str:
    if not 0 < len(digits) <= MOST_HEX or len(digits) % 4 or not set(digits) <= set("0123456789ABCDEF"):
        raise EpcError(_no_digits(digits))
    return f"{int(digits, 16):0{4 * len(digits)}b}"


def _no_digits(text: str) -> str:
    return (
        f"EPC {text[:MOST_HEX]!r}: found {len(text)} characters, expected hexadecimal digits, four for each word of "
        f"memory, at most {MOST_HEX}"
    )


@functools.cache
def _by_header() -> dict[str, _Kind]:
    from epcpy.utils.parsers import TAG_ENCODABLE_CLASSES

    found: dict[str, _Kind] = {}
    for scheme in TAG_ENCODABLE_CLASSES:
        if scheme.__name__ not in NAMES:
            continue
        values = getattr(sys.modules[scheme.__module__], f"{scheme.__name__}FilterValue", ())
        filters: dict[str, Enum] = {one.value: one for one in values}
        width = max([3, *(int(one).bit_length() for one in filters)])
        takes = frozenset(inspect.signature(scheme.binary).parameters) & {"binary_coding_scheme", "filter_value"}
        for header in scheme.BinaryHeader:
            found[header.value] = _Kind(scheme, scheme.BinaryCodingScheme[header.name], filters, width, takes)
    return found


def _filter(digits: str, bits: str, kind: _Kind) -> Enum | None:
    if not kind.filters:
        return None
    number = str(int(bits[8 : 8 + kind.filter_bits], 2))
    value = kind.filters.get(number)
    if value is None:
        raise EpcError(f"EPC {digits}: found the filter value {number}, which the tag data standard does not have")
    return value


def _check_again(digits: str, bits: str, again: str, scheme: str) -> None:
    padded = again.ljust(-(-len(again) // 16) * 16, "0")
    if bits.rstrip("0") != again.rstrip("0"):
        raise EpcError(
            f"EPC {digits}: found bits that no {scheme} has: its name makes {int(padded, 2):0{len(padded) // 4}X}"
        )
    if len(bits) != len(padded):
        raise EpcError(f"EPC {digits}: found {len(bits)} bits, expected {len(padded)} of a {scheme}")


def _element_string(name: Any) -> str | None:
    from epcpy.epc_schemes.base_scheme import GS1Element
    from epcpy.epc_schemes.sgln import SGLN

    if not isinstance(name, GS1Element):
        return None
    element: str = name.gs1_element_string()
    # The extension 0 of an SGLN means a GLN without one.
    return element.removesuffix("(254)0") if isinstance(name, SGLN) and name.epc_uri.endswith(".0") else element


def _parts(element: str | None) -> list[tuple[str, str]]:
    """Application identifiers with their values. Only the last value may hold what looks like an identifier."""
    if element is None:
        return []
    name, _, value = element.removeprefix("(").partition(")")
    if name not in SECOND:
        return [(name, value)]
    first, found, second = value.partition(f"({SECOND[name]})")
    return [(name, first), (SECOND[name], second)] if found else [(name, first)]


def _gtin(parts: list[tuple[str, str]]) -> str | None:
    return parts[0][1][:14] if parts and parts[0][0] in ("01", "8006") else None


def _digital_link(parts: list[tuple[str, str]]) -> str | None:
    return (
        "https://id.gs1.org" + "".join(f"/{name}/{quote(value, safe='')}" for name, value in parts) if parts else None
    )


def _company_prefix(uri: str, element: str | None) -> str | None:
    return uri.split(":")[4].split(".")[0] if element is not None else None
