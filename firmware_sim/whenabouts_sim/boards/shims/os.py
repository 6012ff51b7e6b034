"""`os` of a board: this build lacks the random numbers of the hardware."""

from uos import *

import _host
from uctypes import addressof


def urandom(size):
    data = bytearray(size)
    _host.random(addressof(data), size)
    return bytes(data)
