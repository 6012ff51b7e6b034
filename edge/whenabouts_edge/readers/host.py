"""A reader's port on a PC: readings that lack only their number.

`HostSession` adds to the session of a reader, which boards have too, what is known here: the clock's sample, the names of
site and gateway, and since when the reader has looked for tags.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import ReaderConfig
from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.port import Chunk
from whenabouts_edge.readers.session import ReaderSession
from whenabouts_hardware import READERS
from whenabouts_protocol.logs import Log

log = Log(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    """The pending readings of one look at the port, and the host time up to which the port is known.

    since_us: since then the reader has looked for tags without a break; while it does not, the present. looked_us: by then
    it surely did: of a reader that speaks although it sees nothing the last time that it spoke, of another clear_us.
    """

    readings: list[PendingReading]
    clear_us: int
    since_us: int
    looked_us: int


class HostSession:
    """One opened port with what a PC knows beside its reader's `session`: the clock, names, and whether the reader is there.

    opened_us: the reader has looked for tags since then.
    """

    def __init__(
        self, reader: ReaderConfig, site: str, gateway: str, host_us: Callable[[int], int], opened_us: int = 0
    ) -> None:
        facts = READERS[reader.kind]
        self.session = ReaderSession(_options(reader), opened_us, facts)
        self.since_us = self._heard_us = opened_us
        self._good = 0  # frames that were taken up
        self.invalid = 0  # what was seen and makes no reading
        self._speaks_us = None if reader.listen_only else facts.speaks_us
        self._site, self._gateway, self._host_us = site, gateway, host_us
        self._name = reader.name

    def take(self, chunk: Chunk, clock: ClockSample) -> tuple[list[PendingReading], bool]:
        """The readings that this chunk completes, and whether a good frame came."""
        before_us = self._host_us(chunk.before_ns) + 1
        readings = self.session.took(chunk.data, self._host_us(chunk.after_ns), before_us)
        return self._dated(readings, clock), self._spoke(before_us)

    def silent(self, empty_us: int, clock: ClockSample) -> tuple[list[PendingReading], bool]:
        """Nothing had come by empty_us: after a long enough silence half a frame is given up. Returns as `take`."""
        return self._dated(self.session.silent(empty_us), clock), self._spoke(empty_us)

    def looked_us(self, clear_us: int) -> int:
        """By this moment, or by clear_us if its silence means nothing, the reader has surely looked for tags."""
        return clear_us if self._speaks_us is None else self._heard_us

    def _spoke(self, heard_us: int) -> bool:
        """True if good frames came: between them and the one before the reader was there unless that took too long."""
        if self.session.good == self._good:
            return False
        self._good = self.session.good
        if self._speaks_us is not None and heard_us - self._heard_us > self._speaks_us:
            self.since_us = max(self.since_us, heard_us)
        self._heard_us = heard_us
        return True

    def _dated(self, readings: list[PendingReading], clock: ClockSample) -> list[PendingReading]:
        for one in readings:
            date(one, self._site, self._gateway, clock)
        return [one for one in readings if self._fits(one)]

    def _fits(self, one: PendingReading) -> bool:
        """False of what makes no reading: a good frame may hold a number, a text or a time that no reading can."""
        try:
            one.check()
        except ValueError as error:
            if not self.invalid:
                log.warning("reading.invalid", f"left out, as all that will be counted: {error}", reader=self._name)
            self.invalid += 1
            self.session.complaint = str(error)
            return False
        return True


def date(one: PendingReading, site: str, gateway: str, clock: ClockSample) -> None:
    """Give a reading its origin, and the stamp of its window by this clock."""
    one.site, one.gateway = site, gateway
    stamp = clock.to_utc(one.earliest_us, one.latest_us)
    one.stamp = stamp.t_min, stamp.t_max, clock.state


def _options(reader: ReaderConfig) -> dict[str, Any]:
    """A reader's configuration as its session takes it."""
    names = ("kind", "stream", "baud", "latency_us", "adapter_us", "listen_only", "region", "read_power_cdbm")
    given = {name: getattr(reader, name) for name in names}
    return {name: value for name, value in given.items() if value is not None} | (
        reader.line.options() if reader.line else {}
    )
