"""Results as JSON arrays in POST requests, at least once.

    https://USER@HOST/PATH    http://...

A request has at most 1000 results and MAX_BYTES, or one result that is longer. Its header `Idempotency-Key` is made of
series, batch, part and content: a repeated request has the same one. An answer other than 2xx counts as a failure, and the
batch is repeated. USER is sent by basic authentication, with the password of the URI, else that of ~/.netrc for the host.
"""

import base64
import hashlib
import http.client
import json
import netrc
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from whenabouts_cloud.delivery.published import Batch
from whenabouts_cloud.delivery.uri import TargetError, shown

MAX_BYTES = 1 << 20  # of a request
TIMEOUT_S = 30.0
MOST_QUOTED = 200  # characters of an answer in the log


class RefusedError(Exception):
    """The far side has answered a request with something else than success."""


class Webhook:
    """One URL. A connection is kept from request to request while the server allows it."""

    def __init__(self, uri: str, unit: str) -> None:
        parts = urlsplit(uri)
        if not parts.hostname:
            raise TargetError(f"{shown(uri)}: found no host, expected https://HOST/PATH")
        self._host, self._port, self._tls = parts.hostname, parts.port, parts.scheme == "https"
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"Content-Type": "application/json", "User-Agent": "whenabouts"} | _authorization(uri)
        self._connection: http.client.HTTPConnection | None = None

    def deliver(self, batch: Batch) -> int:
        sent = 0
        for number, part in enumerate(batch.parts()):
            for body in bodies(part):
                digest = hashlib.blake2b(body, digest_size=8).hexdigest()
                self._post(body, f"{batch.series}-{batch.number}-{number}-{digest}")
            sent += len(part)
        return sent

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _post(self, body: bytes, key: str) -> None:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
            more: dict[str, Any] = {"context": ssl.create_default_context()} if self._tls else {}
            self._connection = kind(self._host, self._port, timeout=TIMEOUT_S, **more)
        self._connection.request("POST", self._path, body, {**self._headers, "Idempotency-Key": key})
        answer = self._connection.getresponse()
        said = answer.read(MAX_BYTES)
        if not 200 <= answer.status < 300:
            text = said[:MOST_QUOTED].decode(errors="replace")
            raise RefusedError(f"found answer {answer.status} {answer.reason}, expected 2xx: {text}")
        if answer.will_close or not answer.isclosed():
            self.close()


def bodies(rows: list[dict[str, Any]]) -> Iterator[bytes]:
    """Yield JSON arrays of the rows in their order, each of at most MAX_BYTES unless it holds one row."""
    texts: list[bytes] = []
    size = 0
    for row in rows:
        text = json.dumps(row, separators=(",", ":")).encode()
        if texts and size + len(text) + 2 > MAX_BYTES:
            yield b"[" + b",".join(texts) + b"]"
            texts, size = [], 0
        texts.append(text)
        size += len(text) + 1
    if texts:
        yield b"[" + b",".join(texts) + b"]"


def _authorization(uri: str) -> dict[str, str]:
    parts = urlsplit(uri)
    if parts.username is None:
        return {}
    password = parts.password
    if password is None:
        try:
            known = netrc.netrc().authenticators(parts.hostname or "")
        except (OSError, netrc.NetrcParseError):
            known = None
        if known is None:
            raise TargetError(f"{shown(uri)}: found a user without password, expected one for the host in ~/.netrc")
        password = known[2]
    login = f"{unquote(parts.username)}:{unquote(password or '')}"
    return {"Authorization": "Basic " + base64.b64encode(login.encode()).decode()}
