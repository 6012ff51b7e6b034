"""Finding frames in a stream of bytes: the part that all serial readers share.

Every byte fed ends in exactly one place: a good frame, a damaged one, or the count of noise. The result depends on the
bytes alone, never on how reads split them. A damaged frame is not believed about its own length: the search goes on at
the byte after its start, so a good frame within what it claimed is found, and the damaged one is cut short there; it is
reported when the search has passed it. Bounded: fewer bytes than one largest frame are pending, beside them one damaged
frame at most is kept.
Cost: each byte is looked at once, and once more for every start byte within one frame length before it.
"""

from whenabouts_hardware.frame import Frame

# Frames that a decoder counts under `frames`, and reasons it counts the others under.
BAD_CHECKSUM = "bad_checksum"  # a checksum over the frame does not fit
BAD_BYTE = "bad_byte"  # a byte that may not stand where it stands
BAD_CONTENT = "bad_content"  # the checksum fits but the content contradicts itself
LOST_END = "lost_end"  # another frame began, or the line fell silent, before the end
OVERRUN = "overruns"  # longer than the protocol allows
# A line silent for this long will not finish the frame it began: time to call `Decoder.flush`. Chosen, not measured:
# nine times the longest frame (255 bytes at 115200 Bd, 22 ms) leaves room for USB latency and ends before the next
# keep-alive.
GAP_US = 200_000
COUNTERS = ("frames", BAD_CHECKSUM, BAD_BYTE, BAD_CONTENT, LOST_END, OVERRUN, "noise_bytes", "resyncs")


class Decoder:
    """Bytes in, frames out; never raises on any bytes. Subclasses say what a frame is.

    `counters`: frames (good ones), one counter per reason of damage, noise_bytes (bytes in no frame) and resyncs (good
    frames found inside what a damaged one had claimed).
    """

    START = 0  # the byte every frame begins with
    FRAME_BYTES_MAX = 1  # nothing longer is ever held back
    OPTIONS: "tuple[str, ...]" = ()  # names of its arguments

    def __init__(self) -> None:
        self.counters = dict.fromkeys(COUNTERS, 0)
        self._start = bytes([self.START])
        self._held = bytearray()
        self._offset = 0  # of the first held byte in the whole stream
        self._damaged: Frame | None = None  # kept until the search has passed its end

    @property
    def pending(self) -> bytes:
        """Bytes that are not decided yet, fewer than one largest frame: one may have begun with the first of them."""
        return bytes(self._held)

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that these further bytes complete, in stream order."""
        frames: list[Frame] = []
        at = 0
        while at < len(data):
            size = self.FRAME_BYTES_MAX - len(self._held)
            self._held.extend(data[at : at + size])
            at += size
            self._search(frames, False)
        return frames

    def flush(self) -> list[Frame]:
        """Decide what is pending: the line has been silent for longer than a frame pauses, or is closed.

        Gives the frame that was cut short, and good ones that its claimed length had hidden.
        """
        frames: list[Frame] = []
        self._search(frames, True)
        if self._damaged is not None:
            self._emit(frames, self._damaged)
            self._damaged = None
        return frames

    def _next(self, held: bytearray, at: int) -> int:
        """The first place from `at` on where a frame may begin, or the end."""
        start = held.find(self._start, at)
        return len(held) if start < 0 else start

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        """The frame that begins with the start byte at `at`.

        None: not decidable before more bytes come; never when `final`, for then none will.
        (None, False): no frame at all.
        (frame, sure): a frame; not `sure` means that its length is not to be trusted.
        """
        raise NotImplementedError

    def _search(self, frames: list[Frame], final: bool) -> None:
        """Take all that is decided off the held bytes."""
        held = self._held
        at = 0
        while at < len(held):
            start = self._next(held, at)
            if start > at or self._damaged is not None:
                self._pass(frames, at, start)
            at = start
            if at == len(held):
                break
            found = self._decode(held, at, final)
            if found is None:
                break
            frame, sure = found
            if frame is not None and sure:
                if self._damaged is not None:
                    self._resynchronise(frames, frame, self._damaged)
                self._emit(frames, frame)
                at += len(frame.raw)
                continue
            if frame is not None and self._damaged is None:
                self._damaged = frame
            self._pass(frames, at, at + 1)
            at += 1
        self._offset += at
        self._held = held[at:]

    def _pass(self, frames: list[Frame], begin: int, end: int) -> None:
        """Go over held bytes that belong to no good frame: the damaged one's up to its end, noise behind it."""
        begin += self._offset
        end += self._offset
        damaged = self._damaged
        if damaged is not None:
            if end < damaged.end:
                return
            self._emit(frames, damaged)
            self._damaged = None
            begin = damaged.end
        self.counters["noise_bytes"] += end - begin

    def _resynchronise(self, frames: list[Frame], good: Frame, damaged: Frame) -> None:
        """Cut a damaged frame where a good one begins."""
        self._emit(frames, damaged.cut(good.start))
        self._damaged = None
        self.counters["resyncs"] += 1

    def _emit(self, frames: list[Frame], frame: Frame) -> None:
        self.counters[frame.fault or "frames"] += 1
        frames.append(frame)
