"""URIs of targets: their parts, and how they are shown without secrets."""

import re
from collections.abc import Collection
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

_SECRET = re.compile(r"pass|secret|token|key|sig|auth", re.IGNORECASE)
HIDDEN = "***"
EPCIS = "epcis"  # a scheme before that of HTTP


class TargetError(ValueError):
    """A target cannot be used as it is written; the text says what was found and what is expected."""


def shown(uri: str) -> str:
    """The URI without user information and secret parameters; of a webhook only the host, as its path may be a secret.

    >>> shown("postgresql://me:secret@db/shop?table=pairs")
    'postgresql://***@db/shop?table=pairs'
    """
    if scheme_of(uri) == EPCIS:
        return f"{EPCIS}:{shown(uri.partition(':')[2])}"
    parts = _split(uri)
    where = _host(parts)
    where = f"{HIDDEN}@{where}" if "@" in parts.netloc else where
    if parts.scheme in ("http", "https"):
        return f"{parts.scheme}://{where}/..."
    start = f"{parts.scheme}://{where}" if parts.netloc else f"{parts.scheme}:"
    query = "&".join(f"{name}={HIDDEN if _SECRET.search(name) else value}" for name, value in _parameters(parts))
    path = re.sub(r"//[^/@]*@", f"//{HIDDEN}@", parts.path)
    return start + path + (f"?{query}" if query else "")


def identity(uri: str) -> str:
    """What makes a target itself: all but the password and secret parameters, so that these can be changed."""
    if scheme_of(uri) == EPCIS:
        return f"{EPCIS} {identity(uri.partition(':')[2])}"
    parts = _split(uri)
    query = "&".join(f"{name}={value}" for name, value in _parameters(parts) if not _SECRET.search(name))
    return f"{parts.scheme} {parts.username or ''} {_host(parts)} {parts.path} {query}"


def scheme_of(uri: str) -> str:
    """The part before the colon, in small letters."""
    return uri.partition(":")[0].lower()


class Address:
    """A URI `SCHEME://USER:PASSWORD@HOST:PORT/PATH?NAME=VALUE` of a server, with the parameters that its target knows.

    Raises:
        TargetError: it has no host or no path, or another parameter; `example` is what was expected.
    """

    def __init__(self, uri: str, port: int, example: str, known: Collection[str] | None) -> None:
        parts = _split(uri)
        self.parameters = dict(_parameters(parts))
        self.path = unquote(parts.path.strip("/"))
        self.user = None if parts.username is None else unquote(parts.username)
        self.password = None if parts.password is None else unquote(parts.password)
        self.host = parts.hostname or ""
        try:
            self.port = parts.port or port
        except ValueError as error:
            raise TargetError(f"{shown(uri)}: found {error}, expected {example}") from None
        if not self.host or not self.path:
            raise TargetError(
                f"{shown(uri)}: found no {'host' if not self.host else 'name after it'}, expected {example}"
            )
        unknown = [] if known is None else sorted(set(self.parameters) - set(known))
        if unknown:
            raise TargetError(
                f"{shown(uri)}: found parameter {unknown[0]}, expected one of {', '.join(sorted(known or ()))}"
            )


def secret_in(file: str) -> str:
    """Return the first line of a file that holds a password.

    Raises:
        TargetError: the file cannot be read.
    """
    try:
        return Path(file).read_text(encoding="utf-8").partition("\n")[0]
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"{file}: found no readable password ({error}), expected one line") from None


def _split(uri: str) -> SplitResult:
    try:
        return urlsplit(uri)
    except ValueError as error:
        raise TargetError(
            f"{scheme_of(uri)}:...: found no URI ({error}), expected one such as mqtt://host/topic"
        ) from None


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _parameters(parts: SplitResult) -> list[tuple[str, str]]:
    return parse_qsl(parts.query, keep_blank_values=True)
