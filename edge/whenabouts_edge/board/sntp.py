"""UTC for a board: SNTP with the round trip measured, and a clock beside the tick counter that is never stepped.

A request leaves at t1 and its answer is read at t4, both by the board's own ticks; the server received it at T2 and
answered at T3, both right within E = root dispersion + half the root delay + its precision. UTC at t4 then lies in

    [T3 - E,  T2 + E + (t4 - t1) + drift]

because both the answer and the request took some time. Any delays of board and network are covered, however uneven. The
board's real-time clock is not set. Packet after RFC 4330 (SNTP) and RFC 5905 sections 7.3 and 7.4. Integers only;
microseconds.
"""

import struct

from whenabouts_edge.backoff import Backoff

ASSUMED_DRIFT_PPM = 50  # of a board's crystal; assumed, as an estimate is no bound
# A century each way, when nothing is known: a stamp that matches nothing, and holds the true time although a board's clock
# begins in 1970 or 2000.
UNBOUNDED_US = 3_153_600_000_000_000
PACKET_BYTES = 48
POLL_US = 64_000_000  # between exchanges once the time is known
RETRY_US = 4_000_000  # until then, doubled up to POLL_US
WAIT_US = 2_000_000  # for an answer; a later one is ignored
FREE_RUNNING_US = 8 * POLL_US  # without an exchange for this long the clock is free-running
_UNIX_EPOCH_S = 2_208_988_800  # 1970 in seconds since 1900
_ERA_S = 1 << 32  # seconds with a clear top bit are after 2036 (RFC 4330 section 3)
_PPM = 1_000_000


class SntpError(ValueError):
    """A packet that is not a usable answer; the text gives the reason."""


class Sample:
    """UTC lies within bound_us of host_us + offset_us at the moment host_us of the tick clock."""

    __slots__ = ("bound_us", "host_us", "offset_us")

    def __init__(self, host_us: int, offset_us: int, bound_us: int) -> None:
        self.host_us, self.offset_us, self.bound_us = host_us, offset_us, bound_us

    def bound_at(self, host_us: int) -> int:
        """The bound at another moment: it grows by the assumed drift to both sides, rounded up."""
        return self.bound_us + drift_us(abs(host_us - self.host_us))


