"""Who may ask the dashboard, and what: a layer around the application that sees every request first.

Loopback needs no login, but a browser there obeys any web page. So a request must name this server as its Host (a page that
had its own name point here, DNS rebinding, cannot), must not come from another origin, and may change something only with a
JSON body, which no other origin can send unasked. Beyond loopback each request needs a login as well: a token or a password
over TLS, compared in constant time. Wrong ones are counted by address, and each is answered late.

Every response gets the headers that keep a browser from loading, embedding or sending anything anywhere else.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from whenabouts_protocol.logs import Log

log = Log(__name__)

COOKIE = "whenabouts"
WRONG_S = 1.0  # that the answer to a wrong login takes
MOST_WRONG, WINDOW_S = 10, 60.0  # wrong logins of an address in a time; then none is looked at until it is over
MAX_ADDRESSES = 1000  # whose wrong logins are remembered; the oldest is forgotten
MAX_LATE = 32  # answers to wrong logins that wait; beyond that they are refused at once
LOGIN_BYTES = 1024  # of a token, or a user with a password
OPEN = ("/healthz",)  # without a login
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), usb=(), serial=()",
    "cache-control": "no-store",
}


@dataclass(slots=True)
class AccessCounters:
    """Counts of refused requests since the start."""

    wrong_host: int = 0
    wrong_origin: int = 0
    wrong_login: int = 0
    limited: int = 0  # logins that were not looked at


class Logins:
    """The logins that are accepted: a token, or texts USER:PASSWORD. Only their hashes are kept."""

    def __init__(self, token: bytes | None = None, users: Iterable[bytes] = ()) -> None:
        self._token = None if token is None else _hash(token)
        self._users = [_hash(user) for user in users]
        self.session = None if token is None else hmac.new(token, b"session of the dashboard", "sha256").hexdigest()

    def accepts(self, scheme: str, given: bytes) -> bool:
        """True if it is right for a scheme, "bearer" or "basic"; takes as long if it is not."""
        known = self._users if scheme == "basic" else [] if self._token is None else [self._token]
        found = _hash(given[:LOGIN_BYTES])
        return sum([hmac.compare_digest(found, one) for one in known]) > 0

    def accepts_session(self, given: str) -> bool:
        """True if it is the value of the cookie that a right token sets; it is a function of the token."""
        return self.session is not None and hmac.compare_digest(given.encode(), self.session.encode())

    @property
    def challenge(self) -> str:
        """The schemes that a browser is asked for."""
        return "Basic realm=whenabouts, charset=UTF-8" if self._users else "Bearer realm=whenabouts"


class Access:
    """The layer. hosts: names that a Host header may have, None for any; logins: None if none is needed; tls: over TLS."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: frozenset[str] | None,
        logins: Logins | None = None,
        tls: bool = False,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app, self._hosts, self._logins, self._tls = app, hosts, logins, tls
        self._wrong = WrongLogins(monotonic_s)
        self._late = 0
        self.counters = AccessCounters()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        answer = self._stranger(scope, headers)
        if answer is None and self._logins is not None and scope["path"] not in OPEN:
            answer = await self._login(self._logins, scope, headers)
        await (self._app if answer is None else answer)(scope, receive, with_headers)

    def _stranger(self, scope: Scope, headers: Headers) -> Response | None:
        """The refusal of a request that is meant for another server, or comes from the page of one."""
        if self._hosts is not None and _name_of(headers.get("host", "")) not in self._hosts:
            self.counters.wrong_host += 1
            return refusal(421, f"Host: expected one of {', '.join(sorted(self._hosts))}")
        if scope["path"].startswith("/api/"):
            site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
            if site not in ("none", "same-origin") or (
                origin is not None and _place_of(origin) != headers.get("host", "").lower()
            ):
                self.counters.wrong_origin += 1
                return refusal(403, "found a request from another page, expected one from the dashboard's own")
        if scope["method"] == "POST" and _kind_of(headers) != "application/json":
            return refusal(415, "Content-Type: expected application/json")
        return None

    async def _login(self, logins: Logins, scope: Scope, headers: Headers) -> Response | None:
        scheme, given, by_link = _given(scope, headers)
        if given is None:
            return None if logins.accepts_session(_cookie(headers)) else self._asked(logins)
        address = scope["client"][0] if scope.get("client") else ""
        if self._wrong.too_many(address) or self._late >= MAX_LATE:
            self.counters.limited += 1
            return refusal(429, "found too many wrong logins, expected a pause", {"retry-after": str(int(WINDOW_S))})
        if logins.accepts(scheme, given):
            return self._entered(logins) if by_link else None
        self._wrong.add(address)
        self.counters.wrong_login += 1
        log.warning("dashboard.login", "found a wrong login", address=address, wrong=self.counters.wrong_login)
        self._late += 1
        try:
            await asyncio.sleep(WRONG_S)
        finally:
            self._late -= 1
        return self._asked(logins)

    def _asked(self, logins: Logins) -> Response:
        text = "found no login, or a wrong one; expected the token, as in /?token=..., or a user with a password"
        return refusal(401, text, {"www-authenticate": logins.challenge})

    def _entered(self, logins: Logins) -> Response:
        """Keep the login as a cookie, and lose the token from the address."""
        response = RedirectResponse("/", 303)
        session = logins.session or ""
        response.set_cookie(COOKIE, session, path="/", secure=self._tls, httponly=True, samesite="strict")
        return response


class WrongLogins:
    """Wrong logins by address, in the last WINDOW_S."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._by_address: OrderedDict[str, list[float]] = OrderedDict()

    def add(self, address: str) -> None:
        """Count one."""
        times = [*self._recent(address), self._monotonic_s()]
        self._by_address[address] = times
        self._by_address.move_to_end(address)
        while len(self._by_address) > MAX_ADDRESSES:
            self._by_address.popitem(last=False)

    def too_many(self, address: str) -> bool:
        """True if no login of this address is looked at now."""
        return len(self._recent(address)) >= MOST_WRONG

    def _recent(self, address: str) -> list[float]:
        since_s = self._monotonic_s() - WINDOW_S
        return [at_s for at_s in self._by_address.get(address, ()) if at_s > since_s]


def refusal(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    """An error as the page understands it."""
    return JSONResponse({"error": text}, status, headers)


def _given(scope: Scope, headers: Headers) -> tuple[str, bytes | None, bool]:
    """The scheme of the login that a request brings, the login or None, and whether the address holds it."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return "bearer", text.strip().encode("latin-1"), False
    if scheme.lower() == "basic":
        return "basic", _decoded(text.strip()), False
    if scope["path"] == "/" and scope["method"] == "GET":
        tokens = QueryParams(scope["query_string"]).getlist("token")
        if tokens:
            return "bearer", tokens[0].encode("utf-8", "replace"), True
    return "", None, False


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _cookie(headers: Headers) -> str:
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""


def _kind_of(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _name_of(host: str) -> str:
    """The name in a Host header, without its port; "" if it is none."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _place_of(origin: str) -> str:
    """Name and port of an origin, as a Host header has them; "" if it is none. A proxy may have taken TLS off."""
    scheme, _, place = origin.lower().partition("://")
    return place if scheme in ("http", "https") else ""


def _hash(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
