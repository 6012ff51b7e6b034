"""UHF readers beside the Mercury modules: UHFReader18, which answers inventories, and YRM100, which searches in rounds.

A UHFReader18 takes one command at a time: a command that comes while it searches, or within its pause, is lost without an
answer. At the end of its scan time it answers with the tags it saw, one frame each. A YRM100 answers every round without
a tag with an error and sends a notice for each tag; after the requested rounds it stops by itself.
Frames: built by `whenabouts_hardware.readers.uhfreader18` and `whenabouts_hardware.readers.yrm100`.
"""

from __future__ import annotations

from random import Random

from whenabouts_hardware import decoder
from whenabouts_hardware.readers import uhfreader18, yrm100
from whenabouts_hardware.readers.uhfreader18 import GAP_US
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.faults import NO_FAULTS, Faults, treat
from whenabouts_sim.world.world import Sighting

UHF18_BAUD = 57_600
YRM100_BAUD = 115_200
SCAN_US = 1_000_000  # scan time as delivered
OVER_US_MAX = 75_000  # a scan exceeds SCAN_US by at most this
TAGS_MAX = 32  # the most that the simulated reader holds in one inventory
ANSWER_US = 1_000
ROUND_US = 40_000  # one round of a YRM100; an assumption


class UhfReader18(ReaderCore):
    """The reader behind its UART; `lost_commands` counts commands that came while it was busy."""

    def __init__(self, name: str, seed: int, faults: Faults = NO_FAULTS) -> None:
        super().__init__(name, seed, UHF18_BAUD, faults)
        self.lost_commands = 0
        self._decoder = decoder("uhfreader18")
        self._scan_ends_us: int | None = None
        self._read: list[Sighting] = []
        self._inventories = 0

    def feed(self, data: bytes, now_us: int) -> None:
        """Takes host bytes; an inventory begins, other commands succeed at once."""
        self._advance(now_us)
        if not self.powered:
            return
        for frame in self._decoder.feed(data):
            if not frame.ok:
                self._send(uhfreader18.answer(0, 0xFE), now_us)
            elif self._scan_ends_us is not None or (now_us < self._line.free_us + GAP_US and self._inventories):
                self.lost_commands += 1
            elif frame.fields["recmd"] == uhfreader18.OP_INVENTORY:
                self._inventories += 1
                random = Random(f"{self._seed}/{self.name}/inventory {self._inventories}")
                self._scan_ends_us = now_us + SCAN_US + random.randint(0, OVER_US_MAX)
            else:
                self._send(uhfreader18.answer(int(str(frame.fields["recmd"])), 0), now_us)

    def power_off(self, now_us: int) -> None:
        """Forgets the running inventory."""
        super().power_off(now_us)
        self._scan_ends_us = None
        self.unseen += len(self._read)
        self._read.clear()
        self._decoder = decoder("uhfreader18")

    def _send(self, frame: bytes, now_us: int) -> None:
        self._pieces += self._line.send(frame, now_us + ANSWER_US)

    def _searching(self) -> bool:
        return self._scan_ends_us is not None and len(self._read) < TAGS_MAX

    def _event_us(self) -> int | None:
        times = [at_us for at_us in (super()._event_us(), self._scan_ends_us) if at_us is not None]
        return min(times, default=None)

    def _step(self, at_us: int) -> None:
        if at_us == self._scan_ends_us:
            self._end_scan(at_us)
        else:
            super()._step(at_us)

    def _report(self, sighting: Sighting) -> None:
        self._read.append(sighting)

    def _end_scan(self, at_us: int) -> None:
        """Sends the answer: one frame per tag, the last one marked as the last."""
        seen, self._read, self._scan_ends_us = self._read, [], None
        if not seen:
            self._send(uhfreader18.inventory_answer([]), at_us)
        for n, sighting in enumerate(seen):
            random = Random(f"{self._seed}/{self.name}/{sighting.number}")
            status = uhfreader18.MORE_FOLLOW if n < len(seen) - 1 else 0x01
            frame = treat(self._frame_with(sighting, status), self._faults, random, self._first)
            self._first = False
            self._pieces += self._line.send(frame.data, at_us + ANSWER_US, frame.cuts, sighting, frame.damaged)

    def _frame(self, sighting: Sighting, random: Random) -> bytes:
        return self._frame_with(sighting, 0x01)

    def _frame_with(self, sighting: Sighting, status: int) -> bytes:
        return uhfreader18.inventory_answer([bytes.fromhex(sighting.key)], status)


class Yrm100(ReaderCore):
    """The module behind its UART; `rounds_left`: number of search rounds still to come."""

    def __init__(self, name: str, seed: int, faults: Faults = NO_FAULTS) -> None:
        super().__init__(name, seed, YRM100_BAUD, faults)
        self.rounds_left = 0
        self._decoder = decoder("yrm100")
        self._round_us: int | None = None
        self._seen = False

    def feed(self, data: bytes, now_us: int) -> None:
        """Takes host bytes: inventories start, stop ends them, other commands succeed."""
        self._advance(now_us)
        if not self.powered:
            return
        for frame in self._decoder.feed(data):
            if not frame.ok or frame.kind != "command":
                continue
            op, rounds = frame.fields["op"], bytes.fromhex(str(frame.fields["data"]))[1:]
            if op == yrm100.OP_INVENTORY_MANY and len(rounds) == 2:
                self.rounds_left = int.from_bytes(rounds, "big")
                self._round_us = now_us + ROUND_US
            elif op == yrm100.OP_STOP:
                self._halt()
                self._pieces += self._line.send(yrm100.STOPPED, now_us + ANSWER_US)
            else:
                self._pieces += self._line.send(yrm100.framed(yrm100.ANSWER, int(str(op)), b"\0"), now_us + ANSWER_US)

    def power_off(self, now_us: int) -> None:
        """Forgets everything, searching included."""
        super().power_off(now_us)
        self._halt()
        self._decoder = decoder("yrm100")

    def _halt(self) -> None:
        self.rounds_left = 0
        self._round_us = None

    def _searching(self) -> bool:
        return self._round_us is not None

    def _event_us(self) -> int | None:
        times = [at_us for at_us in (super()._event_us(), self._round_us) if at_us is not None]
        return min(times, default=None)

    def _step(self, at_us: int) -> None:
        if at_us != self._round_us:
            super()._step(at_us)
            return
        if not self._seen:
            self._pieces += self._line.send(yrm100.NO_TAG, at_us)
        self._seen = False
        self.rounds_left -= 1
        self._round_us = at_us + ROUND_US if self.rounds_left else None

    def _report(self, sighting: Sighting) -> None:
        self._seen = True
        super()._report(sighting)

    def _frame(self, sighting: Sighting, random: Random) -> bytes:
        return yrm100.tag_notice(bytes.fromhex(sighting.key), -random.randint(38, 74))