def drift_us(span_us: int) -> int:
    """Largest error of the crystal over span_us, rounded up."""
    return -(-span_us // (_PPM // ASSUMED_DRIFT_PPM))


def request(cookie: bytes) -> bytes:
    """A client's packet; the answer repeats the cookie of 8 random bytes, which nobody off the path can know."""
    return b"\x23" + bytes(39) + cookie  # no warning, version 4, client; the transmit field holds the cookie


def parse(packet: bytes, cookie: bytes, sent_us: int, received_us: int) -> Sample:
    """The sample in an answer; sent_us was taken before the request went out, received_us after the answer was read.

    Raises:
        SntpError: the packet answers another request, is unusable, or its own times contradict the round trip.
    """
    if len(packet) < PACKET_BYTES:
        raise SntpError(f"sntp: found {len(packet)} bytes, expected at least {PACKET_BYTES}")
    head, stratum, _, precision = struct.unpack(">BBbb", packet[:4])
    if packet[24:32] != cookie:
        raise SntpError("sntp: found an answer to another request")
    if head & 7 != 4 or not 3 <= head >> 3 & 7 <= 4:
        raise SntpError(f"sntp: found mode {head & 7} of version {head >> 3 & 7}, expected a server's of 3 or 4")
    if stratum == 0:
        raise SntpError("sntp: the server refuses: " + _printable(packet[12:16]))
    if stratum > 15 or head >> 6 == 3:
        raise SntpError("sntp: found a server that is not synchronised")
    if packet[40:48] == bytes(8) or packet[32:40] == bytes(8):
        raise SntpError("sntp: found no time of receipt or transmission")
    delay, dispersion = struct.unpack(">II", packet[4:12])
    precision_us = 1 << max(0, 20 + precision) if precision < 12 else UNBOUNDED_US  # 2^-20 s is less than 1 us
    error_us = -(-delay * _PPM // 0x20000) - (-dispersion * _PPM // 0x10000) + precision_us
    early = _utc_us(packet[40:48], False) - error_us
    trip_us = received_us - sent_us
    late = _utc_us(packet[32:40], True) + error_us + trip_us + drift_us(trip_us)
    if early > late:
        raise SntpError("sntp: found a server that took longer than the whole round trip")
    middle = (early + late) // 2
    return Sample(received_us, middle - received_us, late - middle)


def _utc_us(stamp: bytes, up: bool) -> int:
    """Microseconds since 1970 of an NTP timestamp, rounded down or up."""
    seconds, fraction = struct.unpack(">II", stamp)
    if seconds < 0x80000000:
        seconds += _ERA_S
    part = -(-fraction * _PPM >> 32) if up else fraction * _PPM >> 32
    return int((seconds - _UNIX_EPOCH_S) * _PPM + part)


def _printable(code: bytes) -> str:
    return "".join([chr(c) if 32 < c < 127 else "?" for c in code])


class Clock:
    """UTC beside the tick clock. The intersection of two exchanges is kept; if they contradict each other the newer is
    used.

    `contradictions`: how often that was so, whichever server or crystal was wrong.
    """

    def __init__(self) -> None:
        self.sample: Sample | None = None
        self.contradictions = 0
        self._heard_us = 0

    def take(self, new: Sample) -> None:
        """Combine a new sample with the present one."""
        old = self.sample
        self._heard_us = new.host_us
        self.sample = new
        if old is None:
            return
        bound_us = old.bound_at(new.host_us)
        low = max(old.offset_us - bound_us, new.offset_us - new.bound_us)
        high = min(old.offset_us + bound_us, new.offset_us + new.bound_us)
        if low > high:
            self.contradictions += 1
            return
        middle = (low + high) // 2
        self.sample = Sample(new.host_us, middle, high - middle)

    def state(self, now_us: int) -> str:
        """State of the clock, as in readings: bounded, free-running or unbounded."""
        if self.sample is None:
            return "unbounded"
        return "bounded" if now_us - self._heard_us < FREE_RUNNING_US else "free-running"

    def bound_us(self, now_us: int) -> "int | None":
        """Largest error of UTC now; None if there is no bound."""
        return None if self.sample is None else self.sample.bound_at(now_us)

    def to_utc(self, earliest_us: int, latest_us: int) -> "tuple[int, int]":
        """The UTC interval of a host interval, both ends widened by the bound at their moment."""
        sample = self.sample
        if sample is None:
            return earliest_us - UNBOUNDED_US, latest_us + UNBOUNDED_US
        return (
            earliest_us + sample.offset_us - sample.bound_at(earliest_us),
            latest_us + sample.offset_us + sample.bound_at(latest_us),
        )


class Exchange:
    """Decides when to ask the server, and feeds its answers to the clock. `problem`: why the last exchange failed, or ''."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cookie: bytes | None = None
        self._sent_us = 0
        self._next_us: int | None = None
        self._backoff = Backoff(RETRY_US, POLL_US)
        self.problem = ""
        self.answered = 0

    def due(self, now_us: int, cookie: bytes) -> bytes:
        """The request to send at once, or b"". now_us: taken just before sending; cookie: 8 random bytes."""
        if self._cookie is not None and now_us - self._sent_us >= WAIT_US:
            self._missed(f"no answer within {WAIT_US // 1000} ms", now_us)
        if self._cookie is not None or (self._next_us is not None and now_us < self._next_us):
            return b""
        self._cookie, self._sent_us = bytes(cookie), now_us
        return request(self._cookie)

    def heard(self, packet: bytes, now_us: int) -> None:
        """Take in a packet; now_us: taken after it was read."""
        if self._cookie is None:
            return
        try:
            sample = parse(packet, self._cookie, self._sent_us, now_us)
        except SntpError as error:
            if packet[24:32] == self._cookie:  # anything else may be a stray or forged one: the answer may still come
                self._missed(str(error), now_us)
            return
        self._cookie = None
        self._clock.take(sample)
        self.answered += 1
        self.problem = ""
        self._backoff.reset()
        self._next_us = now_us + POLL_US

    def _missed(self, problem: str, now_us: int) -> None:
        self._cookie = None
        self.problem = problem
        self._next_us = now_us + self._backoff.pause_us(0)
