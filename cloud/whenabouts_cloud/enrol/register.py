"""What an authority has issued and revoked, to whom, and which brokers it serves: a value, and its JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from whenabouts_cloud.enrol.names import BROKER, EnrolError, shown
from whenabouts_cloud.landing.layout import PART

DAY_S = 86400
YEAR_S = 365 * DAY_S  # likewise of the authority
SOON_S = 30 * DAY_S  # `enrol list` warns of what ends within this time
FORGOTTEN_S = 30 * DAY_S  # a certificate that has ended this long ago is forgotten once the identity has another


@dataclass(frozen=True, slots=True)
class Certificate:
    """One certificate: times are UTC in seconds since 1970; revoked_s is None while it is not revoked."""

    identity: str
    serial: int
    ends_s: int
    revoked_s: int | None = None

    def valid(self, now_s: int) -> bool:
        """True if it has neither ended nor been revoked."""
        return self.revoked_s is None and now_s < self.ends_s


@dataclass(frozen=True, slots=True)
class Gateway:
    """What a gateway may do: streams it may publish (MQTT patterns, None for any) and groups it is in."""

    streams: tuple[str, ...] | None = None
    groups: tuple[str, ...] = ()
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker's folder, which is kept up to date, and its address."""

    folder: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Register:
    """All that the authority remembers."""

    certificates: tuple[Certificate, ...] = ()
    gateways: dict[str, Gateway] = field(default_factory=dict)
    brokers: tuple[Broker, ...] = ()
    ingests: dict[str, tuple[str, ...]] = field(default_factory=dict)  # sites of each ingest with a name; none for all

    def issued(self, certificate: Certificate, now_s: int) -> "Register":
        """With one more certificate, and without those that have long ended."""
        kept = tuple(
            one for one in self.certificates if one.identity != certificate.identity or now_s < one.ends_s + FORGOTTEN_S
        )
        return replace(self, certificates=(*kept, certificate))

    def enrolled(self, identity: str, streams: Sequence[str], groups: Sequence[str]) -> "Register":
        """With this gateway; what is empty stays as it was for a known one."""
        known = self.gateways.get(identity, Gateway())
        made = Gateway(tuple(streams) or known.streams, tuple(groups) or known.groups)
        return replace(self, gateways={**self.gateways, identity: made})

    def with_ingest(self, identity: str, sites: Sequence[str]) -> "Register":
        """With this ingest among several, which lands these sites only, or all without any."""
        return replace(self, ingests={**self.ingests, identity: tuple(sites)})

    def withdrawn(self, identity: str, now_s: int) -> "Register":
        """With all valid certificates of this identity revoked."""
        certificates = tuple(
            replace(one, revoked_s=now_s) if one.identity == identity and one.valid(now_s) else one
            for one in self.certificates
        )
        return replace(self, certificates=certificates)

    def revoked(self, identity: str, now_s: int) -> "Register":
        """With this gateway and all its certificates revoked; it is in no group any more."""
        gateway = replace(self.gateways[identity], groups=(), revoked=True)
        return replace(self.withdrawn(identity, now_s), gateways={**self.gateways, identity: gateway})

    def with_broker(self, broker: Broker) -> "Register":
        """With this broker, in the place of an earlier one in its folder."""
        others = tuple(one for one in self.brokers if one.folder != broker.folder)
        return replace(self, brokers=(*others, broker))

    def revocations(self) -> dict[int, int]:
        """Serial numbers of revoked certificates with the times of their revocation."""
        return {one.serial: one.revoked_s for one in self.certificates if one.revoked_s is not None}

    def peers(self, identity: str) -> list[str]:
        """Other members of this gateway's groups, sorted."""
        mine = set(self.gateways[identity].groups)
        return sorted(other for other, one in self.gateways.items() if other != identity and mine & set(one.groups))

    def warnings(self, now_s: int, authority_ends_s: int) -> list[str]:
        """One sentence for each identity in use whose last certificate ends soon or has ended, and for the authority."""
        newest = {
            one.identity: one for one in sorted(self.certificates, key=lambda one: one.ends_s) if not one.revoked_s
        }
        found = []
        if authority_ends_s <= now_s + YEAR_S:
            found.append(
                f"the authority ends in {(authority_ends_s - now_s) // DAY_S} days, and with it all certificates; "
                "make a new one with `enrol init` in another folder and enrol everybody there"
            )
        for identity, one in sorted(newest.items()):
            if one.ends_s <= now_s:
                found.append(f"{shown(identity)}: its certificate has ended; {_renewal(identity)}")
            elif one.ends_s <= now_s + SOON_S:
                found.append(
                    f"{shown(identity)}: its certificate ends in {(one.ends_s - now_s) // DAY_S} days; {_renewal(identity)}"
                )
        return found


def gateways_json(register: Register) -> bytes:
    """The file for `ingest --gateways`: which gateways may publish which streams, and who is revoked."""
    gateways = {
        identity: {"streams": None if one.streams is None else list(one.streams), "revoked": one.revoked}
        for identity, one in sorted(register.gateways.items())
    }
    return json.dumps({"gateways": gateways}, ensure_ascii=False, indent=1).encode() + b"\n"


def encode(register: Register) -> bytes:
    """The register as JSON."""
    return json.dumps(asdict(register), ensure_ascii=False, indent=1).encode() + b"\n"


def decode(data: bytes) -> Register:
    """The register of its JSON.

    Raises:
        EnrolError: it is not as `encode` writes it.
    """
    try:
        raw = json.loads(data)
        certificates = tuple(Certificate(**one) for one in raw["certificates"])
        gateways = {identity: _gateway(**one) for identity, one in raw["gateways"].items()}
        ingests = {identity: tuple(sites) for identity, sites in raw.get("ingests", {}).items()}  # absent in older ones
        return Register(certificates, gateways, tuple(Broker(**one) for one in raw["brokers"]), ingests)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EnrolError(
            f"register.json: found {error!r}, expected what enrol wrote; restore the file from a backup of the folder"
        ) from None


def _gateway(streams: list[str] | None, groups: list[str], revoked: bool) -> Gateway:
    return Gateway(None if streams is None else tuple(streams), tuple(groups), revoked)


def _renewal(identity: str) -> str:
    if identity.startswith(PART):
        return f"renew it with `enrol ingest --name {identity.removeprefix(PART)}`"
    return f"renew it with `enrol {'broker' if identity == BROKER else identity if '/' not in identity else 'gateway'}`"
