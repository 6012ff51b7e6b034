"""The agent for boards: a gateway's work in one cooperative step, the same on CPython and MicroPython.

`agent` joins the cores (`sntp`, `flash_log`, `mqtt`, `readers.session`, `store`, `publisher`), which hold no port,
socket, file or clock; `run` is their driver, with what `machine` holds. Nothing is loaded here: memory is short, and from
here on it is collected often, so that what is free stays in one piece. Work that leaves kilobytes behind calls `tidy` on
its way: a collection alone where the firmware thinks of one may come too late.
"""

import gc

COLLECT_BYTES = 4096  # allocated between collections

_IS_SHORT = hasattr(gc, "threshold")  # MicroPython
if _IS_SHORT:
    gc.threshold(COLLECT_BYTES)  # type: ignore[attr-defined,unused-ignore]


def tidy() -> None:
    """Collect now, where memory is short: amid work that leaves kilobytes behind, and may find none for its next piece."""
    if _IS_SHORT:
        gc.collect()
