"""Child processes that end with their parent, however it ends.

Linux sends the child SIGKILL when the thread that started it has ended (prctl PR_SET_PDEATHSIG), so start children from a
thread that lives as long as they should. On other systems nothing is done.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def with_parent() -> Callable[[], None] | None:
    """A `preexec_fn` for subprocess.Popen; everything it needs is loaded before the fork."""
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def die_with_parent() -> None:
        if prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != parent:
            os._exit(1)

    return die_with_parent
