"""The bound that a clock-bound daemon keeps in shared memory (clock-bound protocol, segment version 2).

Every second the daemon writes the time of its last clock reading (CLOCK_MONOTONIC_COARSE), the bound at that time, the
growth rate of the bound, and the time until which it is valid. The segment begins with a magic number; a generation
that is odd, or that changes between two reads, means that the segment is being written. Native byte order.
"""

import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from whenabouts_edge.clock import ASSUMED_DRIFT_PPM, ClockSample
from whenabouts_edge.clock.system import read_clocks, sampled

SEGMENT = Path("/var/run/clockbound/shm0")
MAGIC = bytes([0x41, 0x4D, 0x5A, 0x4E, 0x43, 0x42, 0x02, 0x00])
LAYOUT = struct.Struct("=8sIHHqqqqqQIiB7x")
VERSION = 2
ATTEMPTS = 100  # reads of a segment that is being written; the daemon writes for microseconds
GRACE_NS = 5_000_000_000  # a restarting daemon is trusted for this long
_SYNCHRONISED, _FREE_RUNNING = 1, 2


class Segment(NamedTuple):
    """The content of the segment: monotonic nanoseconds, bound in ns, drift in parts per billion."""

    as_of_ns: int
    void_after_ns: int
    bound_ns: int
    drift_ppb: int
    status: int


class ClockBoundClock:
    """The system clock with the bound of the daemon's segment."""

    def __init__(
        self,
        look: Callable[[], bytes] | None = None,
        clocks: Callable[[], tuple[int, int, int]] = read_clocks,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._look = look or SEGMENT.read_bytes
        self._clocks, self._monotonic_ns = clocks, monotonic_ns

    def host_us(self, monotonic_ns: int) -> int:
        return monotonic_ns // 1000

    def sample(self) -> ClockSample:
        return sampled(self._clocks, self._bound, lambda bound, _: bound, "clock-bound")

    def _bound(self) -> tuple[int | None, str]:
        segment = read_segment(self._look)
        return (None, "unbounded") if segment is None else bound_of(segment, self._monotonic_ns())


def read_segment(look: Callable[[], bytes]) -> Segment | None:
    """The segment; None if it does not exist, has another version, or is being written at every read."""
    for _ in range(ATTEMPTS):
        try:
            first, second = look(), look()
        except OSError:
            return None
        if len(first) < LAYOUT.size or first[:8] != MAGIC:
            return None
        values = LAYOUT.unpack_from(first)
        _, _, version, generation, as_of_s, as_of_ns, void_s, void_ns, bound_ns, _, drift_ppb, status, _ = values
        if version != VERSION or generation == 0:
            return None
        if generation % 2 == 0 and first[: LAYOUT.size] == second[: LAYOUT.size]:
            return Segment(as_of_s * 10**9 + as_of_ns, void_s * 10**9 + void_ns, bound_ns, drift_ppb, status)
    return None


def bound_of(segment: Segment, monotonic_ns: int) -> tuple[int | None, str]:
    """(bound in us or None, clock state) at a moment.

    The drift is at least the one assumed here: a daemon with default settings assumes 1 ppm.
    """
    age_ns = max(0, monotonic_ns - segment.as_of_ns)
    late = monotonic_ns > segment.void_after_ns or segment.bound_ns < 0
    if late or segment.status not in (_SYNCHRONISED, _FREE_RUNNING):
        return None, "unbounded"
    drift_ppb = max(segment.drift_ppb, ASSUMED_DRIFT_PPM * 1000)
    bound_us = (segment.bound_ns + age_ns * drift_ppb // 10**9) // 1000 + 1
    fresh = segment.status == _SYNCHRONISED and age_ns <= GRACE_NS
    return bound_us, "bounded" if fresh else "free-running"
