"""A reader, its line and its host in simulated microseconds: the reads that a port may give, and what truly happened.

Times are exact (fractions of a microsecond do occur on a wire) so that a bound that is off by one rounding fails.
"""

from dataclasses import dataclass
from fractions import Fraction
from random import Random

BITS_PER_BYTE = 10


@dataclass(frozen=True)
class Frame:
    """One frame on the line: its event, the reader's own time for it if it gives one, and its place in the stream."""

    kind: str  # tag or keepalive
    event_us: Fraction
    reader_ms: int
    start: int
    end: int


@dataclass(frozen=True)
class Read:
    """One chunk as the host got it, and the true arrival of its bytes."""

    length: int
    after_us: int
    before_us: int


def arrivals(frames_at: list[tuple[Fraction, int]], baud: int, adapter_us: int, chance: Random) -> list[Fraction]:
    """Times at which each byte of frames (first bit not before, length) is in the host's buffer: in order, each at most
    adapter_us after its last bit."""
    free_us = Fraction(0)
    latest = Fraction(0)
    times = []
    for begin_us, length in frames_at:
        at_us = max(begin_us, free_us)
        for _ in range(length):
            at_us += Fraction(BITS_PER_BYTE * 1_000_000, baud) if baud else 0
            held_us = Fraction(chance.choice([0, adapter_us, chance.randint(0, adapter_us)]))
            latest = max(latest, at_us + held_us)  # bytes never overtake
            times.append(min(latest, at_us + adapter_us))
        free_us = at_us
    return times


def begins(frames_at: list[tuple[Fraction, int]], baud: int) -> list[Fraction]:
    """Times at which the first bit of each frame leaves, once the line is free."""
    free_us = Fraction(0)
    result = []
    for begin_us, length in frames_at:
        at_us = max(begin_us, free_us)
        result.append(at_us)
        free_us = at_us + (Fraction(length * BITS_PER_BYTE * 1_000_000, baud) if baud else 0)
    return result


def reads(times: list[Fraction], chance: Random, stall_us_max: int) -> list[Read]:
    """Chunks as a port gives them: at each look all bytes there, or a part of them; the lower bound is the last moment at
    which the buffer was known to be empty, or any moment before that."""
    chunks = []
    at = 0
    empty_us = 0
    while at < len(times):
        look_us = -(-times[at] // 1) + chance.randint(0, chance.choice([0, 100, 20_000, stall_us_max]))
        there = at
        while there < len(times) and times[there] <= look_us:
            there += 1
        take = chance.choice([there - at, chance.randint(1, there - at)])
        before_us = int(look_us) + chance.choice([0, chance.randint(0, 500)])
        chunks.append(Read(take, empty_us, before_us))
        at += take
        if at == there:  # the buffer was seen empty at the look; a late return of the clock call only widens
            latest_empty = int(look_us)
            if at < len(times):
                latest_empty = min(latest_empty, int(times[at] // 1))
            empty_us = max(empty_us, latest_empty - chance.choice([0, chance.randint(0, 2000)]))
    return chunks
