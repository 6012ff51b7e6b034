"""Where UTC comes from, and how far it can be wrong.

A source answers one question: at this moment of the host's monotonic clock, what is UTC, and within which bound? Stamps are
made from the monotonic clock and turned into UTC with such a sample; between samples the bound grows by the assumed drift.
Bounds are assumed, never estimated from the data: a bound that is exceeded once in a while is no bound.

`host_us` is the monotonic clock in microseconds, as the stamper counts. Only the simulated source lets it run at another
speed than the machine's clock.
"""

from dataclasses import dataclass
from typing import Protocol

from whenabouts_protocol import Interval

ASSUMED_DRIFT_PPM = 50  # of a gateway's crystal between two samples; chrony's own default of 1 is too small for a Pi
UNBOUNDED_US = 10 * 365 * 86400 * 1_000_000  # each way, when nothing is known: a stamp that matches nothing


@dataclass(frozen=True, slots=True)
class ClockSample:
    """UTC = host_us + offset_us at host_us, wrong by at most bound_us (None: by anything)."""

    host_us: int
    offset_us: int
    bound_us: int | None
    state: str  # one of whenabouts_protocol.reading.CLOCK_STATES
    source: str = ""  # whose bound it is, for people

    def bound_at(self, host_us: int) -> int:
        """The bound at another moment: it grows by the assumed drift on either side of the sample, rounded up."""
        if self.bound_us is None:
            return UNBOUNDED_US
        age_us = abs(host_us - self.host_us)
        return self.bound_us - (-age_us * ASSUMED_DRIFT_PPM // 1_000_000)

    def step_since(self, before: "ClockSample") -> int:
        """By how much UTC was set, in microseconds, if by more than both bounds allow; else 0."""
        if self.bound_us is None or before.bound_us is None:
            return 0
        step_us = self.offset_us - before.offset_us
        return step_us if abs(step_us) > before.bound_at(self.host_us) + self.bound_us else 0

    def to_utc(self, earliest_us: int, latest_us: int) -> Interval:
        """The UTC interval of a host interval, both ends widened by the bound at their moment."""
        return Interval(
            earliest_us + self.offset_us - self.bound_at(earliest_us),
            latest_us + self.offset_us + self.bound_at(latest_us),
        )


class ClockSource(Protocol):
    """A source of samples; `sample` may ask another process and so is called off the event loop."""

    def host_us(self, monotonic_ns: int) -> int:
        """Host microseconds of a moment of CLOCK_MONOTONIC."""

    def sample(self) -> ClockSample:
        """UTC now, with its bound. Never raises: a source that cannot be asked answers `unbounded`."""
