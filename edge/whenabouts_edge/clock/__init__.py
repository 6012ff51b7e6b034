"""Where UTC comes from, and how far it can be wrong.

A source answers one question: at this moment of the host's monotonic clock, what is UTC, and within which bound? Stamps are
made from the monotonic clock and turned into UTC with such a sample; between samples the bound grows by the assumed drift.
Bounds are assumed, never estimated from the data: a bound that is exceeded once in a while is no bound. What a time service
does to the monotonic clock itself is measured and comes on top (`pace.py`).

`host_us` is the monotonic clock in microseconds, as the stamper counts. Only the simulated source lets it run at another
speed than the machine's clock.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from whenabouts_protocol import Interval

ASSUMED_DRIFT_PPM = 50  # of a gateway's crystal between two samples; chrony's own default of 1 is too small for a Pi
# Assumed of the time before the first sample, for which nobody measured: above chronyd's fastest correction.
SLEW_PPM_MAX = 100_000
ANCHOR_US = (
    2_500_000  # a stamp may be counted from a moment so much earlier: two cycles of a reader that tells its own time
)
UNBOUNDED_US = 10 * 365 * 86400 * 1_000_000  # each way, when nothing is known: a stamp that matches nothing


SLEEP_US_MIN = 10_000  # less is the distance between two readings of clocks: no host sleeps for so short a time


class Pace(NamedTuple):
    """By how much the monotonic clock is ahead of its crystal, and how long the host slept, both since a moment of the past
    and wrong by at most apart_us."""

    slew_us: int
    asleep_us: int
    apart_us: int

    def unsure_since(self, before: "Pace") -> int:
        """What two readings can differ by without anything having happened."""
        return self.apart_us + before.apart_us

    def pushed_since(self, before: "Pace") -> int:
        """How far two moments may have been pushed apart or together, rounded up; UNBOUNDED_US across sleep."""
        if abs(self.asleep_us - before.asleep_us) > SLEEP_US_MIN + self.unsure_since(before):
            return UNBOUNDED_US
        return abs(self.slew_us - before.slew_us) + self.unsure_since(before)


@dataclass(frozen=True, slots=True)
class ClockSample:
    """UTC = host_us + offset_us at host_us, wrong by at most bound_us (None: by anything).

    slewed: (host time, by how much the monotonic clock was slewed until then in all) of this and earlier samples, oldest
    first; empty where it is not slewed. pace: how it ran when the sample was taken.
    """

    host_us: int
    offset_us: int
    bound_us: int | None
    state: str  # one of whenabouts_protocol.reading.CLOCK_STATES
    source: str = ""  # whose bound it is, for people
    slewed: tuple[tuple[int, int], ...] = ()
    pace: Pace | None = None

    def bound_at(self, host_us: int) -> int:
        """The bound at another moment: it grows by the assumed drift on either side of the sample, rounded up, and on the
        earlier side by what was slewed in between. At most UNBOUNDED_US."""
        if self.bound_us is None:
            return UNBOUNDED_US
        age_us = abs(host_us - self.host_us)
        grown_us = self.bound_us - (-age_us * ASSUMED_DRIFT_PPM // 1_000_000) + self._slewed_since(host_us)
        return min(grown_us, UNBOUNDED_US)

    def _slewed_since(self, host_us: int) -> int:
        """What was slewed between a moment, or what it was counted from, and the sample."""
        if not self.slewed or host_us - ANCHOR_US >= self.host_us:
            return 0
        at = bisect_left(self.slewed, (host_us - ANCHOR_US + 1, 0))
        unknown_us = max(0, self.slewed[0][0] - host_us) if at == 0 else 0
        return self.slewed[-1][1] - self.slewed[max(0, at - 1)][1] - (-unknown_us * SLEW_PPM_MAX // 1_000_000)

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


class HostClock(ClockSource, Protocol):
    """What an agent stamps with."""

    def current(self, sample: ClockSample) -> ClockSample:
        """The newest sample as it counts at this moment: wider, if the monotonic clock was pushed since."""
