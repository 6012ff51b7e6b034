"""HTTP as far as readers need it that post their events: one conversation, bytes in, bodies and answers out.

Everything comes from a network and is limited: a head of HEAD_BYTES_MAX, a body of a known length up to BODY_BYTES_MAX, one
path, POST or PUT alone, and the shared token if there is one. A request beyond that gets its reason and ends the
conversation. Pure; no secret is in an answer.
"""

import base64
import binascii
import hmac
from dataclasses import dataclass

from whenabouts_hardware.network.documents import MESSAGE_BYTES_MAX as BODY_BYTES_MAX

HEAD_BYTES_MAX = 8192
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes to send, the body of the request if it is to be used, and True if the conversation ends then."""

    data: bytes
    body: bytes | None = None
    last: bool = False


class Conversation:
    """One connection. path: where readers post; token: None, or what they must show as Bearer or as Basic password."""

    def __init__(self, path: str, token: str | None) -> None:
        self._path, self._token = path, token
        self._held = bytearray()
        self._length: int | None = None  # of the body that is awaited
        self._last = False  # no other request follows the present one

    @property
    def begun(self) -> bool:
        """True while a request has begun and is not whole."""
        return bool(self._held) or self._length is not None

    def feed(self, data: bytes) -> list[Answer]:
        """Take more bytes; returns what they ask for, in order."""
        self._held += data
        answers: list[Answer] = []
        while not (answers and answers[-1].last):
            if self._length is None:
                end = self._held.find(b"\r\n\r\n")
                if end < 0 or end > HEAD_BYTES_MAX:
                    if len(self._held) > HEAD_BYTES_MAX:
                        answers.append(
                            _refusal("431 Request Header Fields Too Large", f"{HEAD_BYTES_MAX} bytes at most")
                        )
                    break
                head = bytes(self._held[:end])
                del self._held[: end + 4]
                answers += self._begin(head)
                continue
            if len(self._held) < self._length:
                break
            body = bytes(self._held[: self._length])
            del self._held[: self._length]
            self._length = None
            ending = b"Connection: close\r\n" if self._last else b""
            answers.append(Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + ending + b"\r\n", body, self._last))
        return answers

    def _begin(self, head: bytes) -> list[Answer]:
        first, *lines = head.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return [_refusal("400 Bad Request", "expected a request of HTTP/1.1")]
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            name = name.lower()
            if not colon or name != name.strip() or (name == "content-length" and name in headers):
                return [_refusal("400 Bad Request", "expected headers as name: value, each once")]
            headers[name] = value.strip()
        if words[1].partition("?")[0] != self._path:
            return [_refusal("404 Not Found", "no reader posts here")]
        if words[0] not in ("POST", "PUT"):
            return [_refusal("405 Method Not Allowed", "expected POST")]
        if not self._knows(headers.get("authorization", "")):
            return [_refusal("401 Unauthorized", "expected the token, as Bearer or as the password of Basic")]
        length = headers.get("content-length", "")
        if "transfer-encoding" in headers or not length:
            return [_refusal("411 Length Required", "expected Content-Length, and no other encoding")]
        if not (length.isascii() and length.isdigit() and len(length) <= 9):
            return [_refusal("400 Bad Request", "expected a number as Content-Length")]
        if int(length) > BODY_BYTES_MAX:
            return [_refusal("413 Content Too Large", f"{BODY_BYTES_MAX} bytes at most")]
        self._length = int(length)
        self._last = headers.get("connection", "").lower() == "close" or words[2] == "HTTP/1.0"
        return [Answer(CONTINUE)] if headers.get("expect", "").lower() == "100-continue" else []

    def _knows(self, authorization: str) -> bool:
        if self._token is None:
            return True
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = base64.b64decode(given, validate=True).decode("latin-1").partition(":")[2]
            except (binascii.Error, ValueError):
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode("latin-1", "replace"), self._token.encode())


def _refusal(status: str, reason: str) -> Answer:
    text = f"{reason}\n".encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    return Answer(head.encode() + text, None, True)
