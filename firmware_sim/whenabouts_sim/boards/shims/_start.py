"""What happens once in a life, before boot.py: the flash becomes the root of the file system, and the shims become modules
that are there already, like those in the ROM of a board.
"""

import builtins
import os
import sys
import vfs

import _collector
import _host
import machine
import network
import socket
import time
import ubinascii
import ucollections

sys.path.remove("/shims")
sys.modules["gc"] = _collector  # a file named gc.py would never be looked for
# A board has these in its ROM; this build also has them written in Python, which takes memory, and takes those first.
sys.modules["binascii"], sys.modules["collections"] = ubinascii, ucollections
_flash = vfs.VfsPosix("/flash")
vfs.umount("/")
vfs.mount(_flash, "/")
os.chdir("/")
_ballast = []


def run(name, names):
    """Run a file and print the exception that it ends with; whether that asks for a reset.

    The host could not print it: there may be no memory left until this has returned.
    """
    try:
        with open(name) as file:
            code = compile(file.read(), name, "exec")
        exec(code, names)
    except SystemExit:
        return True
    except BaseException as error:
        _collector.collect()
        sys.print_exception(error)
    return False


def used():
    """Bytes that this took of what boards have for Python."""
    _collector.collect()
    return _collector.mem_alloc()


def fill(size):
    """Take so many more away."""
    _ballast.append(bytearray(size))
