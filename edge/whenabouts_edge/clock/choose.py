"""The clock source that a configuration names."""

from collections.abc import Callable
from typing import Any

from whenabouts_edge.clock import ClockSource, HostClock, simulated
from whenabouts_edge.clock.clockbound import ClockBoundClock
from whenabouts_edge.clock.first import FirstClock
from whenabouts_edge.clock.kernel import KernelClock
from whenabouts_edge.clock.pace import PacedClock
from whenabouts_edge.clock.system import ChronyClock, FixedClock
from whenabouts_edge.clock.timesyncd import TimesyncdClock

# In the order in which `auto` asks them: the one with the best-founded bound first.
_BOUNDS: dict[str, Callable[[], ClockSource]] = {
    "clockbound": ClockBoundClock,
    "chrony": ChronyClock,
    "timesyncd": TimesyncdClock,
    "adjtimex": KernelClock,
}


def host_clock(clock: dict[str, Any]) -> HostClock:
    """The agent's clock for a checked [clock] table."""
    return _simulated(clock) if clock["source"] == "sim" else PacedClock(clock_source(clock))


def clock_source(clock: dict[str, Any]) -> ClockSource:
    """The source for a checked [clock] table."""
    if clock["source"] == "fixed":
        return FixedClock(clock["bound_us"])
    if clock["source"] == "sim":
        return _simulated(clock)
    if clock["source"] == "auto":
        return FirstClock([make() for make in _BOUNDS.values()])
    return _BOUNDS[clock["source"]]()


def _simulated(clock: dict[str, Any]) -> simulated.SimulatedClock:
    return simulated.SimulatedClock(**{name: clock[name] for name in simulated.KEYS})
