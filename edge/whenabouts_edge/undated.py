"""Readings from before the clock was known, kept until it is.

A gateway without a battery clock reads tags before its first synchronisation. Its monotonic clock runs all the same, so the
first sample with a bound dates them too: UTC = host time + offset, with the bound grown by the assumed drift for the time in
between. They are kept in memory only; beyond LIMIT, or when nobody synchronises the clock for KEPT_US, the oldest go on
with stamps that say that nothing is known.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from whenabouts_edge.clock import UNBOUNDED_US, ClockSample
from whenabouts_edge.link import Observed

LIMIT = 10_000  # readings, some 5 MB
KEPT_US = 3_600_000_000
AT_ONCE = 100  # released by one call, so that what follows need not wait for all of them


class Undated:
    """`dated` counts readings that got a stamp afterwards, `given_up` those that did not."""

    def __init__(self) -> None:
        self._kept: deque[Observed] = deque()
        self.dated = 0
        self.given_up = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, observed: Sequence[Observed]) -> None:
        """Keep these behind those that are kept already: readings go on in the order in which they were read."""
        self._kept += observed

    def give_up(self) -> list[Observed]:
        """The oldest, up to AT_ONCE of them, as they are."""
        found = [self._kept.popleft() for _ in range(min(AT_ONCE, len(self._kept)))]
        self.given_up += len(found)
        return found

    def released(self, sample: ClockSample, now_us: int) -> list[Observed]:
        """Up to AT_ONCE readings that may go on by now, oldest first: dated if the sample has a bound, else as they are
        when there are too many or they are too old.
        """
        found: list[Observed] = []
        while self._kept and len(found) < AT_ONCE:
            if sample.bound_us is not None:
                one = self._kept.popleft()
                known = sample.bound_at(one.window_us[0]) < UNBOUNDED_US  # not across a sleep of the host
                state = sample.state if known else "unbounded"
                found.append(replace(one, stamp=sample.to_utc(*one.window_us), clock_state=state))
                self.dated += known
                self.given_up += not known
            elif len(self._kept) > LIMIT or now_us - self._kept[0].window_us[1] > KEPT_US:
                found.append(self._kept.popleft())
                self.given_up += 1
            else:
                break
        return found
