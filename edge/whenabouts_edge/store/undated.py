"""Readings from before the clock was known, kept until it is.

A gateway without a battery clock reads tags before its first synchronisation. Its monotonic clock runs all the same, so
the first sample with a bound dates those readings too: UTC = host time + offset, with the bound grown by the assumed
drift for the time in between. Beyond LIMIT, or when nothing synchronises the clock for KEPT_US, the oldest go on with
unbounded stamps.

They are kept on disk as well (`waiting`), so neither an orderly end nor a power cut loses a reading that was written. The
monotonic clock runs as long as the machine does, so within one run the next agent dates them as this one would have.
After a restart of the machine that clock has begun again. A reading of the earlier run then lies between the two starts,
and within them its window is bounded by what was known in that run:

    known UTC     start   |<- window ->|        last known moment   start again
        |           |------------------|----------------|---------------|
        since_us             not before since_us + window          not after the new start - (last - window)
"""

from collections import deque
from collections.abc import Sequence

from whenabouts_edge.clock import SLEW_PPM_MAX, UNBOUNDED_US, ClockSample
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.store.waiting import Kept
from whenabouts_protocol import Interval

LIMIT = 10_000  # readings, some 5 MB
KEPT_US = 3_600_000_000
AT_ONCE = 100  # released by one call, so that other work need not wait for all of them


class Undated:
    """The queue of undated readings. dated: readings that got a stamp later; given_up: readings that did not.

    start_us: the moment of the host's clock at which the machine was started.
    """

    def __init__(self, start_us: int = 0) -> None:
        self._start_us = start_us
        self._kept: deque[PendingReading] = deque()
        self.dated = 0
        self.given_up = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, readings: Sequence[PendingReading]) -> None:
        """Keep these behind the readings kept already: readings go on in the order in which they were read."""
        self._kept += readings

    def released(self, sample: ClockSample, now_us: int) -> list[PendingReading]:
        """Up to AT_ONCE readings that may go on by now, oldest first: dated if the sample has a bound, else undated when
        there are too many or they are too old.
        """
        ready: list[PendingReading] = []
        while self._kept and len(ready) < AT_ONCE:
            if sample.bound_us is not None:
                one = self._kept.popleft()
                one.stamp, one.checked = self._stamp(one, sample), False
                ready.append(one)
                known = one.stamp[2] != "unbounded"
                self.dated += known
                self.given_up += not known
            elif len(self._kept) > LIMIT or self._waited_us(self._kept[0], now_us) > KEPT_US:
                ready.append(self._kept.popleft())
                self.given_up += 1
            else:
                break
        return ready

    def _waited_us(self, one: PendingReading, now_us: int) -> int:
        """Time that a reading has waited; for one from before the machine's start, the time since that start."""
        before = one.kept is not None and one.kept.last_us is not None
        return now_us - (self._start_us if before else one.latest_us)

    def _stamp(self, one: PendingReading, sample: ClockSample) -> tuple[int, int, str]:
        if one.stamp is not None and has_utc(one):  # only waited behind others; the host may have slept since
            return one.stamp
        if one.kept is None or one.kept.last_us is None:
            known = sample.bound_at(one.earliest_us) < UNBOUNDED_US  # not across a sleep of the host
            stamp = sample.to_utc(one.earliest_us, one.latest_us)
            return stamp.t_min, stamp.t_max, sample.state if known else "unbounded"
        stamp = _between_starts(one, one.kept, one.kept.last_us, sample.to_utc(self._start_us, self._start_us).t_max)
        return stamp.t_min, stamp.t_max, "unbounded" if one.kept.since_us is None else sample.state


def has_utc(one: PendingReading) -> bool:
    """True if UTC was known when the reading was stamped."""
    return one.stamp is not None and one.stamp[2] != "unbounded"


def _between_starts(one: PendingReading, kept: Kept, last_us: int, started_us: int) -> Interval:
    """Stamp of a reading from before the machine was started again at started_us or earlier."""
    t_max = started_us - _least_us(max(0, last_us - one.latest_us))
    if kept.since_us is None:
        return Interval(t_max - 2 * UNBOUNDED_US, t_max)
    return Interval(min(kept.since_us + _least_us(max(0, one.earliest_us)), t_max), t_max)


def _least_us(length_us: int) -> int:
    """Shortest true time in which the host's clock counts length_us; how it was slewed then is not known."""
    return length_us - -(-length_us * SLEW_PPM_MAX // 1_000_000)
