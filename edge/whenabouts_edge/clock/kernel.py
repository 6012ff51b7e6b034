"""The kernel's figure of its clock's error (adjtimex), which the kernel gets from a time service.

chronyd sets it to root delay / 2 + root dispersion, and the kernel adds 500 ppm of the time since; a remaining
correction is not included, so a margin is added. systemd-timesyncd sets it to 0 at every correction, which is not a
bound: so the figure counts only while chronyd runs. Without updates the kernel's figure ends at 16 s, which means
unknown. After adjtimex(2).
"""

import ctypes
from collections.abc import Callable
from pathlib import Path

from whenabouts_edge.clock import ClockSample
from whenabouts_edge.clock.system import read_clocks, sampled

CHRONYD_PIDS = (Path("/run/chrony/chronyd.pid"), Path("/run/chronyd.pid"), Path("/var/run/chrony/chronyd.pid"))
NOBODY_KNOWS_US = 16_000_000
# Assumed remaining correction of chronyd; for a larger one it steps or speeds up.
MARGIN_US = 10_000


class _Timex(ctypes.Structure):
    """The beginning of struct timex, which has 208 bytes on 64-bit machines, and never more than 256."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("rest", ctypes.c_byte * 256),
    ]


class KernelClock:
    """The system clock with the kernel's figure, while chronyd runs."""

    def __init__(
        self,
        maxerror_us: Callable[[], int | None] | None = None,
        clocks: Callable[[], tuple[int, int, int]] = read_clocks,
    ) -> None:
        self._maxerror_us = maxerror_us or chronys_maxerror_us
        self._clocks = clocks

    def host_us(self, monotonic_ns: int) -> int:
        return monotonic_ns // 1000

    def sample(self) -> ClockSample:
        return sampled(self._clocks, self._maxerror_us, lambda maxerror_us, _: bound_of(maxerror_us), "adjtimex")


def bound_of(maxerror_us: int | None) -> tuple[int | None, str]:
    """(bound in us or None, clock state) for the kernel's figure."""
    if maxerror_us is None or not 0 < maxerror_us < NOBODY_KNOWS_US:
        return None, "unbounded"
    return maxerror_us + MARGIN_US, "bounded"


def chronys_maxerror_us() -> int | None:
    """The kernel's figure, or None if chronyd does not run or the kernel cannot be asked."""
    if not any(_runs(path) for path in CHRONYD_PIDS):
        return None
    timex = _Timex()
    try:
        failed = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0
    except (OSError, AttributeError):
        return None
    return None if failed else int(timex.maxerror)


def _runs(pid_file: Path) -> bool:
    try:
        return Path(f"/proc/{int(pid_file.read_text())}").exists()
    except (OSError, ValueError):
        return False
