"""From drafts to numbered messages in the ring, a commit of flash for many of them; what finds no room is told by a `gap`.

A commit takes what has gathered for commit_us, or BATCH_MAX readings at once: every write of flash wears it, and stops
the board for a while. Readings get their number and their UTC stamp as they are stored, with the newest that is known of the
clock; so the first readings after a start wait for the first answer of a time server, in memory, as long as there is room.
"""

from whenabouts_edge.board.draft import Draft
from whenabouts_edge.board.ring import MESSAGE_BYTES_MAX
from whenabouts_protocol.errors import WireError
from whenabouts_protocol.reading import Reading
from whenabouts_protocol.wire import encode_batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_edge.board.ring import Ring
    from whenabouts_edge.board.sntp import Clock

BATCH_MAX = 32
WAITING_MAX = 96  # drafts in memory, some 20 kB on a board; more are refused
UNDATED_US = 600_000_000  # drafts wait for the first answer of a time server no longer
RETRY_US = 1_000_000  # between attempts to tell a gap


class Store:
    """accepted, settled: drafts that found room in memory, and those of them that are stored, or refused and counted in
    `refused`, in the same order. faults: failed writes of flash; fails: the last one did. on_stored: called with the drafts
    of a message that is stored and the readings that they became; it may have more accepted.
    """

    def __init__(self, site: str, gateway: str, ring: "Ring", clock: "Clock", commit_us: int) -> None:
        self._site, self._gateway, self._ring, self._clock, self._commit_us = site, gateway, ring, clock, commit_us
        self._waiting: list[Draft] = []
        self._since_us = 0  # when the oldest of them came
        self._gaps: dict[str, Draft] = {}
        self._retry_us: int | None = None
        self.accepted = self.settled = self.refused = self.faults = 0
        self.fails = False
        self.on_stored: Any = None

    @property
    def gap_open(self) -> bool:
        """Whether readings were refused of which no gap reading tells yet."""
        return bool(self._gaps)

    def accept(self, drafts: "list[Draft]", now_us: int) -> None:
        """Take drafts, in the order of their port; what finds no room is refused."""
        taken = drafts[: WAITING_MAX - len(self._waiting)]
        if taken and not self._waiting:
            self._since_us = now_us
        self.accepted += len(taken)
        self._waiting += taken
        self._refuse(drafts[len(taken) :])

    def step(self, now_us: int, flush: bool = False) -> None:
        """Store at most one message if it is time; flush: whatever waits, now."""
        if self._waiting and (flush or self.is_due(now_us)):
            count = min(BATCH_MAX, len(self._waiting))
            self._store(self._waiting[:count], now_us)
            self._waiting = self._waiting[count:]
            self._since_us = now_us
        elif self._gaps and not self._waiting and (self._retry_us is None or flush or now_us >= self._retry_us):
            self._store([], now_us)

    def is_due(self, now_us: int) -> bool:
        """Whether it is time to store what waits."""
        if not self._waiting:
            return False
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
            part = wanted[:count]
            readings = self._readings(part, now_us)
            message = None if readings is None else self._encoded(readings)
            if message is None and count > 1:
                count = count // 2
                continue
            if message is None or not self._append(count, message):
                lost = [draft for draft in part if draft.kind != "gap"]
                self.settled += len(lost)
                self._refuse(lost)
            else:
                self._count_stored(part)
                if self.on_stored is not None:
                    self.on_stored(part, readings)
            wanted = wanted[count:]
            count = _fitting(wanted)

    def _count_stored(self, drafts: "list[Draft]") -> None:
        for draft in drafts:
            if draft.kind == "gap":
                self._gaps.pop(draft.stream)
            else:
                self.settled += 1

    def _readings(self, drafts: "list[Draft]", now_us: int) -> "list[Reading] | None":
        """These with the next numbers; None if one of them is no reading."""
        first = self._ring.next_seq
        try:
            return [self._reading(draft, first + n, now_us) for n, draft in enumerate(drafts)]
        except ValueError:
            return None

    def _encoded(self, readings: "list[Reading]") -> "bytes | None":
        """Their message; None if it is too long or one of them has no wire form."""
        try:
            message = encode_batch(readings)
        except WireError:
            return None
        return message if len(message) <= MESSAGE_BYTES_MAX else None

    def _reading(self, draft: Draft, seq: int, now_us: int) -> Reading:
        if draft.stamp is None:
            t_min, t_max = self._clock.to_utc(draft.earliest_us, draft.latest_us)
            clock_state = self._clock.state(now_us)
        else:
            t_min, t_max, clock_state = draft.stamp
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
            clock_state=clock_state,
            vclock=draft.vclock,
        )

    def _append(self, count: int, message: bytes) -> bool:
        try:
            stored = self._ring.append(count, message) is not None
        except OSError:
            self.faults += 1
            self.fails = True
            return False
        self.fails = False
        return stored

    def _refuse(self, drafts: "list[Draft]") -> None:
        self.refused += len(drafts)
        for draft in drafts:
            gap = self._gaps.get(draft.stream)
            if gap is None:
                gap = Draft(draft.stream, "gap", draft.earliest_us, draft.latest_us, value=0, unit="{readings}")
                gap.vclock = draft.vclock
                self._gaps[draft.stream] = gap
            gap.value += 1
            gap.earliest_us = min(gap.earliest_us, draft.earliest_us)
            gap.latest_us = max(gap.latest_us, draft.latest_us)
            if draft.stamp is not None:
                t_min, t_max, clock_state = gap.stamp or draft.stamp
                gap.stamp = min(t_min, draft.stamp[0]), max(t_max, draft.stamp[1]), clock_state


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
