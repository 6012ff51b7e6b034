"""Requests to one HTTP server over one connection, which is kept while the server allows it.

A redirection is an answer like any other and is never followed: credentials go to the host of the URI and nowhere else.
"""

import base64
import http.client
import netrc
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from whenabouts_cloud.delivery.uri import TargetError, shown

TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 1 << 20
MOST_QUOTED = 200  # characters of an answer in the log


class RefusedError(Exception):
    """The far side has answered a request with something else than success."""


class Answer(NamedTuple):
    """What a server has answered. location: that header."""

    status: int
    reason: str
    location: str | None
    body: bytes

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    def error(self) -> RefusedError:
        """The error that this answer is."""
        text = self.body[:MOST_QUOTED].decode(errors="replace")
        moved = ", a redirection, which is not followed" if 300 <= self.status < 400 else ""
        return RefusedError(f"found answer {self.status} {self.reason}{moved}, expected 2xx: {text}")


class HttpConnection:
    """The server of a URI. A user in it is sent by basic authentication, with its password, else that of ~/.netrc.

    Raises:
        TargetError: the URI has no host, or a user without a password.
    """

    def __init__(self, uri: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(uri)
        try:
            self._host, self._port = parts.hostname, parts.port
        except ValueError as error:
            raise TargetError(f"{shown(uri)}: found {error}, expected https://HOST:PORT/PATH") from None
        if not self._host or parts.scheme not in ("http", "https"):
            raise TargetError(f"{shown(uri)}: found no host, expected https://HOST/PATH")
        self._tls = parts.scheme == "https"
        self.path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = {"User-Agent": "whenabouts", **headers, **_authorization(uri)}
        self._connection: http.client.HTTPConnection | None = None

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request and return the answer, of which at most MAX_ANSWER_BYTES are read."""
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._tls else http.client.HTTPConnection
            more: dict[str, Any] = {"context": ssl.create_default_context()} if self._tls else {}
            self._connection = kind(self._host or "", self._port, timeout=TIMEOUT_S, **more)
        self._connection.request(method, path, body, {**self._headers, **(headers or {})})
        answer = self._connection.getresponse()
        said = answer.read(MAX_ANSWER_BYTES)
        if answer.will_close or not answer.isclosed():
            self.close()
        return Answer(answer.status, answer.reason, answer.getheader("Location"), said)

    def close(self) -> None:
        """Drop the connection; the next request makes another."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


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
