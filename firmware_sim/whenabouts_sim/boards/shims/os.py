"""`os` of a board, with random numbers, which this build lacks."""

from uos import *

import _host
from uctypes import addressof


def urandom(size):
    data = bytearray(size)
    _host.random(addressof(data), size)
    return bytes(data)
