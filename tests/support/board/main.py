"""`run.forever`, interrupted between two steps as soon as a file exists; for CPython and the MicroPython VM of a PC.

argv: the board's configuration, and the file. SIGINT could come at any point: on this VM its handler jumps out of any code,
even of the allocator, and leaves the heap locked or the process hanging, which a board's firmware does not do.
"""

import os
import sys

from whenabouts_edge.board import run

step = run.Board.step


def interruptible(board):
    """Take a step, and raise an interrupt after it if the file exists."""
    step(board)
    try:
        os.stat(sys.argv[2])
    except OSError:
        return
    raise KeyboardInterrupt


run.Board.step = interruptible
run.forever(sys.argv[1])
