"""Dead letters: messages that could not be processed, kept with their reason, so that no message is lost silently.

One JSON object a line: landed_us, topic, reason, text, bytes (length) and payload (base64, cut at MAX_PAYLOAD_BYTES). The
files have limits (`dead_letter_files`), and of all of them one sender may fill MAX_SENDER_BYTES. Further letters are only
counted, so that a hostile sender neither fills the disk nor hides the letters of others.
"""

import base64
import contextlib
import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

from whenabouts_cloud.ingest.dead_letter_files import MAX_LINE_BYTES, LetterFiles, Place
from whenabouts_protocol.logs import Log

MAX_PAYLOAD_BYTES = 65536
MAX_SENDER_BYTES = 16 << 20
MAX_SENDERS = 1000  # whose letters are added up by name; those of others share one sum
MAX_TOPIC_CHARS = 512
MAX_TEXT_CHARS = 512

log = Log(__name__)


class DeadLetters:
    """Appends to the dead letters of one landing."""

    def __init__(self, files: LetterFiles) -> None:
        self._files = files
        self._buffer: list[tuple[str, bytes]] = []  # sender, line
        self._used = {name: _bytes_by_sender(files.lines(name)) for name in files.names()}
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
        names = set(self._files.names())
        self._used = {name: used for name, used in self._used.items() if name in names}  # others were moved away
        while self._buffer:
            place = self._files.place()
            count = self._drop(len(self._buffer)) if place is None else self._append(place)
            self.waiting_bytes -= sum(len(line) for _, line in self._buffer[:count])
            del self._buffer[:count]
        self._waiting.clear()

    def _append(self, place: Place) -> int:
        """Append the next letters, as many as fit into this file; return their number."""
        count = bisect_right(list(accumulate(len(line) for _, line in self._buffer)), place.room)
        self._files.append(place.name, b"".join(line for _, line in self._buffer[:count]))
        used = self._used.setdefault(place.name, Counter())
        for sender, line in self._buffer[:count]:
            used[sender] += len(line)
        return count

    def _share_used(self, sender: str) -> bool:
        """True if there may be no room for a letter of any size in the sender's share."""
        used = sum(of_file[sender] for of_file in self._used.values()) + self._waiting[sender]
        return used + MAX_LINE_BYTES > MAX_SENDER_BYTES

    def _drop(self, count: int) -> int:
        if count and not self.dropped:
            log.warning("dead_letters.full", "further ones are only counted; move the files in _dead away")
        self.dropped += count
        return count

    def _counted(self, sender: str) -> str:
        """The name under which the letters of a sender are added up."""
        counters = (self._waiting, *self._used.values())
        known = any(sender in counter for counter in counters)
        return sender if known or sum(map(len, counters)) < MAX_SENDERS else ""


def _sender(topic: str) -> str:
    """The part of a topic that names a gateway, without the leaf."""
    return topic.rpartition("/")[0]


def _bytes_by_sender(lines: Iterable[bytes]) -> Counter[str]:
    """Bytes of a file by sender; lines that are no letters count for nobody."""
    used: Counter[str] = Counter()
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            name = _sender(json.loads(line)["topic"])
            used[name if name in used or len(used) < MAX_SENDERS else ""] += len(line)
    return used
