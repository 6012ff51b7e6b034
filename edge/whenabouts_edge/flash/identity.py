"""The certificate by which a broker knows a board, and its key: as boards read them, and as this computer does."""

import base64
import re
import ssl
import tempfile

_KEY = re.compile(rb"-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


def der(certificates: bytes, key: bytes) -> tuple[bytes, bytes]:
    """The first of these certificates and its key in DER, from PEM: boards read no other form, and one certificate.

    Raises:
        ValueError: they do not belong together, the key has a passphrase, or they are no PEM.
    """
    try:
        show(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificates + b"\n" + key)
        matches = _CERTIFICATE.search(certificates), _KEY.search(key)
    except (OSError, ValueError) as error:  # the library's own mistakes are of both kinds
        raise ValueError(f"found {getattr(error, 'reason', None) or error}") from None
    if matches[0] is None or matches[1] is None:
        raise ValueError("found another kind of key or certificate")
    return base64.b64decode(matches[0][1]), base64.b64decode(matches[1][2])


def show(context: ssl.SSLContext, pem: bytes) -> None:
    """Let this computer show a certificate; pem: it and its key. Raises OSError and ValueError as the library does."""
    with tempfile.NamedTemporaryFile() as file:  # of this user alone; the library reads nothing but files
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name, password=lambda: "")  # asked for one it would wait for somebody to type it


def count(certificates: bytes) -> int:
    """How many certificates a file holds."""
    return len(_CERTIFICATE.findall(certificates))
