"""`gc` whose collect() collects at once, also while Python runs."""

from gc import *

import _host


def collect():
    _host.collect()
    return 0
