"""`run.forever`, interrupted between two steps as soon as a file is there; for CPython and the MicroPython VM of a PC.

argv: the board's configuration, and the file. SIGINT would come anywhere: on this VM its handler jumps out of whatever runs,
out of the allocator too, and leaves the heap locked or the process hanging, which a board's firmware does not do.
"""

import os
import sys

from whenabouts_edge.board import run

step = run.Board.step


def interruptible(board):
    """A step, and an interrupt behind it once the file is there."""
    step(board)
    try:
        os.stat(sys.argv[2])
    except OSError:
        return
    raise KeyboardInterrupt


run.Board.step = interruptible
run.forever(sys.argv[1])
