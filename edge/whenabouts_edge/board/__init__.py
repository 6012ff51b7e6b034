"""The agent for boards: a gateway's work in one cooperative step, identical on CPython and MicroPython.

`agent` joins the cores (`sntp`, `flash_log`, `mqtt`, `readers.session`, `store`, `publisher`), which hold no port,
socket, file or clock; `run` is their driver, with the devices of `machine`. This package loads none of them: memory is
short, and importing it makes collections frequent, so that free memory stays in one piece. Work that leaves kilobytes of
garbage calls `tidy` on its way: the firmware's own collections may come too late.
"""

import gc

COLLECT_BYTES = 4096  # allocated between collections

_IS_SHORT = hasattr(gc, "threshold")  # MicroPython
if _IS_SHORT:
    gc.threshold(COLLECT_BYTES)  # type: ignore[attr-defined,unused-ignore]


def tidy() -> None:
    """Collect garbage now, where memory is short: work that leaves kilobytes behind may find none for its next piece."""
    if _IS_SHORT:
        gc.collect()
