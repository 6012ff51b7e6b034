"""One reader on a serial line: bytes with arrival times in, pending readings out; used on PCs and on boards.

Windows are in the host's clock, which on a board is its ticks. Readings have no stamp yet: the owner of a clock dates
them.
"""

from whenabouts_edge.readers.pending import PendingReading
from whenabouts_edge.readers.stamp import Stamper, after_question, host_us_max, since_answered, wire_us
from whenabouts_hardware.decoding import GAP_US
from whenabouts_hardware.dialogue import Start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_hardware import Frame
    from whenabouts_hardware.reader import Reader

# Tags that a reader kept until it was asked are as old as the search that found them, and no frame gives that age: a timed
# search lasts about a second by convention, and fetching follows it.
BUFFERED_US = 2_000_000
# On a board a byte is seen when the UART hands over its buffer: after 32 bit times of silence (PL011 of the RP2040), and
# the board may be busy with something else for a while.
_GATHER_BITS, _BUSY_US = 32, 1000


def widest(parts_us: "list[tuple[str, tuple[int, ...]]]") -> "dict[str, tuple[int, ...]]":
    """The parts of the stamps of each stream, from (stream, parts) of readers: the longest where several share a stream."""
    found: dict[str, tuple[int, ...]] = {}
    for stream, parts in parts_us:
        known = found.get(stream, parts)
        found[stream] = tuple([max(known[n], parts[n]) for n in range(len(parts))])
    return found


