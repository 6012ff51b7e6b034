"""Base class of all decoders: searches a stream of bytes for frames.

Every byte fed ends in exactly one place: a good frame, a damaged one, or the count of noise. The result depends only on
the bytes, never on how reads split them. The length in a damaged frame is not trusted: the search continues at the byte
after its start, so a good frame within the claimed length is found, and the damaged frame is cut short there. It is
reported when the search has passed it. Memory is bounded: less than one largest frame of pending bytes, plus at most
one damaged frame.
Cost: each byte is visited once, and once more for every start byte within one frame length before it.
"""

from whenabouts_hardware.frame import Frame

# Names of a decoder's counters: good frames are counted under `frames`, the others by their fault.
BAD_CHECKSUM = "bad_checksum"  # a checksum over the frame does not fit
BAD_BYTE = "bad_byte"  # a byte that is not allowed at its place
BAD_CONTENT = "bad_content"  # the checksum fits but the content contradicts itself
LOST_END = "lost_end"  # another frame began, or the line fell silent, before the end
OVERRUN = "overruns"  # longer than the protocol allows
# A line silent for this long will not finish its frame: call `Decoder.flush`. Chosen, not measured: nine times the
# longest frame (255 bytes at 115200 Bd, 22 ms) leaves room for USB latency and ends before the next keep-alive.
GAP_US = 200_000
COUNTERS = ("frames", BAD_CHECKSUM, BAD_BYTE, BAD_CONTENT, LOST_END, OVERRUN, "noise_bytes", "resyncs")


class Decoder:
    """Bytes in, frames out; never raises on any bytes. Subclasses define the frames.

    `counters`: frames (good ones), one counter per kind of fault, noise_bytes (bytes in no frame) and resyncs (good
    frames found within the claimed length of a damaged one).
    """

    START = 0  # first byte of every frame
    FRAME_BYTES_MAX = 1  # upper bound of the bytes held back
    OPTIONS: "tuple[str, ...]" = ()  # names of the class's arguments

    def __init__(self) -> None:
        self.counters = dict.fromkeys(COUNTERS, 0)
        self._start = bytes([self.START])
        self._held = bytearray()
        self._offset = 0  # of the first held byte in the whole stream
        self._damaged: Frame | None = None  # kept until the search has passed its end

    @property
    def pending(self) -> bytes:
        """Undecided bytes, fewer than one largest frame: a frame may have begun with the first of them."""
        return bytes(self._held)

    def feed(self, data: bytes) -> list[Frame]:
        """Take more bytes and return the frames that they complete, in stream order."""
        frames: list[Frame] = []
        at = 0
        while at < len(data):
            size = self.FRAME_BYTES_MAX - len(self._held)
            self._held.extend(data[at : at + size])
            at += size
            self._search(frames, False)
        return frames

    def flush(self) -> list[Frame]:
        """Decide the pending bytes; call it when the line is closed, or silent for longer than any pause within a
        frame.

        Returns the frame that was cut short, and good frames within its claimed length.
        """
        frames: list[Frame] = []
        self._search(frames, True)
        if self._damaged is not None:
            self._emit(frames, self._damaged)
            self._damaged = None
        return frames

    def _next(self, held: bytearray, at: int) -> int:
        """The first index from `at` on where a frame may begin, or the end."""
        start = held.find(self._start, at)
        return len(held) if start < 0 else start

    def _decode(self, held: bytearray, at: int, final: bool) -> "tuple[Frame | None, bool] | None":
        """The frame that begins with the start byte at `at`.

        None: undecidable until more bytes come; never when `final`.
        (None, False): not a frame.
        (frame, sure): a frame; if not `sure`, its length is not trusted.
        """
        raise NotImplementedError

    def _search(self, frames: list[Frame], final: bool) -> None:
        """Decode and remove all decidable bytes."""
        held = self._held
        at = 0
        while at < len(held):
            start = self._next(held, at)
            if start > at or self._damaged is not None:
                self._pass(frames, at, start)
            at = start
            if at == len(held):
                break
            decoded = self._decode(held, at, final)
            if decoded is None:
                break
            frame, sure = decoded
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
        """Skip held bytes that are in no good frame: those up to the damaged frame's end belong to it, the rest is
        noise.
        """
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
