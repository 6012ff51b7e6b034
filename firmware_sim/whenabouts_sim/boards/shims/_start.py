"""First steps of each life, before boot.py: the flash becomes the root of the file system, and the shims are imported, like
modules in the ROM of a board.
"""

import builtins
import os
import sys
import vfs

import _host
import machine
import network
import socket
import time
import ubinascii
import ucollections

sys.path.remove("/shims")
# A board has these in its ROM; this build would import its versions written in Python, which take memory.
sys.modules["binascii"], sys.modules["collections"] = ubinascii, ucollections
_flash = vfs.VfsPosix("/flash")
vfs.umount("/")
vfs.mount(_flash, "/")
os.chdir("/")
_ballast = []
names = {}  # globals of __main__, in which files and the REPL run; set by the host
_failure = None


def run(name):
    """Run a file; return the next action: "step" if it has left a `program`, "reset" if it asks for one, else "end"."""
    return _next(_execute, name)


def step():
    """Take one step of the iterator `program`; return the next action, like `run`."""
    return _next(next, names["program"])


def _execute(name):
    with open(name) as file:
        code = compile(file.read(), name, "exec")
    exec(code, names)


def _next(work, given):
    global _failure
    try:
        work(
            given
        )  # an interrupt within it has ended the program: to throw it there again would only stop the iteration
        try:
            return "step" if "program" in names else "end"
        except KeyboardInterrupt as interrupt:  # it came after the last line of the step
            if "program" not in names:
                raise
            names["program"].throw(interrupt)
            return "step"
    except StopIteration:
        return "end"
    except SystemExit:
        return "reset"
    except BaseException as error:
        _failure = error
        return "end"


def report():
    """Print the exception that ended `run` or `step`. A separate call, as theirs may have had no memory left."""
    global _failure
    if _failure is not None:
        sys.print_exception(_failure)
        _failure = None


def fill(size):
    """Take away this many more bytes of memory."""
    _ballast.append(bytearray(size))
