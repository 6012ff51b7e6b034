"""Disturbances of the host's monotonic clock: a time service slews it, and sleep stops it.

Readings are timed by CLOCK_MONOTONIC, because it also paces the time-outs of port reads. A time service that corrects
UTC without a jump speeds this clock up or slows it down, chronyd by up to 83 333 ppm, the kernel for timesyncd by an
eighth of the error a second; both are far above the drift of any crystal. So a reading from a second before a sample of
UTC may be 83 ms further from it than the drift allows, and a UTC sample taken after a suspend, in which the clock
stopped, does not date readings from before it. CLOCK_MONOTONIC_RAW is never slewed and CLOCK_BOOTTIME counts sleep:
their distances to CLOCK_MONOTONIC measure slewing and sleep.

`PacedClock` widens the bound between two moments by all the slewing between them, including intended slewing (a time
service also removes the crystal's error: up to 50 us more for a second), and makes it unbounded across sleep.

An old sample stays true if its bound grows with the drift. So each sample is the intersection of the new answer and the
old sample: one bad exchange on a jittery network does not widen stamps, and a source that falls silent leaves the clock
free-running. If the two are disjoint, the contradiction is counted and the new answer is used.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from whenabouts_edge.clock import UNBOUNDED_US, ClockSample, ClockSource, Pace

READ_ATTEMPTS = 5
CLOSE_ENOUGH_NS = 5_000
RECENT = 128  # samples, one a second: longer than the longest latency of a reader
OLDER = 240  # samples before those, spaced to reach back for two hours, longer than undated readings are kept
OLDER_EVERY_US = 30_000_000
_HAS_CLOCKS = hasattr(time, "CLOCK_MONOTONIC_RAW") and hasattr(time, "CLOCK_BOOTTIME")

Slewed = tuple[tuple[int, int], ...]


def read_pace() -> Pace:
    """The distances now, from the closest of a few readings; all zero on a system without these clocks."""
    if not _HAS_CLOCKS:
        return Pace(0, 0, 0)
    readings = []
    for _ in range(READ_ATTEMPTS):
        before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        raw_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        apart_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - before_ns
        readings.append((apart_ns, before_ns - raw_ns, boot_ns - before_ns))
        if apart_ns < CLOSE_ENOUGH_NS:
            break
    apart_ns, slew_ns, asleep_ns = min(readings)
    return Pace(slew_ns // 1000, asleep_ns // 1000, apart_ns // 1000 + 1)


class PacedClock:
    """The samples of a source, each with the slewing of the host's clock until then."""

    def __init__(self, source: ClockSource, pace: Callable[[], Pace] = read_pace) -> None:
        self._source, self._pace = source, pace
        self._counted: Pace | None = None  # at the last count of slewing
        self._slewed_us = 0
        self._recent: Slewed = ()
        self._older: Slewed = ()
        self._known: tuple[ClockSample, int] | None = (
            None  # the last sample with a bound, and the total slewing until then
        )
        self.contradictions = 0

    def host_us(self, monotonic_ns: int) -> int:
        return self._source.host_us(monotonic_ns)

    def sample(self) -> ClockSample:
        before = self._pace()
        sample = self._source.sample()
        now = self._pace()
        self._count(before)
        self._count(now)
        self._remember(sample.host_us)
        sample = replace(sample, pace=now, slewed=self._older + self._recent)
        # The source may have answered at either end of the call; slewing that is not counted yet may be at both ends.
        sample = _wider(sample, now.pushed_since(before) + 4 * now.unsure_since(self._counted or now))
        return self._with_what_was_known(sample)

    def current(self, sample: ClockSample) -> ClockSample:
        """The newest sample, widened by the slewing since; without a bound if the host has slept since."""
        return sample if sample.pace is None else _wider(sample, self._pace().pushed_since(sample.pace))

    def _with_what_was_known(self, new: ClockSample) -> ClockSample:
        """The intersection of the previous sample, carried here over drift and slewing, and the new one."""
        if self._known is not None:
            old, slewed_us = self._known
            carried_us = old.bound_at(new.host_us) + self._slewed_us - slewed_us
            if carried_us >= UNBOUNDED_US:
                self._known = None
            elif new.bound_us is None:
                new = replace(new, offset_us=old.offset_us, bound_us=carried_us, state="free-running")
            else:
                low = max(old.offset_us - carried_us, new.offset_us - new.bound_us)
                high = min(old.offset_us + carried_us, new.offset_us + new.bound_us)
                if low > high:
                    self.contradictions += 1
                else:
                    middle = (low + high) // 2
                    new = replace(new, offset_us=middle, bound_us=high - middle)
        if new.bound_us is not None:
            self._known = new, self._slewed_us
        return new

    def _count(self, now: Pace) -> None:
        """Add up the slewing; an amount within the uncertainty of two readings is postponed until it can be measured."""
        if self._counted is None:
            self._counted = now
            return
        pushed_us, unsure_us = now.pushed_since(self._counted), now.unsure_since(self._counted)
        if pushed_us > 2 * unsure_us or now.apart_us < self._counted.apart_us:
            self._slewed_us += pushed_us
            self._counted = now

    def _remember(self, host_us: int) -> None:
        self._recent = (*self._recent, (host_us, self._slewed_us))
        if len(self._recent) > RECENT:
            leaving, self._recent = self._recent[0], self._recent[1:]
            if not self._older or leaving[0] - self._older[-1][0] >= OLDER_EVERY_US:
                self._older = (*self._older, leaving)[-OLDER:]


def _wider(sample: ClockSample, by_us: int) -> ClockSample:
    pushed_us = sample.pushed_us + by_us
    if sample.bound_us is None:
        return replace(sample, pushed_us=pushed_us)
    if by_us >= UNBOUNDED_US:
        return replace(sample, bound_us=None, state="unbounded", pushed_us=pushed_us)
    return replace(sample, bound_us=sample.bound_us + by_us, pushed_us=pushed_us)
