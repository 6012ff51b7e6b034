"""The transmitting half of a UART: the times at which the host can read the bytes.

Eight data bits, no parity, one stop bit: 10 bit times a byte. Bytes leave one after the other; a frame sent while the
line is busy waits its turn, so frames never overtake each other. Times are true microseconds, rounded up: nothing
arrives before its last bit.
"""

from __future__ import annotations

from dataclasses import dataclass

from whenabouts_sim.world.world import Sighting

BITS_PER_BYTE = 10

# Hosts must allow for bytes that wait 16 ms in the serial adapter (FTDI's latency timer), and agents do by default.
# Pieces may be handed over late by a little less.
ADAPTER_US_MAX = 15_000


@dataclass(frozen=True)
class Piece:
    """Bytes that become readable for the host together, at `ready_us`.

    `ends_frame` marks the last piece of a frame; it carries the sighting the frame reports, if it reports one, and
    `damaged`: the fault that may keep the host from reading the frame, or "".
    `latest_us`: latest time to hand over the piece within the latency of reader and adapter; None for no limit.
    """

    ready_us: int
    data: bytes
    ends_frame: bool
    sighting: Sighting | None = None
    damaged: str = ""
    latest_us: int | None = None


def wire_us(size_bytes: int, baud: int) -> int:
    """Time that this many bytes take, in microseconds, rounded up."""
    return -(-size_bytes * BITS_PER_BYTE * 1_000_000 // baud)


class Line:
    """One line at one rate; remembers until when it is busy."""

    def __init__(self, baud: int) -> None:
        self.baud = baud
        self.free_us = 0

    def send(
        self,
        data: bytes,
        not_before_us: int,
        cuts: tuple[tuple[int, int], ...] = (),
        sighting: Sighting | None = None,
        damaged: str = "",
        first_byte_us_max: int | None = None,
    ) -> list[Piece]:
        """The pieces of one frame; `cuts` are (byte index, idle microseconds in front of it) in ascending order.

        `first_byte_us_max`: latest begin of the frame, for a reader with a bounded latency.
        """
        start_us = at_us = max(not_before_us, self.free_us)
        pieces = []
        begin = 0
        for end, idle_us in (*cuts, (len(data), 0)):
            chunk = data[begin:end]
            at_us += wire_us(len(chunk), self.baud)
            last = end == len(data)
            latest_us = None if first_byte_us_max is None else first_byte_us_max + at_us - start_us + ADAPTER_US_MAX
            pieces.append(Piece(at_us, chunk, last, sighting if last else None, damaged if last else "", latest_us))
            at_us += idle_us
            begin = end
        self.free_us = at_us
        return pieces
