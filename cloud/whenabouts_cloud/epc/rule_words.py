"""The words of the rule language that mean the name in a key, and what is compared with them.

    uri               the pure identity, as in "urn:epc:id:sgtin:0614141.812345.6789"
    gtin              14 digits, of SGTIN and ITIP
    epc_scheme        as in "sgtin"
    company_prefix    6 to 12 digits, of the names that GS1 gives

All are texts, and a function of the key alone: what identifies a tag, and what shards and PER key divide by, is the key. A
key without a name has none of them, as a reading without an attribute has no such attribute.
"""

from whenabouts_cloud.epc.tag_names import NAMES, name_in

WORDS = {"uri": "uri", "gtin": "gtin", "epc_scheme": "scheme", "company_prefix": "company_prefix"}  # fields of EpcName
SCHEMES = tuple(name.lower() for name in NAMES)
URI = "urn:epc:id:"


def word_of(key: str | None, word: str) -> str | None:
    """What a word of WORDS is for a key, and "key" for the key itself; None if the key holds no such name.

    >>> word_of("3074257BF7194E4000001A85", "gtin")
    '80614141123458'
    """
    if word == "key":
        return key
    name = name_in(key)
    if name is None:
        return None
    meant: str | None = getattr(name, WORDS[word])
    return meant


def mistake_in(word: str, text: str) -> str | None:
    """Why no name has this text as this word, as `found ..., expected ...`; None if one may have it.

    >>> mistake_in("gtin", "614141123452")
    'found gtin "614141123452", expected 14 digits: "00614141123452"'
    """
    expected = {"gtin": _gtin, "uri": _uri, "epc_scheme": _scheme, "company_prefix": _prefix}[word](text)
    return None if expected is None else f'found {word} "{text}", expected {expected}'


def _gtin(text: str) -> str | None:
    from epcpy.utils.common import calculate_checksum

    if not _is_digits(text) or len(text) > 14:
        return '14 digits such as "80614141123458"'
    if len(text) < 14:
        return f'14 digits: "{text.zfill(14)}"' if len(text) in (8, 12, 13) else "14 digits, with zeros in front"
    check = str(calculate_checksum(text[:-1]))
    return None if text[-1] == check else f"{check} as the last digit, which checks the others"


def _uri(text: str) -> str | None:
    scheme = text.removeprefix(URI).partition(":")[0]
    if text.startswith(URI) and scheme in SCHEMES:
        return None
    return f'a pure identity such as "{URI}sgtin:0614141.812345.6789", of one of {", ".join(SCHEMES)}'


def _scheme(text: str) -> str | None:
    return None if text in SCHEMES else f"one of {', '.join(SCHEMES)}"


def _prefix(text: str) -> str | None:
    return None if _is_digits(text) and 6 <= len(text) <= 12 else "6 to 12 digits"


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
