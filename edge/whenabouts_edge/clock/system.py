"""The host's own clock as UTC: under a bound set by configuration, or the bound that chrony computes.

chrony's bound after an update is |remaining correction| + root dispersion + root delay / 2 (chrony 4, `tracking` report).
It trusts the stratum-1 server, and half of the round trip for asymmetric paths. chrony keeps saying "synchronised" for very
long after its last update; from eight update intervals on the state is `free-running`, which says that only the assumed
drift holds the bound up.
"""

import subprocess
import time
from collections.abc import Callable

from whenabouts_edge.clock import ASSUMED_DRIFT_PPM, ClockSample

_TRACKING_FIELDS = 14
_F_REF_TIME, _F_CORRECTION, _F_DELAY, _F_DISPERSION, _F_INTERVAL, _F_LEAP = 3, 4, 10, 11, 12, 13
_FREE_RUNNING_INTERVALS = 8
_CHRONYC_TIMEOUT_S = 2.0


def read_clocks() -> tuple[int, int]:
    """(UTC in us, monotonic in ns) as one pair; UTC first, so that being interrupted in between only looks like drift."""
    return time.time_ns() // 1000, time.monotonic_ns()


class FixedClock:
    """The system clock, trusted to within a configured bound."""

    def __init__(self, bound_us: int, clocks: Callable[[], tuple[int, int]] = read_clocks) -> None:
        self._bound_us = bound_us
        self._clocks = clocks

    def host_us(self, monotonic_ns: int) -> int:
        return monotonic_ns // 1000

    def sample(self) -> ClockSample:
        utc_us, monotonic_ns = self._clocks()
        host_us = self.host_us(monotonic_ns)
        return ClockSample(host_us, utc_us - host_us, self._bound_us, "bounded")


class ChronyClock:
    """The system clock with the bound that chronyd reports."""

    def __init__(
        self, ask: Callable[[], str] | None = None, clocks: Callable[[], tuple[int, int]] = read_clocks
    ) -> None:
        self._ask = ask or ask_chronyc
        self._clocks = clocks

    def host_us(self, monotonic_ns: int) -> int:
        return monotonic_ns // 1000

    def sample(self) -> ClockSample:
        report = self._ask()
        utc_us, monotonic_ns = self._clocks()
        host_us = self.host_us(monotonic_ns)
        bound_us, state = parse_tracking(report, utc_us)
        return ClockSample(host_us, utc_us - host_us, bound_us, state)


def ask_chronyc() -> str:
    """The CSV tracking report of the local chronyd, or empty text when there is none to be had."""
    try:
        done = subprocess.run(
            ["chronyc", "-c", "-n", "tracking"],
            capture_output=True,
            text=True,
            timeout=_CHRONYC_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def parse_tracking(report: str, utc_us: int) -> tuple[int | None, str]:
    """(bound in us or None, clock state) from a `chronyc -c tracking` line at system time utc_us.

    chronyd grows the root dispersion itself by its maxclockerror, 1 ppm unless configured; the difference to the drift
    assumed here is added for the time since the last update.
    """
    fields = report.strip().split(",")
    if len(fields) < _TRACKING_FIELDS or fields[_F_LEAP].strip() == "Not synchronised":
        return None, "unbounded"
    try:
        reference_us = int(float(fields[_F_REF_TIME]) * 1e6)
        correction, delay, dispersion, interval = (
            float(fields[i]) for i in (_F_CORRECTION, _F_DELAY, _F_DISPERSION, _F_INTERVAL)
        )
    except ValueError:
        return None, "unbounded"
    if reference_us <= 0:
        return None, "unbounded"
    age_us = max(0, utc_us - reference_us)
    bound_us = int((abs(correction) + dispersion + delay / 2) * 1e6) + 1 + age_us * ASSUMED_DRIFT_PPM // 1_000_000
    free_running = age_us > _FREE_RUNNING_INTERVALS * max(interval, 1.0) * 1e6
    return bound_us, "free-running" if free_running else "bounded"
