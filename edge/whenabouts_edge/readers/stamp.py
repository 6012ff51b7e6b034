"""The time window of the event behind a frame, by the host's own clock, in integer microseconds.

A frame's bytes arrive in chunks. Of each chunk it is known that the first byte cannot have come before `after` and that
all had come by `before`. The event lies before the frame's first bit left the reader, and after the latest moment from
which the reader, the adapter and the wire could still have delayed it until then:

                 latency      adapter + wire
    |<---------------------><--------------->|            |<- wire of the frame ->|
    earliest                                 after        latest                  before (of the last byte)
                                             |<---- first byte comes in here ---->|

A reader that counts milliseconds from an announced start of its cycle (the keep-alive of an M6e) narrows this: the
event is at the announced start plus the reader's time, give or take one millisecond. The two windows must overlap; if
they do not, or if the cycle is ambiguous, the reader's time is not trusted, and counted. Facts: datasheet and capture
figures in the hardware package.

Latency, adapter and wire are true times; the host's crystal may count them too short, by DRIFT_PPM.

Pure integers, no allocation beyond a short list of chunks; runs unchanged on MicroPython.
"""

MAX_CHUNKS = (
    64  # chunk bounds kept while a frame is incomplete; more are merged into the newest, which only widens windows
)
DRIFT_PPM = 50  # assumed of any crystal, the reader's or the host's
# A reader counts whole milliseconds; its crystal and ours may differ by 100 ppm of two cycles.
READER_TIME_TOLERANCE_US = 1000 + 220
# Assumed: a cycle begins as its announcement is sent, which may wait for up to 24 records before it.
CYCLE_SLIP_US = 100_000


def wire_us(length: int, baud: int) -> int:
    """Microseconds that length bytes take at 8N1, rounded down; 0 for a baud of 0 (no wire, as on native USB)."""
    return length * 10_000_000 // baud if baud else 0


def host_us_max(true_us: int) -> int:
    """The most that the host's clock may count for this many true microseconds, rounded up."""
    return true_us + _drift_us(true_us)


def _drift_us(true_us: int) -> int:
    return -(-true_us * DRIFT_PPM // 1_000_000)


def after_question(window: "tuple[int, int]", begun_us: int, asked_us: "int | None") -> "tuple[int, int]":
    """The window of an answer of which the first byte had come by begun_us, if the question that it may belong to was sent
    at asked_us.

    A frame that was recognised late because of damage before it may be older than the question open by then: such a
    question gives no bound.
    """
    if asked_us is None or asked_us > min(begun_us, window[1]):
        return window
    return max(window[0], asked_us), window[1]


def since_answered(window: "tuple[int, int]", asked_us: int, latency_us: int) -> "tuple[int, int]":
    """The window of a frame that came behind the answer to the question asked at asked_us, on a connection that keeps the
    order: it was sent after the question, however long it was on its way. latency_us: between its event and sending it.
    """
    return min(asked_us - host_us_max(latency_us), window[1]), window[1]


class Stamper:
    """Bounds the event of each frame of one reader.

    latency_us: longest time from the sighting to the frame's first bit. adapter_us: longest time a byte spends between
    the wire and the host's buffer. cycle_us: period of the cycle starts that the reader announces, or 0.
    """

    def __init__(self, baud: int, latency_us: int, adapter_us: int, cycle_us: int = 0) -> None:
        self.baud = baud
        self.latency_us = latency_us
        self.adapter_us = adapter_us
        self.cycle_us = cycle_us
        self._way_us = latency_us + adapter_us + (1 if baud else 0)  # without the frame's time on the wire
        self.reader_time_refused = 0
        self._chunks: list[tuple[int, int, int]] = []  # end offset, after, before
        self._fed = 0
        self._cycle: tuple[int, int] | None = None  # bounds of the last announced start

    def arrived(self, length: int, after_us: int, before_us: int) -> None:
        """Add the next length bytes of the stream: the first not before after_us, all by before_us."""
        self._fed += length
        if len(self._chunks) >= MAX_CHUNKS:
            self._chunks[-1] = (self._fed, self._chunks[-1][1], before_us)
        else:
            self._chunks.append((self._fed, after_us, before_us))

    def forget(self, offset: int) -> None:
        """Forget chunks before offset; no frame that begins before it will be stamped."""
        keep = 0
        while keep < len(self._chunks) and self._chunks[keep][0] <= offset:
            keep += 1
        if keep:
            self._chunks = self._chunks[keep:]

    def pending_since(self) -> "int | None":
        """The earliest moment at which the undecided bytes began to arrive."""
        return self._chunks[0][1] if self._chunks else None

    def window(self, start: int, end: int) -> "tuple[int, int]":
        """(earliest, latest) moment of the event of the frame at bytes start..end of the stream.

        Raises:
            ValueError: those bytes have not arrived, or were forgotten.
        """
        first_after, latest = self._bounds(start)
        on_wire = wire_us(end - start, self.baud)
        if self.baud:
            # Nothing shows that the first byte belongs to the rest: noise may look like it, and the frame's own may be lost.
            if end > self._chunks[0][0]:  # usually one chunk
                latest = self._bounds(end - 1)[1]
            latest -= on_wire - _drift_us(on_wire)
        earliest = first_after - host_us_max(self._way_us + on_wire)
        return min(earliest, latest), latest

    def begun_by(self, start: int) -> int:
        """By when the byte at this place of the stream had come."""
        return self._bounds(start)[1]

    def cycle_started(self, start: int, end: int) -> None:
        """Take note that the frame at start..end announced the start of a search cycle."""
        after, _ = self._bounds(start)
        _, before = self._bounds(end - 1)
        on_wire = wire_us(end - start, self.baud)
        begin = after - host_us_max(self.adapter_us + on_wire + (1 if self.baud else 0))
        self._cycle = begin, before - on_wire + _drift_us(on_wire)

    def narrowed(self, window: "tuple[int, int]", reader_ms: int) -> "tuple[int, int]":
        """The window narrowed by the reader's own time, milliseconds since the start of its cycle.

        The cycle is ambiguous: the last announced one, the previous one (the frame queued behind the announcement), and
        the next one (its announcement was lost) are tried; those that put the event at most half a cycle before the
        frame count. The result covers all of these. After two lost announcements in a row the reader's time is not
        trusted.
        """
        if self._cycle is None:
            return window
        start_min, start_max = self._cycle
        period_us = self.cycle_us
        since_min = reader_ms * 1000 - READER_TIME_TOLERANCE_US
        since_max = reader_ms * 1000 + READER_TIME_TOLERANCE_US
        low = max(window[0], window[0] + self.latency_us - period_us // 2)
        earliest = latest = None
        if since_min <= period_us + CYCLE_SLIP_US and start_min + 2 * period_us + since_min > window[1]:
            for shift_min, shift_max in (
                (-period_us - CYCLE_SLIP_US, -period_us),
                (0, 0),
                (period_us, period_us + CYCLE_SLIP_US),
            ):
                begin = max(low, start_min + shift_min + since_min)
                end = min(window[1], start_max + shift_max + since_max)
                if begin <= end:
                    earliest = begin if earliest is None else min(earliest, begin)
                    latest = end if latest is None else max(latest, end)
        if earliest is None or latest is None:
            self.reader_time_refused += 1
            return window
        return earliest, latest

    def _bounds(self, offset: int) -> "tuple[int, int]":
        for end, after, before in self._chunks:
            if offset < end:
                return after, before
        raise ValueError(f"byte {offset} of the stream: found only {self._fed} bytes arrived")
