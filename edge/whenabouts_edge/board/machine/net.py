"""Sockets that never wait: a TCP connection for MQTT and a UDP port for SNTP. Drivers; the same on CPython and MicroPython.

Only the look-up of a name waits, as long as the system does: a few seconds when there is no name server.
"""

import errno
import select
import socket

_LATER = (errno.EAGAIN, errno.EINPROGRESS)
_IPPROTO_TCP, _TCP_NODELAY = 6, 1  # which boards' socket module does not name
READ_BYTES = 256


def _later(error: OSError) -> bool:
    return error.errno in _LATER


class Tcp:
    """One connection, begun at once. Raises OSError when it cannot even begin."""

    def __init__(self, host: str, port: int) -> None:
        address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
        self._socket = socket.socket(address[0], socket.SOCK_STREAM)
        self._socket.setblocking(False)
        try:
            self._socket.setsockopt(_IPPROTO_TCP, _TCP_NODELAY, 1)
        except OSError:
            pass  # packets then wait a little for each other, no more
        try:
            self._socket.connect(address[-1])
        except OSError as error:
            if not _later(error):
                self._socket.close()
                raise
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLOUT)
        self._open = False

    def is_open(self) -> bool:
        """Whether bytes can go out. Raises OSError when the connection was refused or broke."""
        if not self._open:
            for _, event in [tuple(found[:2]) for found in self._poll.poll(0)]:
                if event & (select.POLLERR | select.POLLHUP):
                    raise OSError(errno.ECONNREFUSED, "connection refused")
                self._open = True
        return self._open

    def write(self, data: bytes) -> int:
        """How many bytes the line took. Raises OSError when it broke."""
        try:
            return self._socket.send(data)
        except OSError as error:
            if _later(error):
                return 0
            raise

    def read(self) -> "bytes | None":
        """What has come: b"" when the other side closed, None when there is nothing. Raises OSError when it broke."""
        try:
            return self._socket.recv(READ_BYTES)
        except OSError as error:
            if _later(error):
                return None
            raise

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class Udp:
    """A port that talks to one address. Raises OSError when the name is not known."""

    def __init__(self, host: str, port: int) -> None:
        address = socket.getaddrinfo(host, port, 0, socket.SOCK_DGRAM)[0]
        self._address = address[-1]
        self._socket = socket.socket(address[0], socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def send(self, data: bytes) -> None:
        """Send one packet; what cannot be sent is lost, as packets may be."""
        try:
            self._socket.sendto(data, self._address)
        except OSError:
            pass

    def read(self) -> "bytes | None":
        """A packet that came from anybody, or None."""
        try:
            return self._socket.recvfrom(512)[0]
        except OSError:
            return None

    def close(self) -> None:
        """Close it."""
        self._socket.close()
