"""`machine` of a board: UARTs that the host wires to readers, reset, watchdog; pins keep the value they were set to."""

import io
import time

import _host
from uctypes import addressof

_available, _recv, _send, _poll = _host.available, _host.recv, _host.send, _host.poll

PWRON_RESET, WDT_RESET = 1, 3


def reset():
    _host.reset(True)


def soft_reset():
    _host.reset(False)


def reset_cause():
    return _host.reset_cause()


def unique_id():
    return bytes(_host.unique_id(), "utf-8")


def freq(hz=125000000):
    return hz


def idle():
    _host.sleep_ms(0)


class UART(io.IOBase):
    def __init__(
        self,
        id,
        baudrate=9600,
        bits=8,
        parity=None,
        stop=1,
        *,
        rxbuf=256,
        txbuf=256,
        timeout=0,
        timeout_char=0,
        tx=None,
        rx=None,
        **_,
    ):
        self._channel = _host.open("uart", str(id), 0, rxbuf)
        if self._channel < 0:
            raise OSError(-self._channel)
        self._buffer = bytearray(rxbuf)
        self._timeout = timeout

    def any(self):
        return _available(self._channel)

    def readinto(self, data, size=None):
        count = _recv(self._channel, addressof(data), size or len(data), self._timeout)
        return count if count > 0 else None

    def read(self, size=None):
        size = min(size or len(self._buffer), len(self._buffer))
        count = _recv(self._channel, addressof(self._buffer), size, self._timeout)
        return bytes(memoryview(self._buffer)[:count]) if count > 0 else None

    def write(self, data):
        count = _send(self._channel, addressof(data), len(data))
        return count if count >= 0 else None

    def ioctl(self, request, argument):
        return _poll(self._channel) & argument if request == 3 else -1

    def deinit(self):
        _host.close(self._channel)


class Pin:
    IN, OUT, PULL_UP, PULL_DOWN = 0, 1, 1, 2

    def __init__(self, id, mode=0, pull=None, value=0):
        self._value = value

    def value(self, value=None):
        if value is None:
            return self._value
        self._value = 1 if value else 0

    __call__ = value

    def on(self):
        self._value = 1

    def off(self):
        self._value = 0

    def toggle(self):
        self._value = 1 - self._value


class RTC:
    """The clock of the board; its setting lasts until the next reset."""

    def datetime(self, moment=None):
        if moment is None:
            year, month, day, hour, minute, second, weekday = time.gmtime(time.time())[:7]
            return (year, month, day, weekday, hour, minute, second, 0)
        wanted_s = time.mktime(moment[:3] + moment[4:7] + (0, 0))
        time._set_s += wanted_s - time.time()
        return None


class WDT:
    def __init__(self, id=0, timeout=5000):
        self._timeout = timeout
        self.feed()

    def feed(self):
        _host.watchdog(self._timeout)
