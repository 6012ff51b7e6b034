"""Records the data of a port as a trace, one flushed line a record, so that kill -9 loses at most the last line.

A power cut can lose data that the operating system had not yet written; the recorder does not force each line to the
card, because that would wear it out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from whenabouts_edge.readers.port import Chunk, PortError, Sent
from whenabouts_edge.trace.format import Head, Record, encode_head, encode_record

TRACE_BYTES_MAX = 1 << 30
"""Default size limit of one trace file: the record that would exceed it is not written, and the capture ends with a
message."""

PAIR_TRIES = 5
"""Clock pairs tried for the head; the one read in the shortest time is used."""

Reason = Literal["stopped", "size limit", "port lost", "disk"]


class Source(Protocol):
    """Source of a capture: a Port, or in tests any object that gives chunks."""

    @property
    def empty_ns(self) -> int: ...
    def read(self) -> Chunk | None: ...


class Sink(Protocol):
    """Destination of the lines: a file opened for binary writing."""

    def write(self, data: bytes, /) -> int | None: ...
    def flush(self) -> None: ...


class SizeLimitError(Exception):
    """A trace has reached its size limit; the record was not written."""


class Recorder:
    """Writes a head and then records, in the order of the calls; the agent can record its own dialogue with it.

    Raises:
        OSError: the sink cannot take a line, from any method.
        SizeLimitError: the line would exceed `trace_bytes_max`, from any method.
    """

    def __init__(self, sink: Sink, head: Head, trace_bytes_max: int = TRACE_BYTES_MAX) -> None:
        self._sink = sink
        self._trace_bytes_max = trace_bytes_max
        self.trace_bytes = 0
        self.rx_bytes = 0
        self.chunks = 0
        self.last_ns = head.monotonic_ns
        self._write(encode_head(head))

    def rx(self, chunk: Chunk) -> None:
        """Record a chunk that was read."""
        self._record(Record("rx", chunk.after_ns, chunk.before_ns, chunk.data))
        self.rx_bytes += len(chunk.data)
        self.chunks += 1

    def tx(self, data: bytes, sent: Sent) -> None:
        """Record bytes that were written."""
        self._record(Record("tx", sent.entry_ns, sent.return_ns, data))

    def silence(self, until_ns: int) -> None:
        """Record that nothing arrived between the last record and this moment."""
        if until_ns > self.last_ns:
            self._record(Record("rx", self.last_ns, until_ns))

    def error(self, text: str, entry_ns: int, return_ns: int) -> None:
        """Record that the port failed between these moments."""
        self._record(Record("error", entry_ns, return_ns, error=text))

    def _record(self, record: Record) -> None:
        self._write(encode_record(record))
        self.last_ns = max(self.last_ns, record.return_ns)

    def _write(self, line: bytes) -> None:
        if self.trace_bytes + len(line) > self._trace_bytes_max:
            problem = f"the trace has {self.trace_bytes} bytes, its limit is {self._trace_bytes_max}"
            raise SizeLimitError(f"{problem}; continue with another file or a higher limit")
        self._sink.write(line)
        self._sink.flush()
        self.trace_bytes += len(line)


@dataclass(frozen=True, slots=True)
class Captured:
    """Result of a capture: the `reason` for its end, with the error's text if there was one."""

    reason: Reason
    error: str
    rx_bytes: int
    chunks: int
    trace_bytes: int
    duration_ns: int


def clock_pair(monotonic_ns: Callable[[], int], wall_us: Callable[[], int]) -> tuple[int, int]:
    """(monotonic nanoseconds, wall microseconds) of one moment, as close together as a few tries allow."""
    tries = []
    for _ in range(PAIR_TRIES):
        before_ns = monotonic_ns()
        now_us = wall_us()
        after_ns = monotonic_ns()
        tries.append((after_ns - before_ns, (before_ns + after_ns) // 2, now_us))
    _, pair_ns, pair_us = min(tries)
    return pair_ns, pair_us


def capture(
    port: Source,
    sink: Sink,
    monotonic_ns: Callable[[], int],
    wall_us: Callable[[], int],
    stop: Callable[[], bool],
    *,
    settings: Head,
    trace_bytes_max: int = TRACE_BYTES_MAX,
    progress: Callable[[Recorder], None] | None = None,
) -> Captured:
    """Records the port's data until `stop()` returns True, the port is lost, the size limit is reached or the disk is
    full.

    Every end but a full disk or the size limit writes a closing record: the silence up to the end, or the port's error.

    Args:
        settings: port name and settings for the head; this function sets its two clock fields.
        progress: called after each poll.
    """
    pair_ns, pair_us = clock_pair(monotonic_ns, wall_us)
    head = Head(
        port=settings.port,
        monotonic_ns=pair_ns,
        wall_us=pair_us,
        baud=settings.baud,
        bytesize=settings.bytesize,
        parity=settings.parity,
        stopbits=settings.stopbits,
        clock_bound_us=settings.clock_bound_us,
    )
    recorder: Recorder | None = None
    reason: Reason = "stopped"
    text = ""
    try:
        recorder = Recorder(sink, head, trace_bytes_max)
        reason, text = _record_until(port, recorder, monotonic_ns, stop, progress)
    except SizeLimitError as error:
        reason, text = "size limit", str(error)
    except OSError as error:
        advice = "free space and capture again; all records before this are good"
        reason, text = "disk", f"cannot write the trace: {error}; {advice}"
    counts = (recorder.rx_bytes, recorder.chunks, recorder.trace_bytes) if recorder is not None else (0, 0, 0)
    return Captured(reason, text, *counts, monotonic_ns() - pair_ns)


def _record_until(
    port: Source,
    recorder: Recorder,
    monotonic_ns: Callable[[], int],
    stop: Callable[[], bool],
    progress: Callable[[Recorder], None] | None,
) -> tuple[Reason, str]:
    while not stop():
        try:
            chunk = port.read()
        except PortError as error:
            recorder.error(str(error), port.empty_ns, monotonic_ns())
            return "port lost", str(error)
        if chunk is not None:
            recorder.rx(chunk)
        if progress is not None:
            progress(recorder)
    recorder.silence(port.empty_ns)
    return "stopped", ""
