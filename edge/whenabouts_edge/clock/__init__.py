"""Sources of UTC, and the bound of its error.

A source answers one question: at this moment of the host's monotonic clock, what is UTC, and within which bound?
Readings are timed by the monotonic clock, and such a sample converts the times to UTC; between samples the bound grows
by the assumed drift. Bounds are assumed, never estimated from the data: a bound that is sometimes exceeded is not a
bound. The slewing of the monotonic clock by a time service is measured and added (`pace.py`).

`host_us` is the monotonic clock in microseconds, as the stamper counts. Only in the simulated source it runs at another
speed than the machine's clock.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from whenabouts_protocol import Interval

ASSUMED_DRIFT_PPM = 50  # of a gateway's crystal between two samples; chrony's default of 1 is too small for a Pi
# Assumed before the first sample, where nothing was measured: above chronyd's fastest correction.
SLEW_PPM_MAX = 100_000
ANCHOR_US = (
    2_500_000  # a stamp may count from a moment this much earlier: two cycles of a reader that reports its own time
)
# Each way, for an unknown time: a stamp that matches nothing, and holds the true time also if the clock stands in 1970.
UNBOUNDED_US = 100 * 365 * 86400 * 1_000_000


SLEEP_US_MIN = 10_000  # less may be the distance between two clock readings: no host sleeps for so short a time


class Pace(NamedTuple):
    """Lead of the monotonic clock over its crystal, and time that the host slept, both since a moment in the past and
    wrong by at most apart_us.
    """

    slew_us: int
    asleep_us: int
    apart_us: int

    def unsure_since(self, before: "Pace") -> int:
        """Largest difference between two readings of the clocks without slewing or sleep."""
        return self.apart_us + before.apart_us

    def pushed_since(self, before: "Pace") -> int:
        """Largest change of the distance between two moments by slewing, rounded up; UNBOUNDED_US across sleep."""
        if abs(self.asleep_us - before.asleep_us) > SLEEP_US_MIN + self.unsure_since(before):
            return UNBOUNDED_US
        return abs(self.slew_us - before.slew_us) + self.unsure_since(before)


@dataclass(frozen=True, slots=True)
class ClockSample:
    """UTC = host_us + offset_us at host_us, wrong by at most bound_us (None: unbounded).

    slewed: (host time, total slewing of the monotonic clock until then) of this and earlier samples, oldest first;
    empty if the clock is not slewed. pace: the pace when the sample was taken. pushed_us: slewing since then, up to the
    moment for which the sample was adjusted.
    """

    host_us: int
    offset_us: int
    bound_us: int | None
    state: str  # one of whenabouts_protocol.reading.CLOCK_STATES
    source: str = ""  # name of the bound's source, for people
    slewed: tuple[tuple[int, int], ...] = ()
    pace: Pace | None = None
    pushed_us: int = 0

    def bound_at(self, host_us: int) -> int:
        """The bound at another moment, at most UNBOUNDED_US: it grows by the assumed drift on either side of the
        sample, rounded up, and on the earlier side also by the slewing in between.
        """
        if self.bound_us is None:
            return UNBOUNDED_US
        age_us = abs(host_us - self.host_us)
        grown_us = self.bound_us - (-age_us * ASSUMED_DRIFT_PPM // 1_000_000) + self._slewed_since(host_us)
        return min(grown_us, UNBOUNDED_US)

    def slewed_until(self, host_us: int) -> int:
        """The least total slewing until a moment, since an arbitrary one."""
        return self.slewed[-1][1] - self._slewed_since(host_us) if self.slewed else 0

    @property
    def slewed_us(self) -> int:
        """The most total slewing until the moment for which the sample was adjusted, since the same one."""
        return (self.slewed[-1][1] if self.slewed else 0) + self.pushed_us

    def _slewed_since(self, host_us: int) -> int:
        """Slewing between a moment, or the anchor of its stamp, and the sample."""
        if not self.slewed or host_us - ANCHOR_US >= self.host_us:
            return 0
        at = bisect_left(self.slewed, (host_us - ANCHOR_US + 1, 0))
        unknown_us = max(0, self.slewed[0][0] - host_us) if at == 0 else 0
        return self.slewed[-1][1] - self.slewed[max(0, at - 1)][1] - (-unknown_us * SLEW_PPM_MAX // 1_000_000)

    def step_since(self, before: "ClockSample") -> int:
        """The step of UTC in microseconds if it exceeds both bounds; else 0."""
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
    """A source of samples; `sample` may ask another process, so it is called outside the event loop."""

    def host_us(self, monotonic_ns: int) -> int:
        """Host microseconds of a moment of CLOCK_MONOTONIC."""

    def sample(self) -> ClockSample:
        """UTC now, with its bound. Never raises: a source that cannot be asked answers `unbounded`."""


class HostClock(ClockSource, Protocol):
    """The clock with which an agent stamps."""

    def current(self, sample: ClockSample) -> ClockSample:
        """The newest sample adjusted to this moment: wider if the monotonic clock was slewed since."""
