"""The files of a connection: when a certificate ends, whether files have changed, and whether they fit together.

Python's `ssl` tells the end of a peer's certificate only, and a gateway has no library for certificates; the end stands at
a fixed place in DER (RFC 5280, section 4.1): the fifth part of the first part, behind an optional version.
"""

import calendar
import os
import re
import ssl
from pathlib import Path

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from whenabouts_edge.config.settings import BrokerConfig
from whenabouts_edge.mqtt_client import secure

MAX_FILE_BYTES = 1 << 20
_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE, _VERSION, _UTC_TIME, _GENERAL_TIME = 0x30, 0xA0, 0x17, 0x18

Stamp = tuple[tuple[str, int, int, int], ...]


def ends(path: str) -> list[int]:
    """The end of each certificate in a PEM file, seconds since 1970, in the order of the file.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no certificate, or a malformed one.
    """
    with Path(path).open("rb") as file:
        text = file.read(MAX_FILE_BYTES).decode("ascii", "replace")
    blocks = _BLOCK.findall(text)
    if not blocks:
        raise ValueError(f"{path}: found no certificate, expected PEM")
    try:
        return [end_of(ssl.PEM_cert_to_DER_cert(block)) for block in blocks]
    except (ValueError, IndexError) as error:
        raise ValueError(f"{path}: found a malformed certificate ({error}), expected X.509 in PEM") from None


def end_of(der: bytes) -> int:
    """The end of one certificate, seconds since 1970. Raises ValueError if it is malformed."""
    body = _part(_part(der, 0, _SEQUENCE)[0], 0, _SEQUENCE)[0]
    at = _part(body, 0, _VERSION)[1] if body[:1] == bytes([_VERSION]) else 0
    for _ in range(3):  # serial number, algorithm, issuer
        at = _part(body, at)[1]
    validity = _part(body, at, _SEQUENCE)[0]
    at = _part(validity, 0)[1]
    kind = validity[at] if at < len(validity) else 0
    text = _part(validity, at)[0].decode("ascii")
    if kind == _UTC_TIME:  # two digits of the year: 1950 to 2049
        text = ("19" if text[:2] >= "50" else "20") + text
    elif kind != _GENERAL_TIME:
        raise ValueError(f"found type {kind:#x}, expected a time")
    if not re.fullmatch(r"\d{14}Z", text):
        raise ValueError(f"found {text[:20]!r}, expected a time like 20300131235959Z")
    year, *others = int(text[:4]), *(int(text[i : i + 2]) for i in range(4, 14, 2))
    return calendar.timegm((year, *others))


def _part(data: bytes, at: int, kind: int | None = None) -> tuple[bytes, int]:
    """(content, end) of the part that begins at `at`. Raises ValueError if it is another kind or not whole."""
    head = data[at : at + 2]
    if len(head) < 2 or (kind is not None and head[0] != kind):
        raise ValueError(f"found {head.hex() or 'the end'} at {at}")
    size, begin = head[1], at + 2
    if size & 0x80:
        begin += size & 0x7F
        size = int.from_bytes(data[at + 2 : begin], "big")
    if begin + size > len(data):
        raise ValueError(f"found the end within a part at {at}")
    return data[begin : begin + size], begin + size


def stamp(broker: BrokerConfig) -> Stamp:
    """Changes when a file of the connection is written or replaced."""
    known = []
    for path in filter(None, (broker.ca_file, broker.cert_file, broker.key_file, broker.password_file)):
        try:
            status = os.stat(path)
        except OSError:
            continue
        known.append((path, status.st_mtime_ns, status.st_ino, status.st_size))
    return tuple(known)


def fault(broker: BrokerConfig) -> str:
    """Why these files cannot be used now, '' if they can: each is whole, and the key belongs to the certificate."""
    which = "ca_file, cert_file or key_file: "
    try:
        secure(mqtt.Client(CallbackAPIVersion.VERSION2), broker)
    except ssl.SSLError as error:
        return f"{which}{error.reason or error}"
    except FileNotFoundError as error:
        return str(error) if error.filename else f"{which}{error.strerror}"
    except (OSError, ValueError) as error:
        return str(error)
    return ""
