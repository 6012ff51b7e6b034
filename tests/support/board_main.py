"""`run.forever`, interrupted between two steps as soon as a file is there; for CPython and the MicroPython VM of a PC.

argv: the board's configuration, and the file. SIGINT would come anywhere: on this VM its handler jumps out of whatever runs,
out of the allocator too, and leaves the heap locked or the process hanging, which a board's firmware does not do.
"""

import os
import sys
import time

from whenabouts_edge.board import run


class InterruptibleTime:
    """The module `time`, with pauses that end in an interrupt once `path` is there."""

    def __init__(self, path):
        self._path = path

    def __getattr__(self, name):
        return getattr(time, name)

    def sleep_ms(self, pause_ms):
        time.sleep(pause_ms / 1000)
        try:
            os.stat(self._path)
        except OSError:
            return
        raise KeyboardInterrupt


run.time = InterruptibleTime(sys.argv[2])
run.forever(sys.argv[1])
