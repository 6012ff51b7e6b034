"""Messages received and not processed yet: a queue for each sender, served in turns, with limits for each and in all.

A turn is worth TURN_BYTES (deficit round robin, Shreedhar and Varghese 1996): with turns of one message, a sender of those
that take long would leave others as many messages a second as its own.

A sender that floods fills its own queue; what it sends beyond is refused at once, and the others' messages pass. Refused
messages were not confirmed to the gateway, so its spool keeps them and sends them again.
"""

import threading
import time
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass
from typing import Generic, TypeVar

MAX_SENDER_MESSAGES = 2000  # as many as an agent publishes without a confirmation
MAX_SENDER_BYTES = 8 << 20
MAX_MESSAGES = 8000
MAX_BYTES = 32 << 20
OVERHEAD_BYTES = 500  # of a queued message beside its payload
TURN_BYTES = 16 << 10  # some 25 messages of a few readings; a longer message takes several turns
MAX_NAMED = 1000  # senders whose refused messages are counted by name; others are counted together

Item = TypeVar("Item")


@dataclass(slots=True)
class _Queue(Generic[Item]):
    items: deque[tuple[Item, int]]
    size: int = 0  # bytes
    credit: int = 0  # bytes that it may still take in its turns


class Inbox(Generic[Item]):
    """Filled by one thread, emptied by another."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str, _Queue[Item]] = OrderedDict()  # those that hold a message; the first is next
        self._messages = self._bytes = 0
        self._changed = threading.Condition()
        self._refused: Counter[str] = Counter()

    def put(self, sender: str, item: Item, payload_bytes: int, timeout_s: float) -> bool | None:
        """Add a message of a sender. True: added. False: refused, as the sender holds more than its share. None: all are
        at the limit together, and there was no room within timeout_s.
        """
        size = payload_bytes + OVERHEAD_BYTES
        with self._changed:
            queue = self._queues.get(sender)
            if queue is not None and self._beyond_share(queue, size):
                self._refused[sender if sender in self._refused or len(self._refused) < MAX_NAMED else ""] += 1
                return False
            if not self._changed.wait_for(lambda: self._has_room(size), timeout_s):
                return None
            if sender not in self._queues:
                self._queues[sender] = _Queue(deque())
            queue = self._queues[sender]
            queue.items.append((item, size))
            queue.size += size
            self._messages += 1
            self._bytes += size
            self._changed.notify_all()
            return True

    def get(self, timeout_s: float = 0.0) -> Item | None:
        """Take the oldest message of the sender whose turn it is; None if none comes within timeout_s."""
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            while not self._queues:
                if not self._changed.wait(max(0.0, deadline_s - time.monotonic())):
                    return None
            sender, queue = self._next()
            item, size = queue.items.popleft()
            queue.size -= size
            queue.credit -= size
            if not queue.items:
                del self._queues[sender]
            self._messages -= 1
            self._bytes -= size
            self._changed.notify_all()
            return item

    def take_refused(self) -> dict[str, int]:
        """Messages refused since the last call, by sender; those of senders beyond MAX_NAMED under an empty name."""
        with self._changed:
            refused, self._refused = self._refused, Counter()
        return refused

    def _next(self) -> tuple[str, _Queue[Item]]:
        """The sender whose turn it is; one whose turns are not worth its next message yet goes to the end."""
        while True:
            sender, queue = next(iter(self._queues.items()))
            if queue.items[0][1] <= queue.credit:
                return sender, queue
            queue.credit += TURN_BYTES
            self._queues.move_to_end(sender)

    def _has_room(self, size: int) -> bool:
        return self._messages < MAX_MESSAGES and self._bytes + size <= MAX_BYTES

    def _beyond_share(self, queue: _Queue[Item], size: int) -> bool:
        """True at the limit of one sender, or when all is full and this one holds more than an equal share of it."""
        if len(queue.items) >= MAX_SENDER_MESSAGES or queue.size + size > MAX_SENDER_BYTES:
            return True
        senders = len(self._queues)
        return not self._has_room(size) and (
            len(queue.items) * senders >= MAX_MESSAGES or queue.size * senders >= MAX_BYTES
        )
