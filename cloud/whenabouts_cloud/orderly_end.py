"""How a process ends that was asked to: in order, and within a given time whatever hangs.

A thread waits for SIGTERM and Ctrl-C. Python runs its own signal handlers in the main thread, between two of its steps: not
at all while it waits for a disk or for the answer of a name server, and perhaps inside of `Event.wait`, where `Event.set`
then waits for ever for a lock that the same thread holds.
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
REPORT_S = 2.0  # for the report itself: it waits, too, when stderr is a pipe that nobody reads


@contextlib.contextmanager
def orderly_end(ask: Callable[[], None], within_s: float) -> Iterator[None]:
    """SIGTERM and Ctrl-C call `ask`, in another thread. A process that is still there within_s later says on stderr where
    each of its threads stands and exits with EXIT_HUNG; when it cannot even say that, SIGALRM ends it REPORT_S later.

    To be entered in the main thread. Who was asked stays bound after the block, until the process is gone.
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
    """Give the signals to that thread; what handled them before. To be called again after a library has taken them."""
    return {number: signal.signal(number, lambda *_: None) for number in (signal.SIGTERM, signal.SIGINT)}


def _watch(heard: socket.socket, asked: threading.Event, ask: Callable[[], None], within_s: float) -> None:
    with heard:
        if not heard.recv(1):
            return  # the block was left without a signal
        asked.set()
        signal.alarm(math.ceil(within_s + REPORT_S))
        ask()
        time.sleep(within_s)
        os.write(2, f"asked to end, and not gone {within_s:g} s later; here is where it stands, please report it. "
                    "Nothing that was acknowledged is lost, the rest is done by the next start.\n".encode())  # fmt: skip
        faulthandler.dump_traceback(2)
        os._exit(EXIT_HUNG)
