"""URIs of what events name: objects, places, readings, results.

A tag whose memory holds an EPC has the name that GS1 gives it. All else has a private URI below `base`, as GS1's Core
Business Vocabulary allows: `urn:whenabouts:key/0012345678`. Parts are percent-encoded, so different names have different
URIs. A key, a stream or a site that is a URI already is its own name: an SGLN for a read point, say.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, unquote

from whenabouts_cloud.epc import EpcError, digital_link, epc

BASE = "urn:whenabouts:"
PREFIX, VOCABULARY = "whenabouts", "urn:whenabouts:epcis:"  # of our extensions
CONTEXT = ("https://ref.gs1.org/standards/epcis/2.0.0/epcis-context.jsonld", {PREFIX: VOCABULARY})
_READ_POINT, _KEY, _RAW = "readpoint", "key", "urn:epc:raw:"
_URI = re.compile(
    r"(?:urn:[A-Za-z0-9][A-Za-z0-9-]{1,31}:|https?://)(?:[\w\-.~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+", re.ASCII
)
_OF_GS1 = re.compile(r"urn:epc|/(?:[0-9]{2,4}|[a-z]{3,5})/[0-9]{4}|https?://[^/?#]*/[A-Za-z_-]{10}$")  # or may be
_CANONICAL_LINK = re.compile(
    r"https://id\.gs1\.org/(?:00/\d{18}|01/\d{14}/21/[\w.~%-]+|253/\d{13}[\w.~%-]*|255/\d{13,25}|414/\d{13}(?:/254/[\w.~%-]+)?"
    r"|8003/\d{14}[\w.~%-]*|8004/\d{4}[\w.~%-]*)",
    re.ASCII,
)


class Thing(NamedTuple):
    """An object or a place. canonical: the form of its URI that event hashes take. raw: the bits of an EPC with a name."""

    uri: str
    canonical: str
    raw: str | None = None


@dataclass(frozen=True)
class Names:
    """How URIs are made. base: begins private ones, such as https://id.acme.example/. links: GS1 Digital Links for EPCs."""

    base: str = BASE
    links: bool = False

    def thing(self, key: str) -> Thing:
        """The object with a key.

        >>> Names().thing("3074257BF7194E4000001A85").uri, Names().thing("a/b").uri
        ('urn:epc:id:sgtin:0614141.812345.6789', 'urn:whenabouts:key/a%2Fb')
        """
        try:
            name = epc(key)
        except EpcError:
            return self._named(key, _KEY, key)
        raw = f"{_RAW}{4 * len(name.hex)}.x{name.hex}"
        if name.digital_link is None:
            return Thing(name.uri, name.uri, raw)
        link = _canonical(name.digital_link)
        if self.links:
            return Thing(link, link, raw)
        return Thing(name.uri, name.uri if _hashed_as_it_is(name.uri) else link, raw)

    def read_point(self, site: str, gateway: str, stream: str) -> Thing:
        """The place at which a stream's readings are made."""
        return self._named(stream, _READ_POINT, site, gateway, stream)

    def site(self, site: str) -> Thing:
        """A site, as the business location."""
        return self._named(site, "site", site)

    def reading(self, site: str, gateway: str, boot: int, seq: int) -> str:
        """A reading, by its identity."""
        return self._private("reading", site, gateway, str(boot), str(seq))

    def result(self, result_id: str) -> str:
        """A result, by its id."""
        return self._private("result", result_id)

    def rule(self, name: str) -> str:
        """A rule, by its name."""
        return self._private("rule", name)

    def _named(self, name: str, *parts: str) -> Thing:
        """The name itself if it is a URI, else a private one of these parts."""
        canonical = _canonical_of(name)
        uri = self._private(*parts)
        return Thing(uri, uri) if canonical is None else Thing(name, canonical)

    def _private(self, *parts: str) -> str:
        return self.base + "/".join(quote(part, safe="") for part in parts)


def key_in(uri: str) -> str:
    """The key that a URI was made of, if it is one of `thing` below the usual base or of its raw form; else the URI.

    >>> key_in("urn:whenabouts:key/a%2Fb"), key_in("urn:epc:raw:96.x3074257BF7194E4000001A85")
    ('a/b', '3074257BF7194E4000001A85')
    """
    if uri.startswith(f"{BASE}{_KEY}/"):
        return unquote(uri.removeprefix(f"{BASE}{_KEY}/"))
    if uri.startswith(_RAW) and ".x" in uri:
        return uri.partition(".x")[2]
    return uri


def stream_in(uri: str) -> str:
    """The stream that a read point was made of, if it is one of ours below the usual base; else the URI."""
    parts = uri.removeprefix(f"{BASE}{_READ_POINT}/").split("/")
    return unquote(parts[2]) if uri.startswith(f"{BASE}{_READ_POINT}/") and len(parts) == 3 else uri


def _canonical_of(name: str) -> str | None:
    """The form that hashes take of a URI; None for what is none, and for names of GS1 that are not in a usual form."""
    if _URI.fullmatch(name) is None or name.startswith(BASE):
        return None
    if name.startswith("urn:epc:id:"):
        return name if _hashed_as_it_is(name) else _link_of(name)
    return None if _OF_GS1.search(name) and not _CANONICAL_LINK.fullmatch(name) else name


def _link_of(uri: str) -> str | None:
    """The canonical Digital Link of a pure identity."""
    link = digital_link(uri)
    return None if link is None else _canonical(link)


def _hashed_as_it_is(uri: str) -> bool:
    """True for a GRAI with a company prefix of twelve digits, which GS1's program for hashes does not convert."""
    return re.match(r"urn:epc:id:grai:\d{12}\.", uri) is not None


def _canonical(link: str) -> str:
    """The Digital Link with only those characters encoded that GS1 wants to be, and without the extension 0 of an SGLN."""
    for code, sign in (("%27", "'"), ("%3B", ";"), ("%3D", "=")):
        link = link.replace(code, sign)
    return link.removesuffix("/254/0") if "/414/" in link else link
