"""A port that readers post their events to over HTTP.

One thread, the reader's own, looks at all connections in turns of a poll period, as `port.Port` does at one. Each turn first
asks the kernel without waiting: a connection that had nothing to read was empty at the moment before the question, and so
was the queue of new connections if none waited. So the first byte of a request came after the last such moment, and the
whole request before it was read, also if requests come all the time.

Limits: CONNECTIONS_MAX connections, of which the one that has been silent longest gives way to a new one; a request that
takes longer than REQUEST_NS is given up, since readings cannot be complete while it lasts.
"""

import contextlib
import selectors
import socket
import time
from collections import deque
from collections.abc import Callable
from typing import Self
from urllib.parse import urlsplit

from whenabouts_edge.readers.http_request import Conversation
from whenabouts_edge.readers.port import POLL_MS, Chunk, PortError, Sent
from whenabouts_hardware.network.documents import message

CONNECTIONS_MAX = 16
REQUEST_NS = 5_000_000_000
READ_BYTES = 65536


class _Connection:
    """empty_ns: the last moment at which nothing waited. begun_ns: that moment for the request that is being read.
    heard_ns: when the last bytes were read.
    """

    def __init__(self, connected: socket.socket, conversation: Conversation, empty_ns: int) -> None:
        self.socket, self.conversation = connected, conversation
        self.empty_ns = empty_ns
        self.heard_ns = empty_ns
        self.begun_ns: int | None = None


class HttpListener:
    """Posts to one path of one address, as chunks of one message each."""

    replay_start_ns: int | None = None
    replay_finished = False

    def __init__(
        self, url: str, token: str | None, poll_ms: int = POLL_MS, monotonic_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """Listen at `http://address:port/path`.

        Raises:
            PortError: the address is not this machine's, or its port is taken.
        """
        place = urlsplit(url)
        self.name = url
        self.left_out = 0  # requests that were refused
        self._path, self._token = place.path or "/", token
        self._monotonic_ns, self._poll_s = monotonic_ns, poll_ms / 1000
        self._empty_ns = monotonic_ns()
        self._ready: deque[Chunk] = deque()
        self._connections: dict[int, _Connection] = {}
        try:
            family = socket.AF_INET6 if ":" in (place.hostname or "") else socket.AF_INET
            self._server = socket.create_server((place.hostname or "", place.port or 80), family=family)
        except OSError as error:
            raise PortError(f"port {url}: cannot listen there, found {error.strerror}; correct listen") from error
        self._server.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        name: tuple[str, int] = self._server.getsockname()[:2]
        return name

    @property
    def empty_ns(self) -> int:
        """No later chunk begins to arrive before this moment."""
        begun = [one.begun_ns for one in self._connections.values() if one.begun_ns is not None]
        begun += [chunk.after_ns for chunk in self._ready]
        return min([self._empty_ns, *(one.empty_ns for one in self._connections.values()), *begun])

    @property
    def has_ready(self) -> bool:
        """True while chunks are kept that `read` has not returned."""
        return bool(self._ready)

    def read(self) -> Chunk | None:
        """The next message, or None when a poll period passed without one."""
        if not self._ready:
            self._look()
        return self._ready.popleft() if self._ready else None

    def write(self, data: bytes) -> Sent:
        """Refuse: nothing is sent to a reader that publishes by itself."""
        raise PortError(f"port {self.name}: found {len(data)} bytes to send, expected none")

    def close(self) -> None:
        """Close the address and all connections."""
        for one in list(self._connections.values()):
            self._drop(one)
        self._selector.close()
        self._server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self) -> None:
        asked_ns = self._monotonic_ns()
        ready = self._readable(0)
        for fd, one in self._connections.items():
            if fd not in ready:
                one.empty_ns = asked_ns
        if self._server.fileno() not in ready:
            self._empty_ns = asked_ns
        ready = ready or self._readable(self._poll_s)
        for fd, one in list(self._connections.items()):
            if fd in ready:
                self._read(one)
            if one.begun_ns is not None and asked_ns - one.begun_ns > REQUEST_NS:
                self._drop(one)
        if self._server.fileno() in ready:
            self._accept()

    def _readable(self, wait_s: float) -> set[int]:
        return {key.fd for key, _ in self._selector.select(wait_s)}

    def _accept(self) -> None:
        """One connection a turn; what it and others wait with came after the last turn without any."""
        try:
            connected, _ = self._server.accept()
        except OSError:  # it went away again
            return
        connected.setblocking(False)
        if len(self._connections) >= CONNECTIONS_MAX:
            self._drop(min(self._connections.values(), key=lambda one: one.heard_ns))
        one = self._connections[connected.fileno()] = _Connection(
            connected, Conversation(self._path, self._token), self._empty_ns
        )
        self._selector.register(connected, selectors.EVENT_READ)
        self._read(one)

    def _read(self, one: _Connection) -> None:
        asked_ns = self._monotonic_ns()
        try:
            data = one.socket.recv(READ_BYTES)
        except BlockingIOError:
            one.empty_ns = asked_ns
            return
        except OSError:
            data = b""
        if not data:
            self._drop(one)
            return
        one.heard_ns = asked_ns
        after_ns = one.empty_ns if one.begun_ns is None else one.begun_ns
        for answer in one.conversation.feed(data):
            self.left_out += answer.last and answer.body is None
            if answer.body is not None:
                self._ready.append(Chunk(message(answer.body), after_ns, self._monotonic_ns()))
            try:
                one.socket.send(answer.data)
            except OSError:
                self._drop(one)
                return
            if answer.last:
                self._drop(one)
                return
        one.begun_ns = after_ns if one.conversation.begun else None
        if len(data) < READ_BYTES:
            one.empty_ns = asked_ns

    def _drop(self, one: _Connection) -> None:
        self._connections.pop(one.socket.fileno(), None)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(one.socket)
        one.socket.close()
