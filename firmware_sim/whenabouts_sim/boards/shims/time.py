"""`time` of a board: ticks in microseconds, whole seconds, sleep that lets the host work."""

from utime import *

import _host
from uctypes import addressof

# Functions of the host are bound once: a lookup takes memory, and there may be none.
ticks_us = ticks_cpu = _host.ticks_us
ticks_ms = _host.ticks_ms
_sleep_ms = _host.sleep_ms
_wall_us = _host.wall_us
_wall = bytearray(8)
_set_s = 0  # seconds by which machine.RTC was set ahead


def time_ns():
    _wall_us(addressof(_wall))
    return int.from_bytes(_wall, "little") * 1000 + _set_s * 1000000000


def time():
    return time_ns() // 1000000000


def sleep_ms(ms):
    _sleep_ms(max(0, ms))


def sleep_us(us):
    _sleep_ms(max(0, us) / 1000)


def sleep(seconds):
    _sleep_ms(max(0, seconds) * 1000)
