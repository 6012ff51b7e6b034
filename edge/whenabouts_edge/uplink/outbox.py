"""The messages to publish next: the order of the spool, a window of messages in flight, repeats.

A message is *published* when the broker has taken it, *landed* when the cloud has confirmed it; only then does it leave
the spool. Messages that were published but do not land, or that the broker refused, are published again after a time that
doubles, and after every reconnection: the broker may have lost them. Pure: the driver owns connection, spool and clock.
"""

from collections import OrderedDict

from whenabouts_edge.store.spool import Message

MAX_IN_FLIGHT = 20  # sent but not taken by the broker yet
MAX_UNLANDED = 2000  # taken by the broker but not landed: bounds what a broker must keep while the cloud is away
RESEND_S_MAX = 600.0

Position = tuple[int, int]


class Outbox:
    """Order and repeats of publishing. resend_s: time without a confirmation after which all unlanded is sent again.

    window: messages that may be on their way to the broker.
    """

    def __init__(self, resend_s: float) -> None:
        self._resend_s_min = self._resend_s = resend_s
        self._quiet_since: float | None = None
        self._on_way: OrderedDict[Position, bool] = OrderedDict()  # position -> taken by the broker
        self._refused: set[Position] = set()  # of those on their way, not permitted by the broker
        self._reach: dict[int, int] = {}  # by boot, the highest number ever handed to a connection
        self._cursor: Position | None = None
        self._unlanded: dict[Position, int] = {}  # position -> last number, of messages sent but not landed
        self.published: Position | None = None  # everything up to here was taken by the broker at least once
        self.resends = 0
        self.window = MAX_IN_FLIGHT

    @property
    def cursor(self) -> Position | None:
        """Position of the last message sent, behind which the next one stands; None to begin with the oldest."""
        return self._cursor

    def room(self) -> int:
        """Number of messages that may be handed to the connection now."""
        waiting = sum(not taken for taken in self._on_way.values())
        return max(0, min(self.window - waiting, MAX_UNLANDED - len(self._unlanded)))

    def sent(self, message: Message, now_s: float) -> None:
        """Note that the message was handed to the connection."""
        self._on_way[message.position] = False
        self._cursor = message.position
        self._unlanded[message.position] = message.last_seq
        self._reach[message.boot] = max(message.last_seq, self.reach(message.boot))
        if self._quiet_since is None:
            self._quiet_since = now_s

    def reach(self, boot: int) -> int:
        """The highest number of a boot that was handed to a connection since the start, -1 for none."""
        return self._reach.get(boot, -1)

    def refused(self, position: Position) -> None:
        """Note that the broker did not take the message; it is sent again as one that does not land.

        If it has landed, the broker took an earlier copy.
        """
        if position in self._on_way:
            self._refused.add(position)
        if position not in self._unlanded:
            self.taken(position)

    def taken(self, position: Position) -> None:
        """Note that the broker has taken the message."""
        self._refused.discard(position)
        if position in self._on_way:
            self._on_way[position] = True
        while self._on_way:
            first, done = next(iter(self._on_way.items()))
            if not done:
                break
            del self._on_way[first]
            if self.published is None or first > self.published:
                self.published = first

    def landed(self, boot: int, seq: int, now_s: float) -> None:
        """Note that the cloud holds every reading of boot up to seq."""
        done = [p for p, last_seq in self._unlanded.items() if p[0] == boot and last_seq <= seq]
        for position in done:
            del self._unlanded[position]
            if position in self._refused:
                self.taken(position)
        if done:
            self._resend_s = self._resend_s_min
            self._quiet_since = now_s if self._unlanded else None

    def restart(self) -> None:
        """Begin again with the oldest message: after a reconnection the fate of the messages in flight is unknown."""
        self._on_way.clear()
        self._refused.clear()
        self._cursor = None
        self._unlanded.clear()
        self._quiet_since = None

    def overdue(self, now_s: float) -> bool:
        """Return True if the cloud has confirmed nothing for too long; the next message is then the oldest again."""
        if self._quiet_since is None or now_s - self._quiet_since < self._resend_s:
            return False
        if any(not taken and position not in self._refused for position, taken in self._on_way.items()):
            return False
        patience_s = min(RESEND_S_MAX, self._resend_s * 2)
        self.restart()
        self._resend_s = patience_s
        self.resends += 1
        return True
