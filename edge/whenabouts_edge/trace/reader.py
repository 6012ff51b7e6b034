"""Opens a trace of any known format and yields its records lazily.

The first line determines the format, not the file name. A torn last line is the result of a power cut: it is dropped
and reported in `warnings`; the records before it are good. Any other line that does not follow its format is a
TraceError, because the lines after it cannot be trusted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Protocol

from whenabouts_edge.trace.format import Head, LineError, Record, TraceError, decode_head, decode_record
from whenabouts_edge.trace.lines import Line, read_lines
from whenabouts_edge.trace.spy import SpyParser, looks_like_spy
from whenabouts_edge.trace.transport import TransportParser, looks_like_transport

Format = Literal["whenabouts", "spy", "transport"]

WARNINGS_MAX = 100
"""Number of warnings kept; further ones are counted in the last one."""


class Parser(Protocol):
    """Converts lines of one format to records; a LineError describes a malformed line."""

    def feed(self, line: Line) -> list[Record]: ...
    def end(self) -> list[Record]: ...


class Trace:
    """A trace file. `records()` may be called repeatedly; each call reads the file from its beginning.

    `warnings` belongs to the latest pass and is complete when that pass has ended: a torn last line, a clock that was
    set back.
    """

    def __init__(self, path: Path, format: Format, head: Head) -> None:
        self.path = path
        self.format = format
        self.head = head
        self.warnings: list[str] = []
        self._warnings_more = 0

    def records(self) -> Iterator[Record]:
        """The records in the order of the file.

        Raises:
            OSError: the file cannot be read.
            TraceError: a line does not follow the format.
        """
        self.warnings = []
        self._warnings_more = 0
        parser = self._parser()
        for line in read_lines(self.path):
            try:
                complete = parser.feed(line)
            except LineError as error:
                if not line.torn:
                    raise TraceError(
                        f"{self.path} line {line.number}: {error}; the records before it are good"
                    ) from None
                self._warn(
                    f"line {line.number}: the file ends inside it (power cut?); {len(line.data)} bytes are dropped"
                )
                break
            yield from complete
        yield from parser.end()

    def _parser(self) -> Parser:
        if self.format == "spy":
            return SpyParser(self._warn)
        if self.format == "transport":
            return TransportParser()
        return _OwnParser()

    def _warn(self, text: str) -> None:
        if len(self.warnings) < WARNINGS_MAX:
            self.warnings.append(text)
            return
        self._warnings_more += 1
        self.warnings[-1] = f"{self._warnings_more + 1} more warnings"


def open_trace(path: str | Path) -> Trace:
    """The trace in a file: in our own format, or written by pyserial's spy:// or by hs-mercury-api.

    Raises:
        OSError: the file cannot be read.
        TraceError: it is empty, in none of these formats, or its head is damaged.
    """
    path = Path(path)
    first = next(read_lines(path), None)
    if first is None:
        raise TraceError(
            f"{path}: found an empty file, expected a trace; the capture was cut off before its first line"
        )
    if looks_like_spy(first.data):
        return Trace(path, "spy", Head(port="unknown"))
    if looks_like_transport(first.data):
        return Trace(path, "transport", Head(port="unknown"))
    if b'"whenabouts_trace"' not in first.data:
        expected = 'a head {"whenabouts_trace":1,...}, a spy:// line or a transport head line'
        raise TraceError(f"{path} line 1: found {first.data[:60]!r}, expected {expected}")
    try:
        return Trace(path, "whenabouts", decode_head(first.data))
    except LineError as error:
        raise TraceError(f"{path} line 1: {error}") from None


class _OwnParser:
    def feed(self, line: Line) -> list[Record]:
        if line.number == 1:
            decode_head(line.data)
            return []
        return [decode_record(line.data)]

    def end(self) -> list[Record]:
        return []
