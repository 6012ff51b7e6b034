"""Opens a TCP connection to a reader as a port.

The kernel counts the bytes that wait in a socket as it does for a serial port, so the bounds of a chunk are those of
`port.Port`: the moment at which nothing waited, and the moment at which all had been read.
"""

import fcntl
import select
import socket
import struct
import termios
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from whenabouts_edge.readers.port import POLL_MS, WRITE_TIMEOUT_S, Port, PortError

CONNECT_TIMEOUT_S = 5.0


class TcpDevice:
    """A connected socket with the part of pyserial's interface that `Port` uses."""

    def __init__(self, connected: socket.socket) -> None:
        self.timeout: float | None = None
        self._socket = connected
        connected.settimeout(WRITE_TIMEOUT_S)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @property
    def in_waiting(self) -> int:
        """Bytes that can be read at once."""
        answer = fcntl.ioctl(self._socket, termios.FIONREAD, struct.pack("i", 0))
        return int(struct.unpack("i", answer)[0])

    def read(self, size: int, /) -> bytes:
        """Up to size bytes; none when the time-out passed without one.

        Raises:
            OSError: the connection was closed or broken.
        """
        if not select.select([self._socket], [], [], self.timeout)[0]:
            return b""
        data = self._socket.recv(size)
        if not data:
            raise ConnectionResetError("the reader closed the connection")
        return data

    def write(self, data: bytes, /) -> int:
        """Send all the bytes.

        Raises:
            OSError: the connection was broken, or the peer took none for WRITE_TIMEOUT_S.
        """
        self._socket.sendall(data)
        return len(data)

    def cancel_read(self) -> None:
        """Do nothing: a read ends with its time-out."""

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def open_tcp(url: str, *, poll_ms: int = POLL_MS, monotonic_ns: Callable[[], int] = time.monotonic_ns) -> Port:
    """Connect to `scheme://host:port`.

    Raises:
        PortError: the name is unknown, nobody listens, or there was no answer within CONNECT_TIMEOUT_S.
    """
    place = urlsplit(url)
    opened_ns = monotonic_ns()
    try:
        connected = socket.create_connection((place.hostname or "", place.port or 0), CONNECT_TIMEOUT_S)
    except OSError as error:
        raise PortError(_problem(url, error)) from error
    return Port(TcpDevice(connected), url, monotonic_ns, opened_ns, poll_ms=poll_ms)


def _problem(url: str, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"port {url}: no machine has this name ({error.strerror}); correct host, or give the reader's address"
    if isinstance(error, ConnectionRefusedError):
        return f"port {url}: nobody listens there; check host and port, and that the reader has LLRP switched on"
    found = f"no answer within {CONNECT_TIMEOUT_S:g} s" if isinstance(error, TimeoutError) else error.strerror or error
    return f"port {url}: {found}; expected a reader that answers; check its power, the network cable and host"
