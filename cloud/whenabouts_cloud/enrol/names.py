"""Identities: one text is the certificate's common name, the user, the client id and the place among the topics.

A gateway's identity is `site/gateway`, as in its topics. Those of the cloud have no `/`, so no gateway can have one of them.
An ingest that shares a landing with others has an identity with its name: `ingest=NAME`.
"""

from whenabouts_cloud.landing.layout import INGEST_NAME, PART
from whenabouts_protocol.topics import MAX_NAME_BYTES, is_name

INGEST, PUBLISHER, BROKER = "ingest", "publisher", "broker"
MAX_IDENTITY_BYTES = 64  # X.509 allows no longer common name


class EnrolError(Exception):
    """Nothing was enrolled or revoked. The text says why and what to do."""


def identity_of(site: str, gateway: str) -> str:
    """The identity of a gateway.

    Raises:
        EnrolError: a name cannot be a topic level, or both together are too long for a certificate.

    >>> identity_of("warehouse", "dock-1")
    'warehouse/dock-1'
    """
    for what, name in (("site", site), ("gateway", gateway)):
        if not is_name(name):
            raise EnrolError(
                f"{what}: found {name!a}, expected 1 to {MAX_NAME_BYTES} bytes without space / + #, first not $ or ."
            )
    identity = f"{site}/{gateway}"
    size = len(identity.encode())
    if size > MAX_IDENTITY_BYTES:
        raise EnrolError(
            f"{identity!a}: found {size} bytes, expected at most {MAX_IDENTITY_BYTES}, since a certificate holds no longer "
            "name; take a shorter name for the site or the gateway"
        )
    return identity


def ingest_identity(name: str | None) -> str:
    """The identity of an ingest; name: the one it has among several.

    Raises:
        EnrolError: the name cannot be a folder's, or is too long for a certificate.

    >>> ingest_identity(None), ingest_identity("a")
    ('ingest', 'ingest=a')
    """
    if name is None:
        return INGEST
    if not INGEST_NAME.fullmatch(name) or len(PART + name) > MAX_IDENTITY_BYTES:
        most = MAX_IDENTITY_BYTES - len(PART)
        raise EnrolError(f"--name: found {name!a}, expected 1 to {most} letters, digits, and after the first . _ -")
    return PART + name


def shown(identity: str) -> str:
    """The identity for a terminal: characters that could change how a line looks are escaped."""
    return identity if identity.isprintable() else ascii(identity)[1:-1]