class ReaderSession:
    """Decodes, drives and stamps one reader after its port was opened; opened_us: nothing was read before.

    config: kind and stream; baud, latency_us, adapter_us if they differ from the defaults of the kind; listen_only if
    another program drives the reader; the keys that only its kind has; for a sensor that sends lines form,
    columns, key, value and unit. reader: the facts of its kind, required for a kind that is not built in.

    Raises:
        ValueError: an unknown kind, or options that its decoder refuses.
    """

    def __init__(self, config: "dict[str, Any]", opened_us: int, reader: "Reader | None" = None) -> None:
        if reader is None:
            from whenabouts_hardware.readers.catalogue import reader as built_in  # only needed here

            reader = built_in(config["kind"])
        self.stream = config["stream"]
        self._reader = reader
        self.reading_kind = "tag" if reader.observe is None else "measure"
        self.baud: int = config.get("baud", reader.baud)
        gather_us = _BUSY_US + (_GATHER_BITS * 1_000_000 // self.baud if self.baud else 0)
        latency_us = config.get("latency_us", reader.latency_us)
        adapter_us = 0 if reader.converse or reader.publishes else config.get("adapter_us", gather_us)
        self._names = config.get("key"), config.get("value")
        self.unit = config.get("unit")
        self._decoder = reader.new_decoder(config)
        listen_only = bool(config.get("listen_only"))
        self.dialogue = Start((), None) if listen_only else reader.dialogue(config)
        self._latency_us = latency_us
        self._stamper = Stamper(self.baud, latency_us, adapter_us, reader.cycle_us)
        self._fed = 0
        self._last_byte_us: int | None = None
        self.opened_us = self.clear_us = opened_us  # no later frame can have begun to arrive before
        self.complaint = ""  # last refusal or complaint of the reader
        self.good = 0  # frames that show that the reader works, tags or none
        self.readings = 0
        self.stale = 0  # tags that the reader had kept from an earlier connection: left out
        # Most that the event of a frame can be stamped before the arrival of its first byte. This agent never starts a
        # timed search.
        on_wire_us = wire_us(self._decoder.FRAME_BYTES_MAX, self.baud)
        self.reach_us = host_us_max(latency_us + adapter_us + on_wire_us + 2)
        self.reach_us += BUFFERED_US if listen_only else 0
        # Of a stamp, as the birth message names them: latency, adapter, wire.
        kept_us = BUFFERED_US if listen_only and reader.buffered else 0
        self.parts_us = latency_us + kept_us, adapter_us, on_wire_us + (1 if self.baud else 0)

    @property
    def counters(self) -> "dict[str, int]":
        """Frames, damaged frames by fault, and reader times that were not trusted."""
        counters = dict(self._decoder.counters)
        counters["reader_time_refused"] = self._stamper.reader_time_refused
        counters["stale"] = self.stale
        return counters

    def took(self, data: bytes, after_us: int, before_us: int) -> "list[PendingReading]":
        """The readings that these bytes complete: the first byte came not before after_us, all by before_us."""
        self._stamper.arrived(len(data), after_us, before_us)
        self._fed += len(data)
        self._last_byte_us = before_us
        return self._read(self._decoder.feed(data), before_us, after_us)

    def silent(self, empty_us: int) -> "list[PendingReading]":
        """Nothing had come by empty_us: after a long enough silence an incomplete frame is dropped. Returns as `took`."""
        frames: list[Frame] = []
        if self._last_byte_us is not None and empty_us - self._last_byte_us >= GAP_US:
            self._last_byte_us = None
            frames = self._decoder.flush()
        return self._read(frames, empty_us, empty_us)

    def clear(self, empty_us: int) -> int:
        """clear_us, given that nothing more had come by empty_us."""
        if self.dialogue.in_order:  # what is still on its way was sent after the newest answered question
            answered_us = self.dialogue.answered_us
            self.clear_us = self.clear_us if answered_us is None else answered_us
            return self.clear_us
        pending_since = self._stamper.pending_since()
        self.clear_us = empty_us if pending_since is None else min(empty_us, pending_since)
        return self.clear_us

    def _read(self, frames: "list[Frame]", heard_us: int, empty_us: int) -> "list[PendingReading]":
        pending: list[PendingReading] = []
        for frame in frames:
            dialogue = self.dialogue
            asked_us = dialogue.answered_us if dialogue.in_order else dialogue.asked_us
            dialogue.heard(frame, heard_us)
            self.complaint = dialogue.complaint or self.complaint
            if not frame.ok:
                continue
            if frame.kind == "status":  # a refusal or complaint: the reader is alive, but not reading
                self.complaint = str(frame.fields.get("text", "status of an unknown kind"))
                continue
            self.good += 1
            if self._reader.is_anchor(frame):
                self._stamper.cycle_started(frame.start, frame.end)
            if self._reader.observe is None:
                pending += self._seen(frame, asked_us)
            else:
                pending += self._measured(frame, self._reader.observe)
        self._stamper.forget(self._fed - len(self._decoder.pending))
        self.clear(empty_us)
        self.readings += len(pending)
        return pending

    def _seen(self, frame: "Frame", asked_us: "int | None") -> "list[PendingReading]":
        found = self._reader.sightings(frame)
        places = [place for place in range(len(found)) if self.dialogue.takes(frame, place)]
        self.stale += len(found) - len(places)
        if not places:
            return []
        whole = self._stamper.window(frame.start, frame.end)
        if asked_us is not None and self.dialogue.in_order:
            whole = since_answered(whole, asked_us, self._latency_us)
        elif asked_us is not None:
            whole = after_question(whole, self._stamper.begun_by(frame.start), asked_us)
        buffered = frame.kind == self._reader.buffered
        if buffered:
            whole = whole[0] - BUFFERED_US, whole[1]
        pending = []
        for place in places:
            key, attrs, ts_ms, read_count = found[place]
            window = whole
            if not buffered and ts_ms is not None and read_count == 1:
                window = self._stamper.narrowed(whole, ts_ms)
            one = PendingReading(self.stream, "tag", window[0], window[1], key, None, None, attrs)
            reader_us = self.dialogue.reader_us(frame, place)
            if reader_us is not None:
                one.reader_us = reader_us
            pending.append(one)
        return pending

    def _measured(self, frame: "Frame", observe: "Any") -> "list[PendingReading]":
        measured = observe(frame, self._names[0], self._names[1])
        if measured is None:
            self.complaint = f"a line without {self._names[1] or self._names[0]}"
            return []
        earliest_us, latest_us = self._stamper.window(frame.start, frame.end)
        return [
            PendingReading(
                self.stream, "measure", earliest_us, latest_us, measured.key, measured.value, self.unit, measured.attrs
            )
        ]
