"""What is unwise about credentials: a password without TLS, secrets that others can read, a certificate that ends soon."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509

from whenabouts_cloud.broker.connection import Credentials

DAY_S = 86400
SOON_DAYS = 30
OTHERS = 0o007  # rights of users who are neither the owner nor in the group


def unwise(credentials: Credentials, password_file: Path | None, now_s: float) -> Iterator[str]:
    """Yield one sentence for each, with what to do. Looks at the files; a file that is missing is left to the connection."""
    if credentials.password and not (credentials.ca_file or credentials.cert_file):
        yield "the password goes over the network in clear, and readings too; use TLS: --ca-file FILE"
    for file in (password_file, credentials.key_file):
        if file is not None and _others_read(Path(file)):
            yield f"{file} can be read by every user of this machine, expected its owner only: chmod 600 {file}"
    ends_s = None if credentials.cert_file is None else certificate_ends_s(Path(credentials.cert_file))
    if ends_s is not None and ends_s < now_s + SOON_DAYS * DAY_S:
        when = f"{datetime.fromtimestamp(ends_s, UTC):%Y-%m-%d %H:%M} UTC"
        verb = "ended" if ends_s <= now_s else "ends"
        yield f"the certificate {credentials.cert_file} {verb} on {when}; renew it, as with `whenabouts-cloud enrol`"


def certificate_ends_s(file: Path) -> float | None:
    """The end of a certificate in seconds since 1970, None if the file holds none."""
    try:
        return x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc.timestamp()
    except (OSError, ValueError):
        return None


def _others_read(file: Path) -> bool:
    try:
        return bool(file.stat().st_mode & OTHERS)
    except OSError:
        return False
