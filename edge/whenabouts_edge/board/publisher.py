"""From the flash log to the broker: which message to publish next, which the broker took, when to send all again.

A message is *published* when the broker has taken it, *landed* when the cloud has confirmed it; only then does the flash
log forget it. Messages that were published but do not land are published again after a time that doubles, and on every
new connection: the broker may have lost them.
"""

from whenabouts_edge.backoff import Backoff
from whenabouts_edge.board import tidy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_edge.board.flash_log import FlashLog
    from whenabouts_edge.board.mqtt import Mqtt

WINDOW = 4  # messages on their way
WAITING_BYTES_MAX = 512  # not taken by the connection; then no further message is read: each is a block of memory
RESEND_US_MAX = 600_000_000


class Publisher:
    """Publishes one flash log. resend_us: least time without a confirmation after which all is sent again. published: a
    broker once took every message before this position.
    """

    def __init__(self, flash_log: "FlashLog", resend_us: int) -> None:
        self._flash_log = flash_log
        self._backoff = Backoff(resend_us, RESEND_US_MAX)
        self._resend_us = self._backoff.pause_us(0)
        self._cursor: tuple[int, int] | None = None
        self._on_way: list[list[object]] = []  # packet id (0 when taken), position behind the message
        self._quiet_since_us: int | None = None
        self.published = (0, 0)
        self._reach: dict[int, int] = {}
        self.resends = 0

    def restart(self) -> None:
        """Begin again with the oldest message: on a new connection the fate of the messages in flight is unknown."""
        self._cursor, self._on_way, self._quiet_since_us = None, [], None

    def step(self, mqtt: "Mqtt", topic: str, now_us: int) -> None:
        """Publish as many messages as there is room for."""
        if self._is_overdue(now_us):
            self.restart()
            self._resend_us = self._backoff.pause_us(0)
            self.resends += 1
        while len(self._on_way) < WINDOW and mqtt.room and mqtt.waiting_bytes < WAITING_BYTES_MAX:
            tidy()
            message = self._flash_log.after(self._cursor)
            if message is None:
                break
            packet_id = mqtt.publish(topic, message.payload, now_us)
            self._on_way.append([packet_id, message.next])
            self._cursor = message.next
            self._reach[message.boot] = max(message.last_seq, self.reach(message.boot))
            if self._quiet_since_us is None:
                self._quiet_since_us = now_us

    def reach(self, boot: int) -> int:
        """The highest number of a boot that was handed to a connection since the start, -1 for none."""
        return self._reach.get(boot, -1)

    def taken(self, packet_id: int) -> None:
        """Note that the broker took a message, maybe one of these."""
        for entry in self._on_way:
            if entry[0] == packet_id:
                entry[0] = 0
        while self._on_way and self._on_way[0][0] == 0:
            behind: tuple[int, int] = self._on_way.pop(0)[1]  # type: ignore[assignment]
            self.published = max(self.published, behind)

    def landed(self, now_us: int) -> None:
        """Note that the cloud confirmed more messages."""
        self._backoff.reset()
        self._resend_us = self._backoff.pause_us(0)
        self._quiet_since_us = now_us if self._flash_log.readings else None

    def is_published(self, end: "tuple[int, int]") -> bool:
        """Return True if a broker has taken every message before this position, or all of them have landed."""
        if self.published >= end:
            return True
        oldest = self._flash_log.after(None)
        return oldest is None or oldest.position >= end

    def _is_overdue(self, now_us: int) -> bool:
        if self._on_way or not self._flash_log.readings or self._quiet_since_us is None:
            return False
        return now_us - self._quiet_since_us >= self._resend_us
