"""ThingMagic M6e Nano: a UHF module that obeys commands and streams tag records while it searches.

Silent until the host starts it. Then it searches in cycles of the requested length (1000 ms): a cycle begins as the
first byte of its keep-alive leaves, and every record carries the milliseconds since then. Records leave before the next
keep-alive, which waits some milliseconds for them if needed: the host relates records to the last keep-alive it saw.
A brown-out boots the module: boot message, then silence until started again.
Frames: built by `whenabouts_hardware.readers.m6e_frames`; answers without data are
plain success, an unknown opcode gets status 0101.
"""

from __future__ import annotations

from random import Random

from whenabouts_hardware.readers import m6e_frames as frames
from whenabouts_sim.readers.core import ReaderCore
from whenabouts_sim.readers.faults import NO_FAULTS, Faults
from whenabouts_sim.world.world import Sighting

BAUD = 115_200
OP_SET_BAUD = 0x06
STATUS_BAD_OPCODE = 0x0101
STATUS_BAD_VALUE = 0x0105
STREAM_ENDED = bytes([2])  # first data byte of the frame that answers a stop

# Answer to "version" of a captured module of hardware 30000002 with firmware 01070102.
VERSION_DATA = bytes.fromhex("1412080030000002201612130107010200000010")
PLAIN_ANSWERS = {
    OP_SET_BAUD,
    frames.OP_SET_PROTOCOL,
    frames.OP_SET_ANTENNA,
    frames.OP_SET_READ_POWER,
    frames.OP_SET_REGION,
    frames.OP_SET_OPTIONAL,
}

# Medians of 722 captured round trips lie between 0.5 and 1.0 ms after subtracting both wire times.
PROCESSING_US = 700
BOOT_US = 150_000

CHANNELS_KHZ = tuple(902_750 + 500 * channel for channel in range(50))


class M6eNano(ReaderCore):
    """The module behind its UART; `streaming`: a host has started it."""

    def __init__(self, name: str, seed: int, faults: Faults = NO_FAULTS) -> None:
        super().__init__(name, seed, BAUD, faults)
        self.bad_commands = 0
        self._input = b""
        self._cycle_ms = frames.CYCLE_MS
        self._cycle_us: int | None = None
        self._next_cycle_us: int | None = None

    @property
    def streaming(self) -> bool:
        """True if its host has started it: it searches, or is about to begin."""
        return self._next_cycle_us is not None

    def feed(self, data: bytes, now_us: int) -> None:
        """Takes host bytes; answers every whole command in order, skips and counts anything else."""
        self._advance(now_us)
        if not self.powered:
            return
        self._input += data
        while (command := self._take_command()) is not None:
            self._obey(command[0], command[1:], now_us)

    def power_off(self, now_us: int) -> None:
        """Forgets everything, searching included."""
        super().power_off(now_us)
        self._input = b""
        self._halt()

    def brown_out(self, now_us: int) -> None:
        """The supply dips: frames on their way are lost, the module boots and waits to be started."""
        self.power_off(now_us)
        self.power_on(now_us)
        self._pieces += self._line.send(frames.answer(frames.OP_BOOT, 0, VERSION_DATA), now_us + BOOT_US)

    def _take_command(self) -> bytes | None:
        """Opcode and data of the next command in the input, None when it is not whole yet."""
        while self._input:
            head = self._input[:2]
            if head[0] == frames.START and len(head) < 2:
                return None
            if head[0] == frames.START and head[1] <= frames.COMMAND_DATA_BYTES_MAX:
                size = head[1] + frames.COMMAND_OVERHEAD_BYTES
                if len(self._input) < size:
                    return None
                body, check = self._input[1 : size - 2], self._input[size - 2 : size]
                if frames.crc(body).to_bytes(2, "big") == check:
                    self._input = self._input[size:]
                    return body[1:]
                self.bad_commands += 1
            self._input = self._input[1:]
        return None

    def _obey(self, op: int, data: bytes, now_us: int) -> None:
        if op == frames.OP_MULTI_PROTOCOL:
            self._start_or_stop(data, now_us)
        elif op == frames.OP_VERSION:
            self._answer(frames.answer(op, frames.STATUS_OK, VERSION_DATA), now_us)
        elif op in PLAIN_ANSWERS:
            self._answer(frames.answer(op), now_us)
        else:
            self._answer(frames.answer(op, STATUS_BAD_OPCODE), now_us)

    def _start_or_stop(self, data: bytes, now_us: int) -> None:
        """Data `0000 01 22 0000 05 07 22 10 001B CYCLE META` starts, `0000 02` stops."""
        if data[:3] == bytes([0, 0, 2]):
            self._halt()
            self._answer(frames.answer(frames.OP_MULTI_PROTOCOL, frames.STATUS_OK, STREAM_ENDED), now_us)
        elif data[:4] == bytes([0, 0, 1, frames.OP_READ_MULTIPLE]) and len(data) == 16 and any(data[12:14]):
            self._halt()
            self._cycle_ms = int.from_bytes(data[12:14], "big")
            self._answer(frames.START_ACK, now_us)
            self._next_cycle_us = self._line.free_us + PROCESSING_US
        else:
            self._answer(frames.answer(frames.OP_MULTI_PROTOCOL, STATUS_BAD_VALUE), now_us)

    def _answer(self, frame: bytes, now_us: int) -> None:
        self._pieces += self._line.send(frame, now_us + PROCESSING_US)

    def _halt(self) -> None:
        self._cycle_us = self._next_cycle_us = None

    def _searching(self) -> bool:
        return self._cycle_us is not None

    def _event_us(self) -> int | None:
        coming_us = super()._event_us()
        times = [at_us for at_us in (coming_us, self._next_cycle_us) if at_us is not None]
        return min(times, default=None)

    def _step(self, at_us: int) -> None:
        if at_us != self._next_cycle_us:
            super()._step(at_us)
        elif self._line.free_us > at_us:
            self._next_cycle_us = self._line.free_us
        else:
            self._cycle_us = at_us
            self._next_cycle_us = at_us + 1000 * self._cycle_ms
            self._pieces += self._line.send(frames.KEEPALIVE, at_us, first_byte_us_max=at_us)

    def _flush_us(self) -> int | None:
        return self._next_cycle_us

    def _frame(self, sighting: Sighting, random: Random) -> bytes:
        assert self._cycle_us is not None
        return frames.tag_notice(
            bytes.fromhex(sighting.key),
            rssi=-random.randint(38, 74),
            antenna="1/1",
            freq_khz=random.choice(CHANNELS_KHZ),
            ts_ms=(sighting.true_us - self._cycle_us) // 1000,
            phase=random.randint(0, 180),
        )
