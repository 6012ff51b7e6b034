"""The host's system clock as UTC, with a bound from the configuration or from chrony.

chrony's bound after an update is |remaining correction| + root dispersion + root delay / 2 (chrony 4, `tracking`
report). It trusts the stratum-1 server, and half of the round trip for asymmetric paths. chrony reports "synchronised"
for a very long time after its last update; after eight update intervals the state becomes `free-running`: only the
assumed drift then supports the bound.
"""

import math
import subprocess
import time
from collections.abc import Callable
from typing import TypeVar

from whenabouts_edge.clock import ASSUMED_DRIFT_PPM, UNBOUNDED_US, ClockSample

_TRACKING_FIELDS = 14
_F_REF_TIME, _F_CORRECTION, _F_DELAY, _F_DISPERSION, _F_INTERVAL, _F_LEAP = 3, 4, 10, 11, 12, 13
_FREE_RUNNING_INTERVALS = 8
_CHRONYC_TIMEOUT_S = 2.0
READ_ATTEMPTS = 5
CLOSE_ENOUGH_NS = 5_000
# Each way: such a wide stamp dates nothing. Readings should wait for the next answer, which timesyncd gives 32 s after
# setting a clock that was days off.
USELESS_US = 3_600_000_000

T = TypeVar("T")


def read_clocks() -> tuple[int, int, int]:
    """(UTC in us, monotonic in ns, largest distance in us between the two readings).

    The closest of a few readings of UTC between two of the monotonic clock: a program can be interrupted for
    milliseconds, and any time between the two readings is an error of the offset.
    """
    pairs = []
    for _ in range(READ_ATTEMPTS):
        before_ns, utc_us, after_ns = time.monotonic_ns(), time.time_ns() // 1000, time.monotonic_ns()
        pairs.append((after_ns - before_ns, utc_us, before_ns))
        if after_ns - before_ns < CLOSE_ENOUGH_NS:
            break
    apart_ns, utc_us, monotonic_ns = min(pairs)
    return utc_us, monotonic_ns, apart_ns // 1000 + 2  # two for rounding down to microseconds


def sampled(
    clocks: Callable[[], tuple[int, int, int]],
    ask: Callable[[], T],
    bound_us: Callable[[T, int], tuple[int | None, str]],
    source: str,
) -> ClockSample:
    """UTC now by the system clock, with the (bound, state) that `bound_us` computes from an answer for that moment.

    The answer may predate a correction that the clock reading follows: a jump of UTC during the question, and the
    drift, are added to the bound.
    """
    utc_before_us, before_ns, _ = clocks()
    answer = ask()
    utc_us, monotonic_ns, apart_us = clocks()
    host_us = monotonic_ns // 1000
    bound, state = bound_us(answer, utc_us)
    if bound is None:
        return ClockSample(host_us, utc_us - host_us, None, state, source)
    asking_us = host_us - before_ns // 1000
    jump_us = max(0, abs(utc_us - utc_before_us - asking_us) - 2 * apart_us)
    bound += apart_us + jump_us - (-asking_us * ASSUMED_DRIFT_PPM // 1_000_000)
    if bound >= USELESS_US:
        return ClockSample(host_us, utc_us - host_us, None, "unbounded", source)
    return ClockSample(host_us, utc_us - host_us, bound, state, source)


class FixedClock:
    """The system clock, trusted to within a configured bound."""

    def __init__(self, bound_us: int, clocks: Callable[[], tuple[int, int, int]] = read_clocks) -> None:
        self._bound_us = bound_us
        self._clocks = clocks

    def host_us(self, monotonic_ns: int) -> int:
        return monotonic_ns // 1000

    def sample(self) -> ClockSample:
        return sampled(self._clocks, lambda: self._bound_us, lambda bound_us, _: (bound_us, "bounded"), "fixed")


class ChronyClock:
    """The system clock with the bound that chronyd reports."""

    def __init__(
        self, ask: Callable[[], str] | None = None, clocks: Callable[[], tuple[int, int, int]] = read_clocks
    ) -> None:
        self._ask = ask or ask_chronyc
        self._clocks = clocks

    def host_us(self, monotonic_ns: int) -> int:
        return monotonic_ns // 1000

    def sample(self) -> ClockSample:
        return sampled(self._clocks, self._ask, parse_tracking, "chrony")


def ask_chronyc() -> str:
    """The CSV tracking report of the local chronyd, or empty text if it cannot be had."""
    try:
        done = subprocess.run(
            ["chronyc", "-c", "-n", "tracking"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_CHRONYC_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def parse_tracking(report: str, utc_us: int) -> tuple[int | None, str]:
    """(bound in us or None, clock state) from a `chronyc -c tracking` line at system time utc_us.

    chronyd increases the root dispersion by its maxclockerror, 1 ppm unless configured; the difference to the drift
    assumed here is added for the time since the last update.
    """
    fields = report.strip().split(",")
    if len(fields) < _TRACKING_FIELDS or fields[_F_LEAP].strip() == "Not synchronised":
        return None, "unbounded"
    try:
        reference, correction, delay, dispersion, interval = (
            float(fields[i]) for i in (_F_REF_TIME, _F_CORRECTION, _F_DELAY, _F_DISPERSION, _F_INTERVAL)
        )
    except ValueError:
        return None, "unbounded"
    error = abs(correction) + dispersion + delay / 2
    if not (0 < reference < math.inf and 0 <= error * 1e6 < UNBOUNDED_US and dispersion >= 0):  # also false for NaN
        return None, "unbounded"
    age_us = max(0, utc_us - int(reference * 1e6))
    bound_us = int(error * 1e6) + 1 - (-age_us * ASSUMED_DRIFT_PPM // 1_000_000)
    if bound_us >= UNBOUNDED_US:
        return None, "unbounded"
    free_running = not age_us <= _FREE_RUNNING_INTERVALS * max(interval, 1.0) * 1e6
    return bound_us, "free-running" if free_running else "bounded"
