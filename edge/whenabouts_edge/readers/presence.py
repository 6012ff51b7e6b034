"""Presence of tags at one reader of an agent, as pending readings of a separate stream.

An enter is a reading of kind `tag`; a leave and the absence of an expected tag are readings of kind `absent`; `value`
names which of the three. Enter and leave of a visit carry its number in `visit`, which no other start of the agent gives: a
reading that waits for UTC may be stored by the next one. A leave has the `reads` of the visit and the bounds of its length
by the gateway's own clock, which are narrower than the difference of two stamps: no step of UTC is in them, only drift and
slewing.
"""

from whenabouts_edge.clock import ASSUMED_DRIFT_PPM, ClockSample
from whenabouts_edge.config.settings import PresenceConfig
from whenabouts_edge.readers.host_session import Batch, date
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.visits import ENTER, Change, Visits


class PresenceHost:
    """Presence at one reader. reach_us: most that a frame can be stamped before the arrival of its first byte. first_visit:
    number of the first visit of this start of the agent.
    """

    def __init__(self, config: PresenceConfig, site: str, gateway: str, reach_us: int, first_visit: int) -> None:
        self._config, self._site, self._gateway, self._reach_us = config, site, gateway, reach_us
        self._visits = Visits(config.leave_ms * 1000, config.expected)
        self._first_visit = first_visit
        self._slewed_us: dict[int | None, int] = {}  # by visit that goes on, the slewing of the host's clock before it
        self.entered = 0
        self.left = 0
        self.absent = 0

    def through(self, batch: Batch, clock: ClockSample) -> tuple[list[PendingReading], list[PendingReading]]:
        """The readings that this batch makes certain: tags that entered, and tags that left or are absent."""
        for one in batch.readings:
            if one.key is not None:
                self._visits.read(one.key, one.earliest_us, one.latest_us, (one.vclock, one.view))
        return self._reported(
            self._visits.advance(batch.clear_us - self._reach_us, batch.since_us, batch.looked_us), clock
        )

    def finish(self, clock: ClockSample) -> tuple[list[PendingReading], list[PendingReading]]:
        """The certain readings when the agent ends; tags that are present then have no leave."""
        return self._reported(self._visits.finish(), clock)

    def status(self) -> dict[str, int]:
        """Values for the status file."""
        visits = self._visits
        return {
            "present": visits.present,
            "entered": self.entered,
            "left": self.left,
            "absent": self.absent,
            "untracked": visits.untracked,
            "hurried": visits.hurried,
            "late": visits.late,
        }

    def _reported(self, changes: list[Change], clock: ClockSample) -> tuple[list[PendingReading], list[PendingReading]]:
        entered = [self._reading(change, clock) for change in changes if change.event == ENTER]
        gone = [self._reading(change, clock) for change in changes if change.event != ENTER]
        self.entered += len(entered)
        self.left += sum(change.stay_us is not None for change in changes)
        self.absent += sum(change.visit is None for change in changes)
        return entered, gone

    def _reading(self, change: Change, clock: ClockSample) -> PendingReading:
        attrs: dict[str, int | float | str | bool] = {}
        if change.visit is not None:
            attrs["visit"] = self._first_visit + change.visit
        if change.stay_us is not None:
            least_us, most_us = change.stay_us
            slewed_us = clock.slewed_us - self._slewed_us.pop(change.visit)
            attrs |= {"reads": change.reads, "stay_min_us": max(0, least_us - _drift_us(least_us) - slewed_us)}
            attrs["stay_max_us"] = most_us + _drift_us(most_us) + slewed_us
        elif change.event == ENTER:
            self._slewed_us[change.visit] = clock.slewed_until(change.earliest_us)
        kind = "tag" if change.event == ENTER else "absent"
        one = PendingReading(self._config.stream, kind, change.earliest_us, change.latest_us, change.key, change.event)
        one.attrs, (one.vclock, one.view) = attrs, ((), 0) if change.mark is None else change.mark
        date(one, self._site, self._gateway, clock)
        return one


def _drift_us(length_us: int) -> int:
    """Largest error of the gateway's clock over this time, rounded up."""
    return -(-length_us * ASSUMED_DRIFT_PPM // 1_000_000)
