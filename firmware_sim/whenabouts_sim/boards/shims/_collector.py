"""`gc` whose collect() collects at once, also while Python runs."""

from gc import *

import _host

_collect = _host.collect  # to look it up takes memory, of which there may be none


def collect():
    _collect()
    return 0
