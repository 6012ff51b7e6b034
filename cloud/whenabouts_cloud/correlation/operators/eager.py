"""`eager`: Algorithms 2 and 3, EagerTimingCorrelation and Probe, of "Lazy Approaches ..." (2010), Section 4.2.

Every tuple that arrives is matched at once: targets with a maximum in [L_L, R_L] are results unseen, those in [L_H, L_L)
and (R_L, R_H] are probed. Standard library only: sorted lists and `bisect`, integers, no float decides. A probe is decided
by the classes of the two lengths (`bounds.grid`), one in twenty by the exact test; each counts as an evaluation.

Corrections: the limits of `bounds` (closed form, outward rounding, each stream's own pi and rho); where 2d is smaller than
the lengths together, Corollary 1 fails and with it the sure range, so all candidates are probed; where L_L > R_L they are
probed once, not once a side; tuples are dropped by the base stream's delay and its longest interval.

Cost: tests/bench/bench_operators.py measures it. The one long function is the hot path: a call costs as much as its work.
"""

from bisect import bisect_left, bisect_right
from itertools import repeat
from typing import Any

from whenabouts_cloud.correlation.condition import Condition
from whenabouts_cloud.correlation.operators.base import (
    MAX_BUFFER,
    Column,
    Operator,
    Pair,
    Side,
    StreamBounds,
    Whole,
    number,
)
from whenabouts_cloud.correlation.operators.bounds import Row, grid
from whenabouts_cloud.correlation.operators.probe import Probe

GIVE_BACK = 512  # dropped tuples before the lists are cut, so that cutting costs little a tuple
DROP_AT_ONCE = 8  # obsolete tuples at the front before they are dropped; `advance` and `counters` leave none


