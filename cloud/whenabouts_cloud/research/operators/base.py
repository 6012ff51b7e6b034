"""Common part of all operators: bounds of streams, the clock, admission of a tuple, counters, the side output.

An operator gets `now`, the low-water clock of arrivals: wall clock on a gateway, event-time watermark in the cloud. Every
stream is declared to satisfy arrival - t_max <= delay, so every future tuple has t_max >= now - delay; this determines
which tuples may be forgotten. A silent stream advances by `advance(now)`. No operator reads a clock, so a replay gives
the same pairs.

Invalidation, corrected (the printed Algorithms 5 and 6 use only future tuples, and lose tuples that waiting tuples of the
other stream still need): a processed tuple t of T is dropped when its maximum is below L_H of [x - pi, x] with x the
smaller of now - delay and the least maximum that still waits in the other stream. Waiting tuples are never dropped.

A late tuple is joined with the tuples still held and is kept like any other; it is counted and returned by `take_late`.
Only pairs with a late tuple can be missing. A tuple outside its stream's lengths is joined and counted, and widens them
for later tuples. A tuple longer than (hi - lo)/ct can match nothing and is not held.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators.counters import Counters
from whenabouts_cloud.research.operators.target_bounds import Lengths, Limits, Order, limits, obsolete_below

MAX_BUFFER = 1_000_000  # tuples held a side; beyond, the oldest are dropped and counted as overflow
NO_TIME = -(1 << 100)  # `now` before the first tuple: no tuple is late or obsolete
MAX_LATE = 10_000  # late tuples kept for the side output; beyond, the oldest are dropped and counted as late_dropped

Side = Literal["a", "b"]
Pair = tuple[int, int]
Whole = int | np.integer[Any]
Column = Sequence[int] | npt.NDArray[np.int64]
Arrays = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class StreamBounds:
    """Declared bounds of a stream: arrival - t_max <= delay, and rho <= t_max - t_min <= pi."""

    delay: int
    pi: int
    rho: int

    def __post_init__(self) -> None:
        if not 0 <= self.rho <= self.pi:
            raise ValueError(f"lengths: found rho {self.rho} and pi {self.pi}, expected 0 <= rho <= pi")


@dataclass(frozen=True)
class LateTuple:
    """A tuple that arrived later after its maximum than its stream's delay."""

    side: Side
    index: int
    t_min: int
    t_max: int
    late_by: int


