"""From drafts to numbered messages in the ring, a commit of flash for many of them; what finds no room is told by a `gap`.

A commit takes what has gathered for commit_us, or BATCH_MAX readings at once: every write of flash wears it, and stops
the board for a while. Readings get their number and their UTC stamp as they are stored, with the newest that is known of the
clock; so the first readings after a start wait for the first answer of a time server, in memory, as long as there is room.
"""

from whenabouts_edge.board.reader import Draft
from whenabouts_edge.board.ring import MESSAGE_BYTES_MAX
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.reading import Reading
from whenabouts_protocol.wire import encode_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from whenabouts_edge.board.ring import Ring
    from whenabouts_edge.board.sntp import Clock

BATCH_MAX = 32
WAITING_MAX = 96  # drafts in memory, some 20 kB on a board; more are refused
UNDATED_US = 600_000_000  # drafts wait for the first answer of a time server no longer
RETRY_US = 1_000_000  # between attempts to tell a gap


class Store:
    """accepted, settled: drafts that came, and those that are stored, or refused and counted in `refused`. faults: failed
    writes of flash.
    """

    def __init__(self, site: str, gateway: str, ring: "Ring", clock: "Clock", commit_us: int) -> None:
        self._site, self._gateway, self._ring, self._clock, self._commit_us = site, gateway, ring, clock, commit_us
        self._waiting: list[Draft] = []
        self._since_us = 0  # when the oldest of them came
        self._gaps: dict[str, Draft] = {}
        self._retry_us: int | None = None
        self.accepted = self.settled = self.refused = self.faults = 0

    @property
    def gap_open(self) -> bool:
        """Whether readings were refused of which no gap reading tells yet."""
        return bool(self._gaps)

    def accept(self, drafts: "list[Draft]", now_us: int) -> None:
        """Take drafts, in the order of their port; what finds no room is refused."""
        room = WAITING_MAX - len(self._waiting)
        if drafts and not self._waiting:
            self._since_us = now_us
        self.accepted += len(drafts)
        self._waiting += drafts[:room]
        self._refuse(drafts[room:])

    def step(self, now_us: int, flush: bool = False) -> None:
        """Store at most one message if it is time; flush: whatever waits, now."""
        if self._waiting and (flush or self._is_due(now_us)):
            count = min(BATCH_MAX, len(self._waiting))
            self._store(self._waiting[:count], now_us)
            self._waiting = self._waiting[count:]
            self._since_us = now_us
        elif self._gaps and not self._waiting and (self._retry_us is None or flush or now_us >= self._retry_us):
            self._store([], now_us)

    def _is_due(self, now_us: int) -> bool:
        if self._clock.sample is None:
            return len(self._waiting) >= WAITING_MAX or now_us - self._waiting[0].latest_us >= UNDATED_US
        return len(self._waiting) >= BATCH_MAX or now_us - self._since_us >= self._commit_us

    def _store(self, drafts: "list[Draft]", now_us: int) -> None:
        """Store these behind the gaps that are to be told, in as few messages as hold them."""
        gaps = [self._gaps[stream] for stream in sorted(self._gaps)]
        self._retry_us = now_us + RETRY_US
        wanted = gaps + drafts
        count = _fitting(wanted)
        while wanted:
            message = self._message(wanted[:count], now_us)
            if message is None and count > 1:
                count = count // 2
                continue
            if message is None or not self._append(count, message):
                self._refuse([draft for draft in wanted[:count] if draft.kind != "gap"])
            else:
                for draft in wanted[:count]:
                    if draft.kind == "gap":
                        self._gaps.pop(draft.stream)
                    else:
                        self.settled += 1
            wanted = wanted[count:]
            count = _fitting(wanted)

    def _message(self, drafts: "list[Draft]", now_us: int) -> "bytes | None":
        """The message of these with the next numbers; None if it is too long or one of them has no wire form."""
        first = self._ring.next_seq
        try:
            message = encode_batch([self._reading(draft, first + n, now_us) for n, draft in enumerate(drafts)])
        except (WireError, ValueError):
            return None
        return message if len(message) <= MESSAGE_BYTES_MAX else None

    def _reading(self, draft: Draft, seq: int, now_us: int) -> Reading:
        t_min, t_max = self._clock.to_utc(draft.earliest_us, draft.latest_us)
        return Reading(
            site=self._site,
            gateway=self._gateway,
            boot=self._ring.boot,
            seq=seq,
            stream=draft.stream,
            kind=draft.kind,
            key=draft.key,
            value=draft.value,
            unit=draft.unit,
            attrs=draft.attrs,
            t_min=t_min,
            t_max=t_max,
            clock_state=self._clock.state(now_us),
            vclock=(0,),
        )

    def _append(self, count: int, message: bytes) -> bool:
        try:
            return self._ring.append(count, message) is not None
        except OSError:
            self.faults += 1
            return False

    def _refuse(self, drafts: "list[Draft]") -> None:
        self.refused += len(drafts)
        self.settled += len(drafts)
        for draft in drafts:
            gap = self._gaps.get(draft.stream)
            if gap is None:
                gap = Draft(draft.stream, "gap", draft.earliest_us, draft.latest_us, value=0, unit="{readings}")
                self._gaps[draft.stream] = gap
            gap.value += 1
            gap.earliest_us = min(gap.earliest_us, draft.earliest_us)
            gap.latest_us = max(gap.latest_us, draft.latest_us)


def _fitting(drafts: "list[Draft]") -> int:
    """How many of the first of these may fit in a message by their texts alone: a board cannot encode more to find out."""
    size = 0
    for n, draft in enumerate(drafts):
        texts = [draft.key, draft.value]
        for name in sorted(draft.attrs):
            texts += [name, draft.attrs[name]]
        size += sum([len(text) for text in texts if type(text) is str])
        if n and size > MESSAGE_BYTES_MAX:
            return n
    return len(drafts)