class _Stream:
    """Tuples of one stream in the order of their maxima, as parallel lists with a moving front, and its bases' tables."""

    __slots__ = (
        "class_rho", "class_step", "classes", "cut", "delay", "drop_at", "front", "index", "middle", "most", "overflow",
        "pi", "reach", "reach_rho", "reach_step", "rho", "row_rho", "row_step", "rows", "sure", "t_max",
    )  # fmt: skip

    def __init__(self, delay: int) -> None:
        self.t_max: list[int] = []
        self.middle: list[int] = []  # doubled
        self.classes: list[int] = []  # of the length, for the other stream's grid
        self.index: list[int] = []
        self.front = 0  # everything before is dropped
        self.cut = self.overflow = self.most = 0  # dropped and no longer in the lists; dropped for room; most held
        self.delay = delay
        self.rows: list[Row] = []
        self.sure: list[list[int]] = []
        self.reach: list[list[int]] = []
        self.rho = self.pi = self.row_rho = self.reach_rho = self.class_rho = self.drop_at = 0
        self.row_step = self.reach_step = self.class_step = 1

    def insert(self, index: int, t_min: int, t_max: int) -> None:
        """In the order of the maxima; arrivals are nearly in order, so the move is short."""
        at = bisect_right(self.t_max, t_max, self.front)
        self.t_max.insert(at, t_max)
        self.middle.insert(at, t_min + t_max)
        self.classes.insert(at, (t_max - t_min - self.class_rho) // self.class_step)
        self.index.insert(at, index)

    def drop_below(self, bound: int) -> None:
        """Advance the front to the first maximum that is not below the bound."""
        self.most = max(self.most, len(self.t_max) - self.front)
        self.front = bisect_left(self.t_max, bound, self.front)
        if self.front >= GIVE_BACK and 2 * self.front >= len(self.t_max):
            for column in (self.t_max, self.middle, self.classes, self.index):
                del column[: self.front]
            self.cut += self.front
            self.front = 0


class Eager(Operator):
    """Match each tuple when it arrives."""

    name = "eager"

    def __init__(self, condition: Condition, a: StreamBounds, b: StreamBounds, *, max_buffer: int = MAX_BUFFER) -> None:
        self._streams = (_Stream(a.delay), _Stream(b.delay))
        self._holds = Probe(condition).holds
        self._centres = (condition.doubled_centre, -condition.doubled_centre)
        self._sure = self._evaluations = self._pairs = self._waited = 0
        super().__init__(condition, a, b, max_buffer=max_buffer)

    def push(self, side: Side, index: Whole | Column, t_min: Any, t_max: Any, now: Any) -> list[Pair]:
        """As `Operator.push`; one tuple of plain integers takes the short way."""
        if type(index) is not int or side not in ("a", "b"):
            return super().push(side, index, t_min, t_max, now)
        if side == "a":
            return list(zip(repeat(index), self._partners(0, index, t_min, t_max, now)))
        return list(zip(self._partners(1, index, t_min, t_max, now), repeat(index)))

    def partners(self, side: Side, index: int, t_min: int, t_max: int, now: int) -> list[int]:
        """As `push` for one tuple, giving only the indices of the other stream: cheaper where matches are many."""
        return self._partners(number(side), index, t_min, t_max, now)

    def _push_one(self, n: int, index: int, t_min: int, t_max: int, now: int) -> list[Pair]:
        partners = self._partners(n, index, t_min, t_max, now)
        if not partners:
            return []
        return list(zip(partners, repeat(index))) if n else list(zip(repeat(index), partners))

    def _partners(self, n: int, index: int, t_min: int, t_max: int, now: int) -> list[int]:
        base, target = self._streams[n], self._streams[1 - n]
        length = t_max - t_min
        if base.rho <= length <= base.pi and self._now <= now <= t_max + base.delay:
            self._now = now
        else:  # late, out of order, of an unusual length, or wrong
            if not self._admit(n, index, t_min, t_max, now):
                return []
            now = self._now
        maxima = target.t_max
        newest = maxima[-1] if maxima else t_max
        first, sure_first, sure_last, last = base.rows[(length - base.row_rho) // base.row_step]
        low = bisect_left(maxima, t_min + first, target.front)
        high = len(maxima) if newest <= t_min + last else bisect_right(maxima, t_min + last, low)
        sure_low = sure_high = high
        if sure_first <= sure_last:
            sure_low = bisect_left(maxima, t_min + sure_first, low, high)
            if newest > t_min + sure_last:
                sure_high = bisect_right(maxima, t_min + sure_last, sure_low, high)
        found = target.index[sure_low:sure_high]
        above = 0
        if newest > t_max and sure_low < sure_high and maxima[sure_high - 1] > t_max:
            later = maxima[bisect_right(maxima, t_max, sure_low, sure_high) : sure_high]
            above = sum(later) - len(later) * t_max
        self._sure += len(found)
        if low < sure_low or sure_high < high:
            self._evaluations += sure_low - low + high - sure_high
            centre, of_class = t_min + t_max + self._centres[n], (length - base.reach_rho) // base.reach_step
            reach, sure = base.reach[of_class], base.sure[of_class]
            for at, end in ((low, sure_low), (sure_high, high)):
                for middle, c in zip(target.middle[at:end], target.classes[at:end]):  # noqa: B905
                    distance = middle - centre
                    if distance < 0:
                        distance = -distance
                    if distance <= sure[c] or (
                        distance <= reach[c] and self._holds(distance, length, 2 * maxima[at] - middle)
                    ):
                        found.append(target.index[at])
                        if maxima[at] > t_max:
                            above += maxima[at] - t_max
                    at += 1
        if found:
            self._pairs += len(found)
            self._waited += (now - t_max) * len(found) - above
        at = target.front + DROP_AT_ONCE
        if at < len(maxima) and maxima[at] < now + target.drop_at:
            target.drop_below(now + target.drop_at)
        maxima = base.t_max
        if not maxima or t_max >= maxima[-1]:
            maxima.append(t_max)
            base.middle.append(t_min + t_max)
            base.classes.append((length - base.class_rho) // base.class_step)
            base.index.append(index)
        else:
            base.insert(index, t_min, t_max)
        at = base.front + DROP_AT_ONCE
        if (at < len(maxima) and maxima[at] < now + base.drop_at) or len(maxima) - base.front > self.max_buffer:
            self._shorten(base)
        return found

    def _shorten(self, stream: _Stream) -> None:
        stream.drop_below(self._now + stream.drop_at)
        surplus = len(stream.t_max) - stream.front - self.max_buffer
        if surplus > 0:
            stream.front += surplus
            stream.overflow += surplus

    def _drop_obsolete(self) -> None:
        for stream in self._streams:
            stream.drop_below(self._now + stream.drop_at)

    def _held(self, n: int) -> int:
        return len(self._streams[n].t_max) - self._streams[n].front

    def _measure(self) -> None:
        super()._measure()
        for n, stream in enumerate(self._streams):
            lengths, limits = self._lengths[n], self._limits[n]
            table = grid(self.condition, base=lengths, target=self._lengths[1 - n])
            stream.rho, stream.pi = lengths.rho, lengths.pi
            stream.row_rho, stream.row_step, stream.rows = limits.rho, limits.step, limits.rows
            stream.reach_rho, stream.reach_step = table.base_rho, table.base_step
            stream.reach, stream.sure = table.reach, table.sure
            stream.drop_at = self._drop_offset[n] - self._delay[1 - n]
            other = self._streams[1 - n]
            other.class_rho, other.class_step = table.target_rho, table.target_step
            other.classes = [
                (2 * t_max - middle - other.class_rho) // other.class_step
                for t_max, middle in zip(other.t_max, other.middle, strict=True)
            ]

    def _tally(self) -> None:
        self._drop_obsolete()
        counts, (a, b) = self._counts, self._streams
        counts.sure, counts.evaluations, counts.pairs = self._sure, self._evaluations, self._pairs
        counts.response_2010_sum = self._waited
        counts.tuples = counts.hopeless + sum(s.cut + len(s.t_max) for s in (a, b))
        counts.overflow = a.overflow + b.overflow
        counts.purged_a, counts.purged_b = (s.cut + s.front - s.overflow for s in (a, b))
        counts.buffer_a_max, counts.buffer_b_max = (max(s.most, len(s.t_max) - s.front) for s in (a, b))
