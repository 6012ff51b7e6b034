"""A sensor that sends a line of JSON for each measurement, 9600 8N1, and ignores its input.

`{"probe": KEY, "temperature": NUMBER}`: the probe is the sighting's key, the number is drawn by seed.
"""

from __future__ import annotations

import json
from random import Random

from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.faults import NO_FAULTS, Faults
from whenabouts_sim.world.world import Sighting

BAUD = 9600


class LineSensor(ReaderCore):
    """The sensor behind its UART; it reports from the moment it has power."""

    def __init__(self, name: str, seed: int, faults: Faults = NO_FAULTS) -> None:
        super().__init__(name, seed, BAUD, faults)

    def feed(self, data: bytes, now_us: int) -> None:
        """Ignores the host's bytes."""
        self._advance(now_us)

    def _searching(self) -> bool:
        return self.powered

    def _frame(self, sighting: Sighting, random: Random) -> bytes:
        return json.dumps({"probe": sighting.key, "temperature": temperature(random)}).encode() + b"\n"


def temperature(random: Random) -> float:
    """What it measures."""
    return random.randint(180, 240) / 10
