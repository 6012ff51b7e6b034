"""A TCP line that can be cut and mended without being closed, as in a mobile network: bytes sent meanwhile arrive later.

It stands between an agent and the broker. Each connection has two threads; waiting bytes are held by TCP's own buffers.
"""

from __future__ import annotations

import contextlib
import socket
import threading

CHUNK_BYTES = 65536


class SlowUplink:
    """Listens on its own `port` of 127.0.0.1 and forwards connections to the given one; `cut` stops both directions, and
    the closing of connections, until `mend`."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open = threading.Event()
        self._open.set()
        self._stopped = False
        self._ends = threading.Lock()  # held while connections are added or ended: none is added after `stop`
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Stop forwarding."""
        self._open.clear()

    def mend(self) -> None:
        """Forward the waiting bytes, and everything after them."""
        self._open.set()

    def stop(self) -> None:
        """Close the line and its connections."""
        self._open.set()
        with self._ends:
            self._stopped = True
            for one in (self._listener, *self._sockets):
                _end(one)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:  # the broker is down; the client tries again
                    near.close()
                    continue
                self._join(near, far)

    def _join(self, near: socket.socket, far: socket.socket) -> None:
        """Forward between the two in both directions; close both if the line was stopped meanwhile."""
        with self._ends:
            if self._stopped:
                _end(near)
                _end(far)
                return
            self._sockets |= {near, far}
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=self._forward, args=(one, other), daemon=True).start()

    def _forward(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while data := one.recv(CHUNK_BYTES):
                self._open.wait()
                other.sendall(data)
        self._open.wait()  # the end of a connection waits as bytes do
        with self._ends:
            for end in (one, other):
                _end(end)
            self._sockets -= {one, other}


def _end(one: socket.socket) -> None:
    """Close the socket and wake up threads that wait for it."""
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
