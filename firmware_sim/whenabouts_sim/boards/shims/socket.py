"""`socket` of a board: TCP and UDP over IPv4, through the host."""

import errno
import io

import _host
from uctypes import addressof

AF_INET = 2
SOCK_STREAM, SOCK_DGRAM = 1, 2
SOL_SOCKET, SO_REUSEADDR = 4095, 4
IPPROTO_TCP, IPPROTO_UDP = 6, 17

_recv, _send, _poll, _state = _host.recv, _host.send, _host.poll, _host.state
_OPENING, _FAILED = 1, 4  # states of a channel
_POLL = 3  # request of ioctl


def _checked(count):
    if count < 0:
        raise OSError(-count)
    return count


def getaddrinfo(host, port, family=0, kind=0, proto=0, flags=0):
    channel = _checked(_host.open("name", host, 0, 0))
    answer = bytearray(40)
    count = _recv(channel, addressof(answer), len(answer), -1)
    _host.close(channel)
    if count < 0:
        raise OSError(-2 if count == -2 else count)
    return [(AF_INET, kind or SOCK_STREAM, proto, "", (str(bytes(answer[:count]), "ascii"), port))]


class socket(io.IOBase):
    def __init__(self, family=AF_INET, kind=SOCK_STREAM, proto=0):
        self._kind = kind
        self._channel = None if kind == SOCK_STREAM else _checked(_host.open("udp", "", 0, 0))
        self._wait_ms = -1

    def _open(self):
        if self._channel is None:
            raise OSError(errno.ENOTCONN)
        return self._channel

    def setblocking(self, flag):
        self._wait_ms = -1 if flag else 0

    def settimeout(self, seconds):
        self._wait_ms = -1 if seconds is None else int(seconds * 1000)

    def setsockopt(self, level, option, value):
        pass  # the host sends at once anyway

    def connect(self, address):
        self._channel = _checked(_host.open("tcp", address[0], address[1], 0))
        if self._wait_ms == 0:
            raise OSError(errno.EINPROGRESS)
        waited_ms = 0
        while _state(self._channel) == _OPENING:
            if 0 <= self._wait_ms <= waited_ms:
                raise OSError(errno.ETIMEDOUT)
            _host.sleep_ms(1)
            waited_ms += 1
        if _state(self._channel) == _FAILED:
            _checked(_recv(self._channel, addressof(bytearray(1)), 1, 0))

    def send(self, data):
        channel = self._open()
        while True:
            count = _send(channel, addressof(data), len(data))
            if count != -errno.EAGAIN or self._wait_ms == 0:
                return _checked(count)
            _host.sleep_ms(1)

    def sendall(self, data):
        view = memoryview(data)
        while len(view):
            view = view[self.send(view) :]

    def write(self, data, size=None):
        data = data if size is None else data[:size]
        try:
            return self.send(data)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return None
            raise

    def recv(self, size):
        data = bytearray(size)
        count = _checked(_recv(self._open(), addressof(data), size, self._wait_ms))
        return bytes(memoryview(data)[:count])

    def readinto(self, data, size=None):
        count = _recv(self._open(), addressof(data), size or len(data), self._wait_ms)
        return None if count == -errno.EAGAIN else _checked(count)

    def read(self, size=-1):
        if size < 0:
            content = b""
            while True:
                more = self.recv(256)
                if not more:
                    return content
                content += more
        try:
            return self.recv(size)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return None
            raise

    def readline(self):
        line = b""
        while line[-1:] != b"\n":
            byte = self.read(1)
            if not byte:
                break
            line += byte
        return line

    def bind(self, address):
        pass  # a client can have any port

    def sendto(self, data, address):
        return _host.send_to(self._open(), addressof(data), len(data), address[0], address[1])

    def recvfrom(self, size):
        head = bytearray(8)
        _checked(_recv(self._open(), addressof(head), 8, self._wait_ms))
        length = head[0] << 8 | head[1]
        data = bytearray(length)
        if length:
            _checked(_recv(self._channel, addressof(data), length, -1))
        sender = ".".join([str(part) for part in head[2:6]]), head[6] << 8 | head[7]
        return bytes(data[:size]), sender

    def ioctl(self, request, argument):
        if request != _POLL:
            return -1
        if self._channel is None:
            return 16
        return _poll(self._channel) & (argument | 24)

    def close(self):
        if self._channel is not None:
            _host.close(self._channel)
            self._channel = None
