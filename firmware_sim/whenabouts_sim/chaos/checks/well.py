"""When an agent surely could store what its readers saw: it ran, and its disk had room and was quick."""

from collections.abc import Iterable, Iterator, Sequence

from whenabouts_sim.chaos.parts.wrong_clock import ClockPlan
from whenabouts_sim.chaos.schedule.fault import Fault
from whenabouts_sim.world.clocks import EPOCH_US
from whenabouts_sim.world.world import SECOND_US

Spans = Sequence[Sequence[int]]
# How long after such a fault readings of its time may still wait to be stored.
BACKLOGS_US = {"disk_full": 0, "slow_disk": 6_000_000, "slow_threads": 3_000_000}
DATED_US = 3_000_000  # from the moment at which UTC is known until readings that waited for it are stored
# After a full disk has room again: until the agent tries again, and all that it held in memory, or its count, is stored.
RETRIED_US = 1_700_000
WRITES = 4  # that are waited for then


def well_spans(
    lives: Spans, faults: Iterable[Fault], clock: ClockPlan, disk_s: float = 0.0, has_small_batches: bool = False
) -> Spans:
    """The spans of lives without those of faults of its machine. All in us since 1970 UTC; faults since the begin.

    disk_s: the most that the disk makes others wait while it is not slow. has_small_batches: a write stores few readings.
    """
    faults = list(faults)
    stored_us = RETRIED_US + int(WRITES * disk_s * SECOND_US)
    backlog_us = BACKLOGS_US["slow_disk"] if has_small_batches and disk_s else 0
    ended = [[begin, end - backlog_us] for begin, end in lives]
    return [span for life in ended for span in _well(life, faults, clock, stored_us)]


def _well(life: Sequence[int], faults: Iterable[Fault], clock: ClockPlan, stored_us: int) -> Spans:
    """The spans of one life of an agent."""
    spans: Spans = [life]
    for fault in faults:
        if fault.kind == "bit_rot":  # all that was in the spool may be lost
            spans = list(_without(spans, 0, EPOCH_US + fault.end_us))
        elif fault.kind == "disk_full" and life[1] >= EPOCH_US + fault.end_us + stored_us:
            continue  # what the disk refused was kept in memory, and is on the disk now
        elif fault.kind in BACKLOGS_US:
            begin, end = fault.at_us, fault.end_us + BACKLOGS_US[fault.kind]
            # What waited for UTC when it began is stored while it lasts.
            begin = min([begin, *(since for since, until in _unknown(clock) if until + DATED_US > begin > since)])
            spans = list(_without(spans, EPOCH_US + begin, EPOCH_US + end))
    return spans


def _unknown(clock: ClockPlan) -> Iterator[tuple[int, int]]:
    """When UTC is not known, us since the begin."""
    since = 0
    for begin, end, _ in clock.known:
        if begin > since:
            yield since, begin
        since = end


def _without(spans: Spans, begin: int, end: int) -> Iterator[list[int]]:
    for since, until in spans:
        yield [since, min(until, begin)]
        yield [max(since, end), until]
