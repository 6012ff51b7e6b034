"""A sensor that sends a line of JSON for each measurement, 9600 8N1, and ignores its input.

`{"probe": KEY, "temperature": NUMBER}`: the probe is the sighting's key, the number is drawn by seed.
"""

from __future__ import annotations

import json
from random import Random

from whenabouts_sim.readers.core import ReaderCore, chance_of
from whenabouts_sim.readers.faults import NO_FAULTS, Faults
from whenabouts_sim.world.world import Sighting

BAUD = 9600
STEADY_US = 1_000_000  # for so long it is about as warm


class LineSensor(ReaderCore):
    """The sensor behind its UART; it reports from the moment it has power."""

    def __init__(self, name: str, seed: int, faults: Faults = NO_FAULTS) -> None:
        super().__init__(name, seed, BAUD, faults)

    def feed(self, data: bytes, now_us: int) -> None:
        """Ignores the host's bytes."""
        self._advance(now_us)

    def _searching(self) -> bool:
        return self.powered

    def _frame(self, sighting: Sighting, _random: Random) -> bytes:
        measured = temperature(self._seed, self.name, sighting.number, sighting.true_us)
        return json.dumps({"probe": sighting.key, "temperature": measured}).encode() + b"\n"


def temperature(seed: int, reader: str, number: int, at_us: int) -> float:
    """What a sensor measures with the sighting of a number, at a time, us since 1970 UTC."""
    base = chance_of(seed, "steady", at_us // STEADY_US).choice((185, 200, 210, 220, 235))
    return (base + chance_of(seed, f"{reader}/measured", number).randint(-5, 5)) / 10
