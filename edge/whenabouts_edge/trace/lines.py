"""Lines of a trace file, one at a time; handles file ends damaged by a power cut.

A power cut tears the last line, and some file systems fill the rest of the last block with zero bytes. Such a line is
marked as torn, so that a format can treat it as the end of the file. A line that is too long raises an error before it
is in memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from whenabouts_edge.trace.format import LINE_BYTES_MAX, TraceError

_BLOCK_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its line end; `torn` if the file ends inside it (the last line has no line feed, or zero bytes
    follow).
    """

    number: int
    data: bytes
    torn: bool


def read_lines(path: Path) -> Iterator[Line]:
    """The lines of a file in order; at most the last one is torn.

    Raises:
        OSError: the file cannot be read.
        TraceError: a line is longer than LINE_BYTES_MAX, or holds zero bytes that are not the file's tail.
    """
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            content, zero, rest = raw.partition(b"\0")
            if zero:
                if rest.strip(b"\0") or not _zeros_follow(file):
                    raise TraceError(
                        f"{path} line {number}: found zero bytes inside, expected text; the file is damaged"
                    )
                yield Line(number, content, torn=True)
                return
            if len(raw) > LINE_BYTES_MAX:
                raise TraceError(
                    f"{path} line {number}: found more than {LINE_BYTES_MAX} bytes, expected a shorter line"
                )
            yield Line(number, raw.rstrip(b"\r\n"), torn=not raw.endswith(b"\n"))


def _zeros_follow(file: BinaryIO) -> bool:
    while block := file.read(_BLOCK_BYTES):
        if block.strip(b"\0"):
            return False
    return True
