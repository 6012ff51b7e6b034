"""The agent for boards: a gateway's work in one cooperative step, the same on CPython and MicroPython.

`agent` joins the cores (`ticks`, `sntp`, `ring`, `mqtt`, `whenabouts_edge.reader`, `store`, `courier`), which hold no port,
socket, file or clock; `run` is their driver, with `flash` and `net`. Nothing is loaded here: memory is short, and from here
on it is collected often, so that what is free stays in one piece.
"""

import gc

COLLECT_BYTES = 4096  # allocated between collections

if hasattr(gc, "threshold"):  # MicroPython
    gc.threshold(COLLECT_BYTES)
