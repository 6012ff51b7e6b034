"""Sockets that never wait: a TCP connection for MQTT and a UDP port for SNTP. Identical on CPython and MicroPython.

Only the look-up of a name waits, as long as the system does: a few seconds when there is no name server.
"""

import errno
import select
import socket

_LATER = (errno.EAGAIN, errno.EINPROGRESS)
_IPPROTO_TCP, _TCP_NODELAY = 6, 1  # not named in the socket module of boards
READ_BYTES = 256


def _later(error: OSError) -> bool:
    return error.errno in _LATER


class Tcp:
    """One connection, begun by the constructor. Raises OSError when it cannot begin."""

    def __init__(self, host: str, port: int) -> None:
        address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
        self._socket = socket.socket(address[0], socket.SOCK_STREAM)
        self._socket.setblocking(False)
        try:
            self._socket.setsockopt(_IPPROTO_TCP, _TCP_NODELAY, 1)
        except OSError:
            pass  # packets then only wait a little for each other
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
        """Return True if bytes can be sent. Raises OSError when the connection was refused or broke."""
        if not self._open:
            for _, event in [tuple(entry[:2]) for entry in self._poll.poll(0)]:
                if event & (select.POLLERR | select.POLLHUP):
                    raise OSError(errno.ECONNREFUSED, "connection refused")
                self._open = True
        return self._open

    def write(self, data: bytes) -> int:
        """Send bytes; returns how many the connection took. Raises OSError when it broke."""
        try:
            return self._socket.send(data)
        except OSError as error:
            if _later(error):
                return 0
            raise

    def read(self) -> "bytes | None":
        """Bytes that have arrived: b"" if the other side closed, None if there are none. Raises OSError when it broke."""
        try:
            return self._socket.recv(READ_BYTES)
        except OSError as error:
            if _later(error):
                return None
            raise

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class Udp:
    """A port that sends to one address. Raises OSError when the name is not known."""

    def __init__(self, host: str, port: int) -> None:
        address = socket.getaddrinfo(host, port, 0, socket.SOCK_DGRAM)[0]
        self._address = address[-1]
        self._socket = socket.socket(address[0], socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def send(self, data: bytes) -> None:
        """Send one packet; one that cannot be sent is lost, as any packet may be."""
        try:
            self._socket.sendto(data, self._address)
        except OSError:
            pass

    def read(self) -> "bytes | None":
        """A packet from any sender, or None."""
        try:
            return self._socket.recvfrom(512)[0]
        except OSError:
            return None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
