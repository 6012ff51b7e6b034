"""What could not be taken, kept with its reason: nothing that the broker delivered is thrown away unseen.

`_dead/letters-<number>.jsonl`, one JSON object a line: landed_us, topic, reason, bytes (length) and payload (base64, cut at
MAX_PAYLOAD_BYTES). A file ends at MAX_FILE_BYTES; when MAX_FILES are full further letters are counted, not kept, so that
a hostile sender cannot fill the disk.
"""

import base64
import json
import os
from pathlib import Path

MAX_PAYLOAD_BYTES = 65536
MAX_FILE_BYTES = 16 << 20
MAX_FILES = 16
MAX_TOPIC_CHARS = 512


class DeadLetters:
    """Appends to the dead letters of one landing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._buffer: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)
        self.reasons: dict[str, int] = {}
        self.dropped = 0

    def add(self, topic: str, payload: bytes, reason: str, text: str, landed_us: int) -> None:
        """Keep a message; durable after the next `flush`. reason is one word, counted; text says more."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        letter = {
            "landed_us": landed_us,
            "topic": topic[:MAX_TOPIC_CHARS],
            "reason": reason,
            "text": text,
            "bytes": len(payload),
            "payload": base64.b64encode(payload[:MAX_PAYLOAD_BYTES]).decode(),
        }
        self._buffer.append(json.dumps(letter) + "\n")

    def flush(self) -> None:
        """Make what was added durable."""
        if not self._buffer:
            return
        files = sorted(self._folder.glob("letters-*.jsonl"))
        path = files[-1] if files else self._folder / "letters-0001.jsonl"
        if path.exists() and path.stat().st_size > MAX_FILE_BYTES:
            if len(files) >= MAX_FILES:
                self.dropped += len(self._buffer)
                self._buffer.clear()
                return
            path = self._folder / f"letters-{int(path.stem.split('-')[1]) + 1:04d}.jsonl"
        with open(path, "a") as file:
            file.writelines(self._buffer)
            file.flush()
            os.fsync(file.fileno())
        self._buffer.clear()
