"""Dead letters: messages that could not be processed, kept with their reason, so that no message is lost silently.

`_dead/letters-<number>.jsonl`, one JSON object a line: landed_us, topic, reason, text, bytes (length) and payload (base64,
cut at MAX_PAYLOAD_BYTES). A file ends at MAX_FILE_BYTES; when MAX_FILES are full further letters are only counted, so that a
hostile sender cannot fill the disk.
"""

import base64
import json
import os
from pathlib import Path

from whenabouts_protocol.logs import Log

MAX_PAYLOAD_BYTES = 65536
MAX_FILE_BYTES = 16 << 20
MAX_FILES = 16
MAX_TOPIC_CHARS = 512
MAX_TEXT_CHARS = 512
MAX_LINE_BYTES = 128 << 10  # a letter with all fields at their limit, escaped

log = Log(__name__)


class DeadLetters:
    """Appends to the dead letters of one landing; the folder must exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._buffer: list[str] = []
        self.reasons: dict[str, int] = {}
        self.dropped = 0

    def add(self, topic: str, payload: bytes, reason: str, text: str, landed_us: int) -> None:
        """Keep a message; durable after the next `flush`. reason is one word and counted; text explains it."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        letter = {
            "landed_us": landed_us,
            "topic": topic[:MAX_TOPIC_CHARS],
            "reason": reason,
            "text": text[:MAX_TEXT_CHARS],
            "bytes": len(payload),
            "payload": base64.b64encode(payload[:MAX_PAYLOAD_BYTES]).decode(),
        }
        self._buffer.append(json.dumps(letter) + "\n")

    def flush(self) -> None:
        """Make what was added durable.

        Raises:
            OSError: it cannot be written; all is kept and the next flush tries again.
        """
        if not self._buffer:
            return
        path = self._file_with_room()
        if path is None:
            if not self.dropped:
                log.warning(
                    "dead_letters.full", "further ones are only counted; move its files away", folder=self._folder
                )
            self.dropped += len(self._buffer)
        else:
            _append(path, "".join(self._buffer).encode())
        self._buffer.clear()

    def _file_with_room(self) -> Path | None:
        files = sorted(self._folder.glob("letters-[0-9][0-9][0-9][0-9].jsonl"))
        if not files:
            return self._folder / "letters-0001.jsonl"
        if files[-1].stat().st_size <= MAX_FILE_BYTES:
            return files[-1]
        number = int(files[-1].stem.split("-")[1]) + 1
        return self._folder / f"letters-{number:04d}.jsonl" if len(files) < MAX_FILES and number < 10_000 else None


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
