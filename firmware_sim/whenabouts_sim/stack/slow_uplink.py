"""A TCP line that can be cut and mended without being closed, as a mobile network does it: what was sent comes later.

Stands between an agent and the broker. Threads of this process, two a connection; what waits is held by TCP's own buffers.
"""

from __future__ import annotations

import contextlib
import socket
import threading

CHUNK_BYTES = 65536


class SlowUplink:
    """Forwards connections to `port` of 127.0.0.1 at `port` of this object; `cut` stops both directions, ends of
    connections too, until `mend`."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._open = threading.Event()
        self._open.set()
        self._stopped = False
        self._ends = threading.Lock()  # held while connections are added or ended: none is added behind the end
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """From now on nothing goes through."""
        self._open.clear()

    def mend(self) -> None:
        """What waits goes through, and everything after it."""
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
                except OSError:  # the broker is away; whoever called tries again
                    near.close()
                    continue
                self._join(near, far)

    def _join(self, near: socket.socket, far: socket.socket) -> None:
        """What comes to one goes to the other; a line stopped meanwhile closes both."""
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
        self._open.wait()  # an end takes as long as bytes do
        with self._ends:
            for end in (one, other):
                _end(end)
            self._sockets -= {one, other}


def _end(one: socket.socket) -> None:
    """Close it; whoever waits for it wakes up."""
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
