"""Faults between a reader and its host, by seed and by rate.

Harmless faults change how a frame arrives, not its content: it is split into several writes, or line noise stands in
front of it. Damaging faults may cost the reading, so the emission log names them: a flipped bit, a head that the host
missed by opening late, a last byte lost so that the next frame is glued on. Noise never contains a byte with which a
frame could begin: after a false start a decoder may skip good bytes, depending on the decoder, and that loss would look
like a fault of the agent. Nor does it contain one with which a frame ends, nor is such a byte all that is left of a frame:
it would complete the frame before, if that one lost its last byte.
All delays together stay below the idle time that the world leaves between two records, 0.9 ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

SPLIT_IDLE_US_MAX = 200  # per cut; at most two cuts
NOISE_BYTES_MAX = 4
LEFT_MIN = 3  # bytes of a frame that lost its head: more than its end


@dataclass(frozen=True)
class Faults:
    """Rates in frames per thousand; at most one fault hits a frame. `mid_frame_start` cuts the very first frame."""

    split: int = 0
    noise: int = 0
    flipped: int = 0
    head_lost: int = 0
    glued: int = 0
    mid_frame_start: bool = False

    def __post_init__(self) -> None:
        total = self.split + self.noise + self.flipped + self.head_lost + self.glued
        if total > 1000:
            raise ValueError(f"faults: rates add up to {total} per thousand frames, expected at most 1000")


NO_FAULTS = Faults()


@dataclass(frozen=True)
class FaultedFrame:
    """A frame as it goes out: bytes, cuts for `Line.send`, and the damage done to it ("" for none)."""

    data: bytes
    cuts: tuple[tuple[int, int], ...] = ()
    damaged: str = ""


def treat(frame: bytes, faults: Faults, random: Random, first: bool) -> FaultedFrame:
    """Draws at most one fault for a frame; `first`: it is the first frame since power-on."""
    if first and faults.mid_frame_start:
        return _head_lost(frame, random)
    draw = random.randrange(1000)
    for rate, fault in (
        (faults.split, _split),
        (faults.noise, _noise),
        (faults.flipped, _flipped),
        (faults.head_lost, _head_lost),
        (faults.glued, _glued),
    ):
        if draw < rate:
            return fault(frame, random)
        draw -= rate
    return FaultedFrame(frame)


def _split(frame: bytes, random: Random) -> FaultedFrame:
    cuts = sorted(random.sample(range(1, len(frame)), random.randint(1, 2)))
    return FaultedFrame(frame, tuple((cut, random.randint(0, SPLIT_IDLE_US_MAX)) for cut in cuts))


def _noise(frame: bytes, random: Random) -> FaultedFrame:
    harmless = [byte for byte in range(256) if byte not in (frame[0], frame[-1])]
    return FaultedFrame(bytes(random.choices(harmless, k=random.randint(1, NOISE_BYTES_MAX))) + frame)


def _flipped(frame: bytes, random: Random) -> FaultedFrame:
    bit = random.randrange(8 * len(frame))
    data = bytearray(frame)
    data[bit // 8] ^= 1 << bit % 8
    return FaultedFrame(bytes(data), damaged="flipped")


def _head_lost(frame: bytes, random: Random) -> FaultedFrame:
    return FaultedFrame(frame[random.randrange(1, max(2, len(frame) - LEFT_MIN + 1)) :], damaged="head_lost")


def _glued(frame: bytes, random: Random) -> FaultedFrame:
    if frame[-1] == frame[0]:  # the next frame's first byte would complete this one, and be missing there
        return FaultedFrame(frame[:-2], damaged="glued")
    return FaultedFrame(frame[:-1], damaged="glued")
