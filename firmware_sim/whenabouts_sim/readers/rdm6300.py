"""RDM6300: a 125 kHz badge reader that sends 14 characters per sighting at 9600 baud and ignores its input.

The world has a badge repeat every 65 ms while it is in the field; each repeat is a sighting and a frame.
Frame: built by `whenabouts_hardware.readers.em4100.encode`.
"""

from __future__ import annotations

from random import Random

from whenabouts_hardware.readers import em4100
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.faults import NO_FAULTS, Faults
from whenabouts_sim.world.world import Sighting

BAUD = 9600


class Rdm6300(ReaderCore):
    """The module behind its UART; it reports from the moment it has power."""

    def __init__(self, name: str, seed: int, faults: Faults = NO_FAULTS) -> None:
        super().__init__(name, seed, BAUD, faults)
        self.ignored_bytes = 0

    def feed(self, data: bytes, now_us: int) -> None:
        """Counts the bytes and ignores them: its receive pin is not connected."""
        self._advance(now_us)
        self.ignored_bytes += len(data)

    def _searching(self) -> bool:
        return self.powered

    def _frame(self, sighting: Sighting, random: Random) -> bytes:
        return em4100.encode(int(sighting.key[:2], 16), int(sighting.key[2:], 16))