class Operator(ABC):
    """A streaming correlation of streams A and B; see `operator` for the arguments."""

    name: ClassVar[str]
    order: ClassVar[Order] = "max"

    def __init__(self, condition: Condition, a: StreamBounds, b: StreamBounds, *, max_buffer: int = MAX_BUFFER) -> None:
        self.condition = condition
        self.max_buffer = max_buffer
        self._delay = [a.delay, b.delay]
        # Longer intervals match nothing, so declared lengths are cut to this.
        longest = condition.longest_us
        self._lengths = [Lengths(min(s.rho, longest), min(s.pi, longest)) for s in (a, b)]
        self._now = NO_TIME
        self._late: deque[LateTuple] = deque(maxlen=MAX_LATE)
        self._counts = Counters()
        self._limits: list[Limits] = []
        self._drop_offset = [0, 0]
        self._measure()

    def push(self, side: Side, index: Whole | Column, t_min: Any, t_max: Any, now: Any) -> list[Pair]:
        """Return the pairs (index_a, index_b) that the tuple, or the tuples in their order, complete now.

        Scalars, or equally long sequences (`now` may stay a scalar). Times are integers in any one unit, intervals closed.

        Raises:
            ValueError: an interval ends before it begins, or a value is out of range. Then nothing has changed.
        """
        n = number(side)
        if isinstance(index, int):
            return self._push_one(n, index, t_min, t_max, now)
        if isinstance(index, np.integer):
            return self._push_one(n, int(index), int(t_min), int(t_max), int(now))
        columns = [x.tolist() if isinstance(x, np.ndarray) else x for x in (index, t_min, t_max)]
        nows = now.tolist() if isinstance(now, np.ndarray) else now
        rows = list(zip(*columns, [nows] * len(columns[0]) if isinstance(nows, int) else nows, strict=True))
        for _, low, high, _ in rows:
            check_interval(low, high)
        pairs: list[Pair] = []
        for row in rows:
            pairs += self._push_one(n, *row)
        return pairs

    def push_arrays(self, side: Side, index: Any, t_min: Any, t_max: Any, now: Any) -> Arrays:
        """Process tuples, see `push`; return the pairs as two int64 arrays (index_a, index_b)."""
        return as_arrays(self.push(side, index, t_min, t_max, now))

    def advance(self, now: int) -> list[Pair]:
        """Heartbeat: advance the clock without a tuple. Drop tuples that no future tuple needs."""
        self._tick(now)
        self._drop_obsolete()
        return []

    def flush(self) -> list[Pair]:
        """Return the pairs of all waiting tuples. The operator can be used further."""
        return []

    def flush_arrays(self) -> Arrays:
        """Return the pairs of all waiting tuples, see `flush`, as two int64 arrays."""
        return as_arrays(self.flush())

    def take_late(self) -> list[LateTuple]:
        """Return the late tuples since the last call; they have been joined with the tuples still held."""
        taken = list(self._late)
        self._late.clear()
        return taken

    @property
    def counters(self) -> Counters:
        """A copy of the current counters."""
        self._tally()
        counts = self._counts
        counts.buffer_a, counts.buffer_b = self._held(0), self._held(1)
        return Counters(**vars(counts))

    @abstractmethod
    def _push_one(self, n: int, index: int, t_min: int, t_max: int, now: int) -> list[Pair]:
        """Take one tuple of stream n (0 is A)."""

    @abstractmethod
    def _drop_obsolete(self) -> None:
        """Drop tuples that no future and no waiting tuple can match."""

    @abstractmethod
    def _held(self, n: int) -> int:
        """Tuples of stream n that are held, unprocessed ones included."""

    def _admit(self, n: int, index: int, t_min: int, t_max: int, now: int) -> bool:
        """Count the tuple, advance the clock; return True if the tuple can be part of a pair."""
        length = t_max - t_min
        if length < 0:
            check_interval(t_min, t_max)
        self._counts.tuples += 1
        if now > self._now:
            self._now = now
        if self._now - t_max > self._delay[n]:
            self._note_late(n, index, t_min, t_max, self._now)
        if self._lengths[n].rho <= length <= self._lengths[n].pi:
            return True
        return self._admit_length(n, length)

    def _admit_length(self, n: int, length: int) -> bool:
        if length > self.condition.longest_us:
            self._counts.unmatchable += 1
            return False
        if not self._lengths[n].rho <= length <= self._lengths[n].pi:
            self._counts.beyond_length += 1
            self._lengths[n] = self._lengths[n].with_length(length)
            self._measure()
        return True

    def _note_late(self, n: int, index: int, t_min: int, t_max: int, now: int) -> None:
        self._counts.late += 1
        self._counts.late_dropped += len(self._late) == MAX_LATE
        self._late.append(LateTuple("b" if n else "a", index, t_min, t_max, now - t_max - self._delay[n]))

    def _tick(self, now: int) -> None:
        if now > self._now:
            self._now = now

    def _measure(self) -> None:
        """Compute limits and purge offsets from the lengths, for bases of stream n against targets of the other."""
        self._limits = [
            limits(self.condition, self.order, base_in_a=n == 0, base=self._lengths[n], target=self._lengths[1 - n])
            for n in (0, 1)
        ]
        # Targets of stream n are dropped by future bases of the other.
        self._drop_offset = [
            obsolete_below(
                self.condition, self.order, base_in_a=n == 1, base=self._lengths[1 - n], target=self._lengths[n]
            )
            for n in (0, 1)
        ]  # fmt: skip

    def _tally(self) -> None:
        """Update the counters that are not counted as events happen."""
        self._count_held()

    def _count_held(self) -> None:
        counts = self._counts
        counts.buffer_a_max = max(counts.buffer_a_max, self._held(0))
        counts.buffer_b_max = max(counts.buffer_b_max, self._held(1))

    def _count_purged(self, n: int, count: int) -> None:
        if n:
            self._counts.purged_b += count
        else:
            self._counts.purged_a += count


def number(side: str) -> int:
    """0 for A, 1 for B."""
    if side == "a":
        return 0
    if side == "b":
        return 1
    raise ValueError(f"side: found {side!r}, expected 'a' or 'b'")


def check_interval(t_min: int, t_max: int) -> None:
    """Raise ValueError for an interval that ends before it begins."""
    if t_min > t_max:
        raise ValueError(f"interval: found [{t_min}, {t_max}], expected the minimum first")


def as_arrays(pairs: list[Pair]) -> Arrays:
    """Pairs as two columns."""
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]
