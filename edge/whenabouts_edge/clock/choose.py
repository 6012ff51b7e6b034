"""The clock source that a configuration names."""

from typing import Any

from whenabouts_edge.clock import ClockSource
from whenabouts_edge.clock.simulated import SimulatedClock
from whenabouts_edge.clock.system import ChronyClock, FixedClock

_SIMULATED = (
    "epoch_us", "anchor_ns", "speed_milli", "offset_us", "drift_ppm", "base_bound_us", "assumed_drift_ppm",
)  # fmt: skip


def clock_source(clock: dict[str, Any]) -> ClockSource:
    """The source for a checked [clock] table."""
    if clock["source"] == "fixed":
        return FixedClock(clock["bound_us"])
    if clock["source"] == "sim":
        return SimulatedClock(**{name: clock[name] for name in _SIMULATED})
    return ChronyClock()
