"""A board's client certificate and its key, in the formats of boards and of this computer."""

import base64
import re
import ssl
import tempfile

_KEY = re.compile(rb"-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def der(certificates: bytes, key: bytes) -> tuple[bytes, bytes]:
    """The first of these certificates and its key in DER, from PEM: boards read only DER and only one certificate.

    Raises:
        ValueError: they do not belong together, the key has a passphrase, or they are not PEM.
    """
    try:
        show(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificates + b"\n" + key)
        matches = _CERTIFICATE.search(certificates), _KEY.search(key)
    except (OSError, ValueError) as error:  # the library raises both
        raise ValueError(f"found {getattr(error, 'reason', None) or error}") from None
    if matches[0] is None or matches[1] is None:
        raise ValueError("found another kind of key or certificate")
    return base64.b64decode(matches[0][1]), base64.b64decode(matches[1][2])


def show(context: ssl.SSLContext, pem: bytes) -> None:
    """Make this computer present a certificate; pem: the certificate and its key. Raises OSError and ValueError as the
    library does.
    """
    with tempfile.NamedTemporaryFile() as file:  # private to this user; the library reads only files
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name, password=lambda: "")  # without it the library would prompt for a passphrase


def count(certificates: bytes) -> int:
    """Number of certificates in a file."""
    return len(_CERTIFICATE.findall(certificates))
