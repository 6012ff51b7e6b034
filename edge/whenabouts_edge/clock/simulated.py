"""A wrong clock with a known error, for simulated gateways.

True time runs from `epoch_us` at `anchor_ns` of CLOCK_MONOTONIC, `speed_milli` thousandths as fast as the machine. The
gateway reads true time plus an offset that drifts, and claims a bound that the simulator knows to be true.
"""

import time
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields

from whenabouts_edge.clock import ClockSample


@dataclass(frozen=True, slots=True)
class SimulatedClock:
    """A clock with an error of offset_us plus a drift; it claims base_bound_us plus an assumed drift; all in us."""

    epoch_us: int
    anchor_ns: int
    speed_milli: int
    offset_us: int
    drift_ppm: int
    base_bound_us: int
    assumed_drift_ppm: int
    monotonic_ns: Callable[[], int] = time.monotonic_ns

    def host_us(self, monotonic_ns: int) -> int:
        return (monotonic_ns - self.anchor_ns) * self.speed_milli // 1_000_000

    def sample(self) -> ClockSample:
        elapsed_us = self.host_us(self.monotonic_ns())
        error_us = self.offset_us + self.drift_ppm * elapsed_us // 1_000_000
        bound_us = self.base_bound_us - (-self.assumed_drift_ppm * abs(elapsed_us) // 1_000_000)
        return ClockSample(elapsed_us, self.epoch_us + error_us, bound_us, "bounded", "sim")

    def current(self, sample: ClockSample) -> ClockSample:
        """The sample unchanged: a simulated clock is not slewed."""
        return sample


KEYS = tuple(field.name for field in fields(SimulatedClock) if field.default is MISSING)
"""The keys of a [clock] table for this clock."""
