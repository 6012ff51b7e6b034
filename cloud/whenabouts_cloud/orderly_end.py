"""Orderly end of a process that is asked to end, within a given time even if something hangs.

A thread waits for SIGTERM and Ctrl-C. Python runs its own signal handlers in the main thread, between two bytecode
instructions: never while that thread waits for a disk or a name server, and possibly inside `Event.wait`, where
`Event.set` then waits forever for a lock that the same thread holds.
"""

import contextlib
import faulthandler
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

EXIT_HUNG = 70  # EX_SOFTWARE of sysexits.h
REPORT_S = 2.0  # for writing the report: it blocks, too, if stderr is a pipe that nobody reads


@contextlib.contextmanager
def orderly_end(ask: Callable[[], None], within_s: float) -> Iterator[None]:
    """On SIGTERM and Ctrl-C, call `ask` in another thread; the process must then end within within_s.

    A process that still runs within_s later writes the stacks of its threads to stderr and exits with EXIT_HUNG. If
    that write blocks, SIGALRM ends the process REPORT_S later. Enter the block in the main thread. Once `ask` has been
    called, the deadline stays in force after the block.
    """
    heard, ring = socket.socketpair()
    ring.setblocking(False)
    asked = threading.Event()
    before = hear()
    signal.set_wakeup_fd(ring.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard, asked, ask, within_s), name="orderly end", daemon=True).start()
    try:
        yield
    finally:
        if not asked.is_set():
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            ring.close()


def hear() -> dict[signal.Signals, Any]:
    """Direct the signals to that thread; return the previous handlers. Call it again after a library has replaced them."""
    return {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}


def _watch(heard: socket.socket, asked: threading.Event, ask: Callable[[], None], within_s: float) -> None:
    with heard:
        if not heard.recv(1):
            return  # the block was left without a signal
        asked.set()
        signal.alarm(math.ceil(within_s + REPORT_S))
        ask()
        time.sleep(within_s)
        os.write(2, f"found the process running {within_s:g} s after it was asked to end; please report the stacks below. "
                    "No acknowledged message is lost, the next start does the rest.\n".encode())  # fmt: skip
        faulthandler.dump_traceback(2)
        os._exit(EXIT_HUNG)
