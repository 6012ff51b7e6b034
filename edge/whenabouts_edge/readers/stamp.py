"""When the event behind a frame happened, on the host's own clock, in integer microseconds.

A frame's bytes arrive in chunks of which is known that the first byte cannot have come before `after` and that all had
come by `before`. The event lies before the frame's first bit left the reader, and after the latest moment from which the
reader, the adapter and the wire could still have brought it so late:

                 latency      adapter + wire
    |<---------------------><--------------->|            |<- wire of the frame ->|
    earliest                                 after        latest                  before (of the last byte)
                                             |<---- first byte comes in here ---->|

A reader that numbers its milliseconds from a cycle start it announces (the keep-alive of an M6e) narrows this: the event
is at the announced start plus its own time, give or take one millisecond. The two must overlap; when they do not, or when
it cannot be told which cycle is meant, the reader's time is not believed, and counted. Facts: datasheet and capture
figures in the hardware package.

Latency, adapter and wire are true times; the host's crystal may count them too short, by DRIFT_PPM.

Pure integers, no allocation beyond a short list of chunks; runs unchanged on MicroPython.
"""

MAX_CHUNKS = 64  # bounds of chunks kept while a frame is incomplete; more merge into the newest, which only widens
DRIFT_PPM = 50  # assumed of any crystal, the reader's or the host's
# A reader counts whole milliseconds; its crystal and ours may part by 100 ppm of two cycles.
READER_TIME_TOLERANCE_US = 1000 + 220
# Assumed: a cycle begins as its announcement leaves, which waits for up to 24 records in its way.
CYCLE_SLIP_US = 100_000


def wire_us(length: int, baud: int) -> int:
    """Microseconds that length bytes take at 8N1, rounded down; 0 for a baud of 0 (no wire, as on native USB)."""
    return length * 10_000_000 // baud if baud else 0


def host_us_max(true_us: int) -> int:
    """The longest that the host's clock may count for so many true microseconds, rounded up."""
    return true_us + _drift_us(true_us)


def _drift_us(true_us: int) -> int:
    return -(-true_us * DRIFT_PPM // 1_000_000)


def after_question(window: "tuple[int, int]", asked_us: "int | None") -> "tuple[int, int]":
    """The window of what a reader answered, if the question that may be meant went out at asked_us.

    A frame that was recognised late, with damage before it, may be older than the question that is open by then: such a
    question says nothing.
    """
    if asked_us is None or asked_us > window[1]:
        return window
    return max(window[0], asked_us), window[1]


class Stamper:
    """Bounds the event of each frame of one reader.

    latency_us: longest time from the sighting to the frame's first bit. adapter_us: longest time a byte spends between the
    wire and the host's buffer. cycle_us: period of the cycle start the reader announces, or 0.
    """

    def __init__(self, baud: int, latency_us: int, adapter_us: int, cycle_us: int = 0) -> None:
        self.baud = baud
        self.latency_us = latency_us
        self.adapter_us = adapter_us
        self.cycle_us = cycle_us
        self._way_us = latency_us + adapter_us + (1 if baud else 0)  # without the frame's own time on the wire
        self.reader_time_refused = 0
        self._chunks: list[tuple[int, int, int]] = []  # end offset, after, before
        self._fed = 0
        self._cycle: tuple[int, int] | None = None  # bounds of the start of the last one announced

    def arrived(self, length: int, after_us: int, before_us: int) -> None:
        """The next length bytes of the stream: the first not before after_us, all by before_us."""
        self._fed += length
        if len(self._chunks) >= MAX_CHUNKS:
            self._chunks[-1] = (self._fed, self._chunks[-1][1], before_us)
        else:
            self._chunks.append((self._fed, after_us, before_us))

    def forget(self, offset: int) -> None:
        """No frame will be asked for that begins before offset."""
        keep = 0
        while keep < len(self._chunks) and self._chunks[keep][0] <= offset:
            keep += 1
        if keep:
            self._chunks = self._chunks[keep:]

    def pending_since(self) -> "int | None":
        """The earliest moment at which the bytes that are not decided yet began to arrive."""
        return self._chunks[0][1] if self._chunks else None

    def window(self, start: int, end: int) -> "tuple[int, int]":
        """(earliest, latest) moment of the event of the frame at bytes start..end of the stream.

        Raises:
            ValueError: those bytes have not arrived, or were forgotten.
        """
        first_after, first_before = self._bounds(start)
        last_before = first_before if end <= self._chunks[0][0] else self._bounds(end - 1)[1]  # most lie in one chunk
        on_wire = wire_us(end - start, self.baud)
        latest = min(first_before, last_before - on_wire + _drift_us(on_wire))
        earliest = first_after - host_us_max(self._way_us + on_wire)
        return min(earliest, latest), latest

    def cycle_started(self, start: int, end: int) -> None:
        """The frame at start..end announced the start of a search cycle."""
        after, _ = self._bounds(start)
        _, before = self._bounds(end - 1)
        on_wire = wire_us(end - start, self.baud)
        begin = after - host_us_max(self.adapter_us + on_wire + (1 if self.baud else 0))
        self._cycle = begin, before - on_wire + _drift_us(on_wire)

    def narrowed(self, window: "tuple[int, int]", reader_ms: int) -> "tuple[int, int]":
        """The window as far as the reader's own time, milliseconds since its cycle's start, allows it.

        Which cycle is meant is not said: the last announced one, the one before (a frame that was behind the announcement),
        and the one after (its announcement was lost) are tried, and those that put the event at most half a cycle before
        the frame count. The result covers all that do. With two announcements lost in a row nothing is believed.
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
