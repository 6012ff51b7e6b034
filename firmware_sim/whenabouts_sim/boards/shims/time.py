"""`time` of a board: ticks in microseconds, whole seconds, sleep that lets the host work."""

from utime import *

import _host
from uctypes import addressof

_wall = bytearray(8)


def ticks_us():
    return _host.ticks_us()


def ticks_ms():
    return _host.ticks_ms()


def ticks_cpu():
    return _host.ticks_us()


def time_ns():
    _host.wall_us(addressof(_wall))
    return int.from_bytes(_wall, "little") * 1000


def time():
    return time_ns() // 1000000000


def sleep_ms(ms):
    _host.sleep_ms(max(0, ms))


def sleep_us(us):
    _host.sleep_ms(max(0, us) / 1000)


def sleep(seconds):
    _host.sleep_ms(max(0, seconds) * 1000)
