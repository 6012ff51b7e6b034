"""URIs of what events name: objects, places, readings, results.

A tag whose memory holds an EPC has the name that GS1 gives it. All else has a private URI below `base`, as GS1's Core
Business Vocabulary allows: `urn:whenabouts:key/0012345678`. Parts are percent-encoded, so different names have different
URIs.
"""

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote, unquote

from whenabouts_cloud.epc import EpcError, epc

BASE = "urn:whenabouts:"
PREFIX, VOCABULARY = "whenabouts", "urn:whenabouts:epcis:"  # of our extensions
CONTEXT = ("https://ref.gs1.org/standards/epcis/2.0.0/epcis-context.jsonld", {PREFIX: VOCABULARY})
_READ_POINT, _KEY, _RAW = "readpoint", "key", "urn:epc:raw:"


class Thing(NamedTuple):
    """An object. canonical: the form of its URI that event hashes take. raw: the bits of an EPC that has a name."""

    uri: str
    canonical: str
    raw: str | None


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
            uri = self._private(_KEY, key)
            return Thing(uri, uri, None)
        raw = f"{_RAW}{4 * len(name.hex)}.x{name.hex}"
        if name.digital_link is None:
            return Thing(name.uri, name.uri, raw)
        link = _canonical(name.digital_link)
        if self.links:
            return Thing(link, link, raw)
        # GS1's program hashes the URI of a GRAI with a company prefix of twelve digits as it is.
        twelve = name.scheme.startswith("grai") and len(name.company_prefix or "") == 12
        return Thing(name.uri, name.uri if twelve else link, raw)

    def read_point(self, site: str, gateway: str, stream: str) -> str:
        """The place at which a stream's readings are made."""
        return self._private(_READ_POINT, site, gateway, stream)

    def site(self, site: str) -> str:
        """A site, as the business location."""
        return self._private("site", site)

    def reading(self, site: str, gateway: str, boot: int, seq: int) -> str:
        """A reading, by its identity."""
        return self._private("reading", site, gateway, str(boot), str(seq))

    def result(self, result_id: str) -> str:
        """A result, by its id."""
        return self._private("result", result_id)

    def rule(self, name: str) -> str:
        """A rule, by its name."""
        return self._private("rule", name)

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


def _canonical(link: str) -> str:
    """The Digital Link with only those characters encoded that GS1 wants to be."""
    for code, sign in (("%27", "'"), ("%3B", ";"), ("%3D", "=")):
        link = link.replace(code, sign)
    return link
