"""From pending readings to numbered messages in the flash log, many per commit; a `gap` reports those that found no room.

A commit takes the readings gathered in commit_us, or BATCH_MAX at once: every write of flash wears it, and stops the
board for a while. Readings get their number and their UTC stamp as they are stored, by the newest sample of the clock. So
the first readings after a start wait in memory for the first answer of a time server, as long as there is room.
"""

from whenabouts_edge.board import tidy
from whenabouts_edge.board.batch import Batches
from whenabouts_edge.board.flash_log import MESSAGE_BYTES_MAX
from whenabouts_edge.readers.pending import PendingReading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from whenabouts_edge.board.flash_log import FlashLog
    from whenabouts_edge.board.sntp import Clock
    from whenabouts_protocol.reading import Reading

BATCH_MAX = 32
WAITING_MAX = 72  # pending readings in memory, some 5 kB on a board; more are refused
UNDATED_US = 600_000_000  # longest wait of pending readings for the first answer of a time server
ROW_BYTES_MIN = 8  # of a reading in a message, beside its texts
RETRY_US = 1_000_000  # between attempts to store a gap


class Store:
    """Stores the readings of a board. accepted: pending readings that found room in memory; settled: those of them that
    are stored, or refused and counted in `refused`, in the same order. faults: failed writes of flash; fails: the last
    one failed. on_stored: called with the pending readings of a stored message, the number of the first, and the time; it
    may call `accept`.
    """

    def __init__(self, site: str, gateway: str, flash_log: "FlashLog", clock: "Clock", commit_us: int) -> None:
        self._site, self._gateway, self._flash_log, self._clock, self._commit_us = (
            site,
            gateway,
            flash_log,
            clock,
            commit_us,
        )
        self._batches = Batches(site, gateway, flash_log.boot, MESSAGE_BYTES_MAX)
        self._waiting: list[PendingReading | None] = [None] * WAITING_MAX  # never grows: memory is in small pieces
        self._first = self._count = 0  # of the waiting readings, round the list
        self._since_us = 0  # when the oldest waiting reading came
        self._gaps: dict[str, PendingReading] = {}
        self._retry_us: int | None = None
        self.accepted = self.settled = self.refused = self.faults = 0
        self.fails = False
        self.on_stored: Any = None

    @property
    def gap_open(self) -> bool:
        """True while some refused readings are not yet reported by a stored gap reading."""
        return bool(self._gaps)

    def accept(self, pending_readings: "list[PendingReading]", now_us: int) -> None:
        """Take pending readings, in the order of their port; those that find no room are refused."""
        if pending_readings and not self._count:
            self._since_us = now_us
        for n, pending in enumerate(pending_readings):
            if self._count == WAITING_MAX:
                self._refuse(pending_readings[n:])
                break
            self._waiting[(self._first + self._count) % WAITING_MAX] = pending
            self._count += 1
            self.accepted += 1

    def step(self, now_us: int, flush: bool = False) -> None:
        """Store at most one message if it is time; flush: all that waits, now."""
        if self._count and (flush or self.is_due(now_us)):
            taken = [self._waiting[(self._first + n) % WAITING_MAX] for n in range(min(BATCH_MAX, self._count))]
            self._store(taken, now_us)  # type: ignore[arg-type]  # that many are there
            self._since_us = now_us
        elif self._gaps and not self._count and (self._retry_us is None or flush or now_us >= self._retry_us):
            self._store([], now_us)

    def is_due(self, now_us: int) -> bool:
        """Return True if it is time to store the waiting readings."""
        oldest = self._waiting[self._first]
        if oldest is None:
            return False
        if self._clock.sample is None:
            return self._count == WAITING_MAX or now_us - oldest.latest_us >= UNDATED_US
        return self._count >= BATCH_MAX or now_us - self._since_us >= self._commit_us

    def _store(self, pending_readings: "list[PendingReading]", now_us: int) -> None:
        """Store these, the oldest that wait, behind the open gaps, in as few messages as hold them.

        Each part is settled at once: memory may run out behind it, and what waits is stored again.
        """
        gaps = [self._gaps[stream] for stream in sorted(self._gaps)]
        self._retry_us = now_us + RETRY_US
        wanted = gaps + pending_readings
        count = _fitting(wanted)
        while wanted:
            part = wanted[:count]
            first = self._flash_log.next_seq
            message = self._batches.encoded(part, first, lambda pending: self._stamp(pending, now_us))
            if message is None and count > 1:
                count = count // 2
                continue
            tidy()
            if message is None or not self._append(count, message):
                lost = [pending for pending in part if pending.kind != "gap"]
                self._refuse(lost)
                self._settle(lost)
            else:
                self._settle(part)
                if self.on_stored is not None:
                    self.on_stored(part, first, now_us)
            wanted = wanted[count:]
            count = _fitting(wanted)

    def _settle(self, pending_readings: "list[PendingReading]") -> None:
        """Let go of these, which need not be stored again: the oldest that wait, and gaps. Asks for no memory."""
        for pending in pending_readings:
            if pending.kind == "gap":
                self._gaps.pop(pending.stream)
            else:
                self._waiting[self._first] = None
                self._first = (self._first + 1) % WAITING_MAX
                self._count -= 1
                self.settled += 1

    def reading(self, pending: PendingReading, seq: int, now_us: int) -> "Reading":
        """The numbered reading made of this one. Raises ValueError when it is invalid."""
        pending.site, pending.gateway, pending.stamp = self._site, self._gateway, self._stamp(pending, now_us)
        return pending.numbered(self._flash_log.boot, seq)

    def _stamp(self, pending: PendingReading, now_us: int) -> "tuple[int, int, str]":
        if pending.stamp is not None:
            return pending.stamp
        t_min, t_max = self._clock.to_utc(pending.earliest_us, pending.latest_us)
        return t_min, t_max, self._clock.state(now_us)

    def _append(self, count: int, message: bytes) -> bool:
        try:
            stored = self._flash_log.append(count, message) is not None
        except OSError:
            self.faults += 1
            self.fails = True
            return False
        self.fails = False
        return stored

    def _refuse(self, pending_readings: "list[PendingReading]") -> None:
        self.refused += len(pending_readings)
        for pending in pending_readings:
            pending.lost = True
            gap = self._gaps.get(pending.stream)
            if gap is None:
                gap = PendingReading(
                    pending.stream, "gap", pending.earliest_us, pending.latest_us, value=0, unit="{readings}"
                )
                gap.vclock = pending.vclock
                self._gaps[pending.stream] = gap
            gap.value += 1
            latest_us = max(gap.latest_us, pending.latest_us)
            gap.earliest_us = min(gap.earliest_us, pending.earliest_us)
            gap.width_us = latest_us - gap.earliest_us
            if pending.stamp is not None:
                t_min, t_max, clock_state = gap.stamp or pending.stamp
                gap.stamp = min(t_min, pending.stamp[0]), max(t_max, pending.stamp[1]), clock_state


def _fitting(pending_readings: "list[PendingReading]") -> int:
    """Number of the first readings that fit one message, by estimates: a board lacks the memory to encode and measure."""
    size = 0
    for n, pending in enumerate(pending_readings):
        size += ROW_BYTES_MIN + _characters(pending.key) + _characters(pending.value)
        for name in pending.attrs:
            size += len(name) + _characters(pending.attrs[name])
        if n and size > MESSAGE_BYTES_MAX:
            return n
    return len(pending_readings)


def _characters(value: "Any") -> int:
    return len(value) if type(value) is str else 0
