"""What a reader's port gives on a PC: readings that lack only their number.

`Link` adds to the session of a reader, which boards have too, what is known here: the clock's sample, the names of site and
gateway, and since when the reader has looked for tags.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from whenabouts_edge.clock import ClockSample
from whenabouts_edge.config.settings import ReaderConfig
from whenabouts_edge.readers.draft import Draft
from whenabouts_edge.readers.port import Chunk
from whenabouts_edge.readers.session import ReaderSession
from whenabouts_hardware import READERS
from whenabouts_protocol import Interval, Reading

log = logging.getLogger("whenabouts.edge")


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a reading that waits for the clock is kept on disk: its row leaves with the commit that stores the reading.

    Of a reading from before the machine was started again: last_us, the last moment known of that time, and since_us, UTC
    which had surely come before that time began, if it is known; both None for the running time.
    """

    row: int
    leaving: list[int]
    last_us: int | None = None
    since_us: int | None = None

    def leaves(self) -> None:
        """Its reading gets its number now."""
        self.leaving.append(self.row)


@dataclass(slots=True)
class Observed:
    """A reading of a port that waits for its number: a draft, called with boot and seq.

    window_us: its stamp in host time, by which the group dates it; vclock is the group's to set.
    """

    site: str
    gateway: str
    stream: str
    key: str | None
    attrs: dict[str, int | float | str | bool]
    stamp: Interval
    clock_state: str
    window_us: tuple[int, int]
    vclock: tuple[int, ...] = (0,)  # of a gateway in no group: one process, in its initial state
    kind: str = "tag"
    value: int | float | str | bool | None = None
    unit: str | None = None
    kept: Kept | None = None

    def __call__(self, boot: int, seq: int) -> Reading:
        if boot and self.kept is not None:  # boot 0, which no spool has, is a look at a reading
            self.kept.leaves()
        return Reading(
            site=self.site,
            gateway=self.gateway,
            boot=boot,
            seq=seq,
            stream=self.stream,
            kind=self.kind,
            key=self.key,
            value=self.value,
            unit=self.unit,
            attrs=self.attrs,
            t_min=self.stamp.t_min,
            t_max=self.stamp.t_max,
            clock_state=self.clock_state,
            vclock=self.vclock,
        )


@dataclass(frozen=True, slots=True)
class Batch:
    """What one look at the port gave: readings without numbers, and the host time up to which the port is known.

    since_us: since then the reader has looked for tags without a break; while it does not, the present. looked_us: by then
    it surely did: of a reader that speaks although it sees nothing the last time that it spoke, of another clear_us.
    """

    drafts: list[Observed]
    clear_us: int
    since_us: int
    looked_us: int


class Link:
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
        self.unfit = 0  # what was seen and makes no reading
        self._speaks_us = None if reader.listen_only else facts.speaks_us
        self._site, self._gateway, self._host_us = site, gateway, host_us
        self._name = reader.name

    def take(self, chunk: Chunk, clock: ClockSample) -> tuple[list[Observed], bool]:
        """The readings that this chunk completes, and whether a good frame came."""
        before_us = self._host_us(chunk.before_ns) + 1
        drafts = self.session.took(chunk.data, self._host_us(chunk.after_ns), before_us)
        return self._dated(drafts, clock), self._spoke(before_us)

    def silent(self, empty_us: int, clock: ClockSample) -> tuple[list[Observed], bool]:
        """The same when nothing had come by empty_us: after a long enough silence half a frame is given up."""
        return self._dated(self.session.silent(empty_us), clock), self._spoke(empty_us)

    def looked_us(self, clear_us: int) -> int:
        """By this moment, or by clear_us if its silence means nothing, the reader has surely looked for tags."""
        return clear_us if self._speaks_us is None else self._heard_us

    def _spoke(self, heard_us: int) -> bool:
        """Whether good frames came: between them and the one before the reader was there unless that took too long."""
        if self.session.good == self._good:
            return False
        self._good = self.session.good
        if self._speaks_us is not None and heard_us - self._heard_us > self._speaks_us:
            self.since_us = max(self.since_us, heard_us)
        self._heard_us = heard_us
        return True

    def _dated(self, drafts: list[Draft], clock: ClockSample) -> list[Observed]:
        dated = (
            Observed(self._site, self._gateway, draft.stream, draft.key, draft.attrs, clock.to_utc(*window),
                     clock.state, window, (0,), draft.kind, draft.value, draft.unit)
            for draft in drafts
            for window in ((draft.earliest_us, draft.earliest_us + draft.width_us),)
        )  # fmt: skip
        return [one for one in dated if self._fits(one)]

    def _fits(self, one: Observed) -> bool:
        """Whether it makes a reading: a good frame may hold a number, a text or a time that no reading can."""
        try:
            one(0, 0)
        except ValueError as error:
            if not self.unfit:
                log.warning("reader %s: left out, as all that will be counted as unfit: %s", self._name, error)
            self.unfit += 1
            self.session.complaint = str(error)
            return False
        return True


def _options(reader: ReaderConfig) -> dict[str, Any]:
    """A reader's configuration as its session takes it."""
    names = ("kind", "stream", "baud", "latency_us", "adapter_us", "listen_only", "region", "read_power_cdbm")
    given = {name: getattr(reader, name) for name in names}
    return {name: value for name, value in given.items() if value is not None} | (
        reader.line.options() if reader.line else {}
    )
