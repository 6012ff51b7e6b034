"""Readers of single cards: ID-12LA, which reports a badge once as it comes, and the PN532, which answers commands.

A PN532 sleeps until woken, acknowledges every command it understands, never requests a repetition, and answers
InListPassiveTarget when a card comes into its field, however long that takes; the host's acknowledgement cancels it.
Frames: built by `whenabouts_hardware.readers.em4100` and `whenabouts_hardware.readers.pn532_frames`.
"""

from __future__ import annotations

from random import Random

from whenabouts_hardware import decoder
from whenabouts_hardware.frame import Frame
from whenabouts_hardware.readers import em4100
from whenabouts_hardware.readers import pn532_frames as pn532
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.faults import NO_FAULTS, Faults
from whenabouts_sim.world.world import Sighting

EM4100_BAUD = 9600
PN532_BAUD = 115_200
FIRMWARE_DATA = bytes([0x32, 1, 6, 7])  # IC, version, revision, support
ACK_US = 2_000  # hosts wait 15 ms for it
ANSWER_US = 1_000


class Id12La(ReaderCore):
    """The module behind its UART, format pin set to ASCII; it reports from the moment it has power."""

    def __init__(self, name: str, seed: int, faults: Faults = NO_FAULTS) -> None:
        super().__init__(name, seed, EM4100_BAUD, faults)

    def feed(self, data: bytes, now_us: int) -> None:
        """Ignores the host's bytes."""
        self._advance(now_us)

    def _searching(self) -> bool:
        return self.powered

    def _frame(self, sighting: Sighting, random: Random) -> bytes:
        return em4100.encode(int(sighting.key[:2], 16), int(sighting.key[2:], 16), crlf=True)


class Pn532(ReaderCore):
    """The chip behind its UART; `awake`: a host has woken it; `asked`: it waits for a card."""

    def __init__(self, name: str, seed: int, faults: Faults = NO_FAULTS) -> None:
        super().__init__(name, seed, PN532_BAUD, faults)
        self.awake = self.asked = False
        self._decoder = decoder("pn532")

    def feed(self, data: bytes, now_us: int) -> None:
        """Takes host bytes; acknowledges and answers every whole command, skips anything else."""
        self._advance(now_us)
        if not self.powered:
            return
        if b"\x55\x55" in data:
            self.awake = True
        if self.awake:
            for frame in self._decoder.feed(data):
                self._obey(frame, now_us)

    def power_off(self, now_us: int) -> None:
        """Forgets everything, and sleeps when power comes back."""
        super().power_off(now_us)
        self.awake = self.asked = False
        self._decoder = decoder("pn532")

    def _obey(self, frame: Frame, now_us: int) -> None:
        self.asked = False  # any new command, and the host's acknowledgement, cancels the running one
        if not frame.ok or frame.kind != "command":
            return
        self._pieces += self._line.send(pn532.ACK, now_us + ACK_US)
        op = frame.fields["op"]
        if op == pn532.OP_FIRMWARE:
            self._answer(pn532.answer(pn532.OP_FIRMWARE, FIRMWARE_DATA), now_us)
        elif op == pn532.OP_SAM:
            self._answer(pn532.answer(pn532.OP_SAM), now_us)
        elif op == pn532.OP_LIST_PASSIVE:
            self.asked = True
        else:
            self._answer(pn532.ERROR, now_us)

    def _answer(self, frame: bytes, now_us: int) -> None:
        self._pieces += self._line.send(frame, now_us + ACK_US + ANSWER_US)

    def _searching(self) -> bool:
        return self.powered and self.asked

    def _frame(self, sighting: Sighting, random: Random) -> bytes:
        self.asked = False  # one answer to one question
        return pn532.answer(pn532.OP_LIST_PASSIVE, b"\1" + pn532.target_106a(1, bytes.fromhex(sighting.key)))
