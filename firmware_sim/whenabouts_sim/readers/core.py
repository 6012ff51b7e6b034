"""Base of all simulated readers: the sightings to come, randomness by seed, the line, the frames on their way.

A core uses no clock and no port: `feed` takes the host's bytes, `due` gives the pieces whose last bit has passed,
`next_us` is the time for the next call. Calls must not go back in time. The same calls give the same bytes.
A sighting while the reader is off or not searching is not seen; it is counted, never reported late.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from random import Random

from whenabouts_sim.readers.faults import NO_FAULTS, Faults, treat
from whenabouts_sim.readers.wire import Line, Piece, wire_us
from whenabouts_sim.world.world import Sighting

# A reader sends its first byte within this time after the event on air. Drawn latencies stay below it, because other
# frames may delay this one: records leaving one by one (4.08 ms) and a keep-alive (0.61 ms).
LATENCY_US_MAX = 30_000
DRAWN_LATENCY_US_MAX = 20_000


def chance_of(seed: int, reader: str, number: int) -> Random:
    """Chance of the frame of a sighting."""
    return Random(f"{seed}/{reader}/{number}")


class ReaderCore(ABC):
    """A reader's firmware on a line of `baud`; `name` and `seed` decide its latencies and faults."""

    def __init__(self, name: str, seed: int, baud: int, faults: Faults = NO_FAULTS) -> None:
        self.name = name
        self.baud = baud
        self.unseen = 0
        self.powered = False
        self._seed = seed
        self._faults = faults
        self._line = Line(baud)
        self._coming: deque[Sighting] = deque()
        self._pieces: deque[Piece] = deque()
        self._first = True

    def load(self, sightings: Iterable[Sighting], now_us: int) -> None:
        """Adds coming sightings, in order of time; those in the past are not seen."""
        self._advance(now_us)
        for sighting in sightings:
            if sighting.true_us <= now_us:
                self.unseen += 1
            else:
                self._coming.append(sighting)

    def power_on(self, now_us: int) -> None:
        """Starts the reader in its power-on state."""
        self._advance(now_us)
        self.powered = True
        self._first = True

    def power_off(self, now_us: int) -> None:
        """Takes the supply away: frames that have not left yet never do."""
        self._advance(now_us)
        self.powered = False
        self.unseen += sum(piece.sighting is not None for piece in self._pieces)
        self._pieces.clear()
        self._line.free_us = now_us

    @abstractmethod
    def feed(self, data: bytes, now_us: int) -> None:
        """Takes bytes from the host."""

    def due(self, now_us: int) -> list[Piece]:
        """All pieces the host can read by now, oldest first; each is given once."""
        self._advance(now_us)
        pieces = []
        while self._pieces and self._pieces[0].ready_us <= now_us:
            pieces.append(self._pieces.popleft())
        return pieces

    def next_us(self) -> int | None:
        """The next instant at which `due` can have something new, None if only `feed` can cause that."""
        ready_us = self._pieces[0].ready_us if self._pieces else None
        return min((at_us for at_us in (self._event_us(), ready_us) if at_us is not None), default=None)

    def _event_us(self) -> int | None:
        """Time of the next event in the reader, None without one."""
        return self._coming[0].true_us if self._coming else None

    def _advance(self, now_us: int) -> None:
        while (at_us := self._event_us()) is not None and at_us <= now_us:
            self._step(at_us)

    def _step(self, at_us: int) -> None:
        """Lets the event at `at_us` happen."""
        sighting = self._coming.popleft()
        if self._searching():
            self._report(sighting)
        else:
            self.unseen += 1

    @abstractmethod
    def _searching(self) -> bool:
        """True if a tag in the field is seen now."""

    @abstractmethod
    def _frame(self, sighting: Sighting, random: Random) -> bytes:
        """The frame that reports a sighting."""

    def _report(self, sighting: Sighting) -> None:
        random = chance_of(self._seed, self.name, sighting.number)
        frame = treat(self._frame(sighting, random), self._faults, random, self._first)
        self._first = False
        start_us = sighting.true_us + random.randint(0, DRAWN_LATENCY_US_MAX)
        flush_us = self._flush_us()
        if flush_us is not None:
            start_us = max(sighting.true_us, min(start_us, flush_us - wire_us(len(frame.data), self.baud)))
        self._pieces += self._line.send(
            frame.data, start_us, frame.cuts, sighting, frame.damaged, sighting.true_us + LATENCY_US_MAX
        )

    def _flush_us(self) -> int | None:
        """Latest time for frames to be out before the reader sends something else; None for no limit."""
        return None
