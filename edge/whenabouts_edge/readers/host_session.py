"""A reader's port on a PC: complete readings except for their number.

`HostSession` adds to `ReaderSession`, which boards also use, the facts known on a PC: the clock's sample, the names of
site and gateway, and since when the reader has scanned for tags.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import ReaderConfig
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.port import Chunk
from whenabouts_edge.readers.reader_clock import ReaderClock
from whenabouts_edge.readers.session import ReaderSession
from whenabouts_hardware import READERS
from whenabouts_protocol.logs import Log

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    """The pending readings from one read of the port, and the host time up to which the port is known.

    since_us: start of the current uninterrupted scan (now, if not scanning). looked_us: the reader has told all that it
    scanned until then: by its last message if it sends keep-alives, else clear_us.
    """

    readings: list[PendingReading]
    clear_us: int
    since_us: int
    looked_us: int

    def parts(self, most: int, before: "Batch") -> Iterator["Batch"]:
        """This batch in parts of at most so many readings. Only the last says more of the port than the batch before: the
        port is not clear while readings of one message are not handed over.
        """
        last = max(0, len(self.readings) - 1) // most * most
        for begin in range(0, last, most):
            yield replace(before, readings=self.readings[begin : begin + most])
        yield replace(self, readings=self.readings[last:])


class HostSession:
    """One opened port: the reader's `session` plus the clock, the names, and the state of the reader.

    opened_us: start of the reader's scan.
    """

    def __init__(
        self, reader: ReaderConfig, site: str, gateway: str, host_us: Callable[[int], int], opened_us: int = 0
    ) -> None:
        facts = READERS[reader.kind]
        self.session = ReaderSession(_options(reader), opened_us, facts)
        self.since_us = self._heard_us = self._arrived_us = opened_us
        self._good = 0  # good frames counted so far
        self.invalid = 0  # input that makes no reading
        self.left_out = 0  # tags that were only counted, as more came than could be taken
        self._gap: PendingReading | None = None  # of those that no reading has told yet
        self._speaks_us = None if reader.listen_only else facts.speaks_us
        self.reader_clock = ReaderClock(reader.own.get("clock_ppm"))
        self._site, self._gateway, self._host_us = site, gateway, host_us
        self._name = reader.name

    def take(self, chunk: Chunk, clock: ClockSample) -> tuple[list[PendingReading], bool]:
        """The readings that this chunk completes, and True if a good frame came."""
        after_us, before_us = self._host_us(chunk.after_ns), self._host_us(chunk.before_ns) + 1
        self._arrived_us = after_us
        readings = self.session.took(chunk.data, after_us, before_us)
        if self.session.dialogue.falls_behind(after_us, before_us):
            self._leave_out(readings)
            return [], self._spoke(before_us)
        return self.gaps(clock) + self._dated(readings, clock), self._spoke(before_us)

    def silent(self, empty_us: int, clock: ClockSample) -> tuple[list[PendingReading], bool]:
        """Nothing had come by empty_us: after a long enough silence an incomplete frame is dropped. Returns as `take`."""
        return self._dated(self.session.silent(empty_us), clock), self._spoke(empty_us)

    def gaps(self, clock: ClockSample) -> list[PendingReading]:
        """A gap reading with the number and the interval of the tags that were left out, if it was not given yet."""
        found, self._gap = self._gap, None
        return [] if found is None else self._dated([found], clock)

    def _leave_out(self, readings: list[PendingReading]) -> None:
        for one in readings:
            self.left_out += 1
            if self._gap is None:
                self._gap = PendingReading(one.stream, "gap", one.earliest_us, one.latest_us, None, 0, "{readings}")
            latest_us = max(self._gap.latest_us, one.latest_us)
            self._gap.earliest_us = min(self._gap.earliest_us, one.earliest_us)
            self._gap.width_us = latest_us - self._gap.earliest_us
            self._gap.value += 1

    def batch(self, readings: list[PendingReading], clear_us: int) -> Batch:
        """These readings, and what is known of a port that is clear up to clear_us."""
        return Batch(readings, clear_us, self.scanning_since_us(clear_us), self.looked_us(clear_us))

    def looked_us(self, clear_us: int) -> int:
        """The latest time up to which the reader has told what it scanned; clear_us if its silence means nothing."""
        return clear_us if self._speaks_us is None else self._heard_us - self.session.reach_us

    def scanning_since_us(self, clear_us: int) -> int:
        """Start of the uninterrupted scan; clear_us if the reader is not known to scan."""
        dialogue = self.session.dialogue
        if dialogue.in_order:
            return clear_us if dialogue.since_us is None else dialogue.since_us
        is_dead = self._speaks_us is not None and clear_us - self._heard_us > self._speaks_us
        return clear_us if is_dead else self.since_us

    def _spoke(self, heard_us: int) -> bool:
        """True if good frames had come by heard_us; after what may be too long a pause between them a new scan begins."""
        if self.session.good == self._good:
            return False
        self._good = self.session.good
        if self._speaks_us is not None and heard_us - self._heard_us > self._speaks_us:
            self.since_us = max(self.since_us, heard_us)
        self._heard_us = self._arrived_us
        return True

    def _dated(self, readings: list[PendingReading], clock: ClockSample) -> list[PendingReading]:
        for one in readings:
            date(one, self._site, self._gateway, clock)
            if one.reader_us is not None:
                self._narrow(one, one.reader_us)
        return [one for one in readings if self._fits(one)]

    def _narrow(self, one: PendingReading, reader_us: int) -> None:
        """Compare the reader's clock with a stamp, and narrow the stamp by it where the operator lets it."""
        if one.stamp is not None and one.stamp[2] != "unbounded":
            t_min, t_max = self.reader_clock.narrowed(reader_us, one.stamp[0], one.stamp[1])
            one.stamp = t_min, t_max, one.stamp[2]

    def _fits(self, one: PendingReading) -> bool:
        """False for invalid input: a good frame may hold a number, a text or a time that no reading can hold."""
        try:
            one.check()
        except ValueError as error:
            if not self.invalid:
                log.warning("reading.invalid", f"left out; later ones are only counted: {error}", reader=self._name)
            self.invalid += 1
            self.session.complaint = str(error)
            return False
        return True


def date(one: PendingReading, site: str, gateway: str, clock: ClockSample) -> None:
    """Set a reading's origin, and the stamp of its window by this clock."""
    one.site, one.gateway = site, gateway
    stamp = clock.to_utc(one.earliest_us, one.latest_us)
    one.stamp = stamp.t_min, stamp.t_max, clock.state


def _options(reader: ReaderConfig) -> dict[str, Any]:
    """A reader's configuration in the form of its session."""
    names = ("kind", "stream", "baud", "latency_us", "adapter_us", "listen_only")
    given = {name: getattr(reader, name) for name in names}
    line = reader.line.options() if reader.line else {}
    return {name: value for name, value in given.items() if value is not None} | reader.own | line
