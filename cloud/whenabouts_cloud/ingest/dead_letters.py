"""Dead letters: messages that could not be processed, kept with their reason, so that no message is lost silently.

`_dead/letters-<number>.jsonl`, one JSON object a line: landed_us, topic, reason, text, bytes (length) and payload (base64,
cut at MAX_PAYLOAD_BYTES). No file is longer than MAX_FILE_BYTES, and there are at most MAX_FILES; of these one sender may
fill MAX_SENDER_BYTES. Further letters are only counted, so that a hostile sender neither fills the disk nor hides the
letters of others.
"""

import base64
import contextlib
import json
import os
from bisect import bisect_right
from collections import Counter
from itertools import accumulate
from pathlib import Path

from whenabouts_protocol.logs import Log

MAX_PAYLOAD_BYTES = 65536
MAX_FILE_BYTES = 16 << 20
MAX_FILES = 16
MAX_SENDER_BYTES = 16 << 20
MAX_SENDERS = 1000  # whose letters are added up by name; those of others share one sum
MAX_TOPIC_CHARS = 512
MAX_TEXT_CHARS = 512
MAX_LINE_BYTES = 128 << 10  # a letter with all fields at their limit, escaped

log = Log(__name__)


class DeadLetters:
    """Appends to the dead letters of one landing; the folder must exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._buffer: list[tuple[str, bytes]] = []  # sender, line
        self._used = {path: _bytes_by_sender(path) for path in self._files()}
        self._waiting: Counter[str] = Counter()  # bytes in the buffer, by sender
        self.waiting_bytes = 0  # added and not durable yet
        self.reasons: dict[str, int] = {}
        self.dropped = 0

    def add(self, topic: str, payload: bytes, reason: str, text: str, landed_us: int) -> None:
        """Keep a message; durable after the next `flush`. reason is one word and counted; text explains it."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        sender = self._counted(_sender(topic[:MAX_TOPIC_CHARS]))
        if self._share_used(sender):  # before the work of encoding: such senders often send much
            self._drop(1)
            return
        letter = {
            "landed_us": landed_us,
            "topic": topic[:MAX_TOPIC_CHARS],
            "reason": reason,
            "text": text[:MAX_TEXT_CHARS],
            "bytes": len(payload),
            "payload": base64.b64encode(payload[:MAX_PAYLOAD_BYTES]).decode(),
        }
        line = json.dumps(letter).encode() + b"\n"
        self._buffer.append((sender, line))
        self._waiting[sender] += len(line)
        self.waiting_bytes += len(line)

    def flush(self) -> None:
        """Make what was added durable.

        Raises:
            OSError: it cannot be written; what was not written is kept, and the next flush tries again.
        """
        if not self._buffer and not self._used:
            return
        files = self._files()
        self._used = {path: used for path, used in self._used.items() if path in files}  # others were moved away
        while self._buffer:
            path = self._last_file(files)
            count = self._drop(len(self._buffer)) if path is None else self._append(path, files)
            self.waiting_bytes -= sum(len(line) for _, line in self._buffer[:count])
            del self._buffer[:count]
            files = self._files()
        self._waiting.clear()

    def _append(self, path: Path, files: list[Path]) -> int:
        """Append the next letters, as many as fit into this file; return their number."""
        room = MAX_FILE_BYTES - (path.stat().st_size if path in files else 0)
        count = bisect_right(list(accumulate(len(line) for _, line in self._buffer)), room)
        _append(path, b"".join(line for _, line in self._buffer[:count]))
        used = self._used.setdefault(path, Counter())
        for sender, line in self._buffer[:count]:
            used[sender] += len(line)
        return count

    def _share_used(self, sender: str) -> bool:
        """True if there may be no room for a letter of any size in the sender's share."""
        used = sum(of_file[sender] for of_file in self._used.values()) + self._waiting[sender]
        return used + MAX_LINE_BYTES > MAX_SENDER_BYTES

    def _drop(self, count: int) -> int:
        if count and not self.dropped:
            log.warning("dead_letters.full", "further ones are only counted; move its files away", folder=self._folder)
        self.dropped += count
        return count

    def _counted(self, sender: str) -> str:
        """The name under which the letters of a sender are added up."""
        counters = (self._waiting, *self._used.values())
        known = any(sender in counter for counter in counters)
        return sender if known or sum(map(len, counters)) < MAX_SENDERS else ""

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("letters-[0-9][0-9][0-9][0-9].jsonl"))

    def _last_file(self, files: list[Path]) -> Path | None:
        """The file that has room for a letter of any size; None when all are full."""
        if not files:
            return self._folder / "letters-0001.jsonl"
        if files[-1].stat().st_size + MAX_LINE_BYTES <= MAX_FILE_BYTES:
            return files[-1]
        number = int(files[-1].stem.split("-")[1]) + 1
        return self._folder / f"letters-{number:04d}.jsonl" if len(files) < MAX_FILES and number < 10_000 else None


def _sender(topic: str) -> str:
    """The part of a topic that names a gateway, without the leaf."""
    return topic.rpartition("/")[0]


def _bytes_by_sender(path: Path) -> Counter[str]:
    """Bytes of a file by sender; lines that are no letters count for nobody."""
    used: Counter[str] = Counter()
    with path.open("rb") as file:
        for line in file:
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                name = _sender(json.loads(line)["topic"])
                used[name if name in used or len(used) < MAX_SENDERS else ""] += len(line)
    return used


def _append(path: Path, lines: bytes) -> None:
    """Add whole lines, durably, or nothing. Cut off a line that a crash left incomplete: it was never acknowledged."""
    with open(path, "a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(max(0, end - MAX_LINE_BYTES))
            tail = file.read()
            end -= len(tail) - (tail.rfind(b"\n") + 1)
            file.truncate(end)
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise
