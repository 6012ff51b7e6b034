"""`eager`: Algorithms 2 and 3, EagerTimingCorrelation and Probe, of "Lazy Approaches ..." (2010), Section 4.2.

Every tuple that arrives is matched at once: targets with a maximum in [L_L, R_L] are results without a probe, those in
[L_H, L_L) and (R_L, R_H] are probed. Standard library only: sorted lists, `bisect` and integers; floats decide nothing. A
probe is decided by the classes of the two lengths (`target_bounds.grid`), one in a hundred by the exact test; each counts
as an evaluation.

Corrections: the limits of `target_bounds` (closed form, outward rounding, pi and rho for each stream); where 2d is
smaller than the sum of the lengths, Corollary 1 and the sure range do not hold, so all candidates are probed; where L_L >
R_L they are probed once, not once a side; tuples are dropped by the base stream's delay and its longest interval.

Left of a non-empty sure range only the left tail can fail, since the target is below R_L for every length; right of it only
the right tail. So a probe left of it can compare the signed distance; other probes compare its absolute value.

Cost: tests/bench/bench_operators.py measures it. The one long function is the hot path: a call costs as much as its work.
The order by middles (`whenabouts_protocol.streaming_join`, for gateways) probes a third as much at ct 0.8.
"""

from bisect import bisect_left, bisect_right
from itertools import repeat
from typing import Any

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators.base import (
    MAX_BUFFER,
    Column,
    Operator,
    Pair,
    Side,
    StreamBounds,
    Whole,
    number,
)
from whenabouts_cloud.research.operators.probe import Probe
from whenabouts_cloud.research.operators.target_bounds import grid

GIVE_BACK = 512  # dropped tuples before the lists are cut, so that cutting costs little per tuple
LOOK_EVERY = 8  # own tuples between two searches for obsolete ones; `advance` and `counters` remove all of them

Row = tuple[int, int, int, int, list[int], list[int], int]  # limits; sure and reach by the target's class; own class
Target = tuple[int, int, int, int]  # doubled middle, class of the length, index, length


class _Stream:
    """Tuples of one stream in the order of their maxima, as parallel lists with a moving front, and its bases' table."""

    __slots__ = (
        "centre", "cut", "delay", "drop_at", "evaluations", "front", "index", "look_at", "most", "n", "overflow",
        "pairs", "pi", "rho", "room", "rows", "step", "sure", "t_max", "tuples", "waited",
    )  # fmt: skip

    def __init__(self, n: int, delay: int, centre: int, room: int) -> None:
        self.n = n
        self.t_max: list[int] = []
        self.index: list[int] = []
        self.tuples: list[Target] = []
        self.front = 0  # everything before is dropped
        self.cut = self.overflow = self.most = 0  # dropped and not in the lists; dropped for lack of room; most held
        self.delay = delay
        self.centre = centre  # of the condition, doubled, seen from this stream's bases
        self.room = room
        self.look_at = min(LOOK_EVERY, room + 1)  # length of the lists at which obsolete tuples are searched
        self.rows: list[Row] = []
        self.rho = self.pi = self.drop_at = 0
        self.step = 1
        # As a base: all pairs, pairs from sure ranges, evaluations, sum of now - the later maximum over all pairs.
        self.pairs = self.sure = self.evaluations = self.waited = 0

    def insert(self, index: int, t_min: int, t_max: int, of_class: int) -> None:
        """Insert in the order of the maxima; arrivals are nearly in order, so the move is short."""
        at = bisect_right(self.t_max, t_max, self.front)
        self.t_max.insert(at, t_max)
        self.index.insert(at, index)
        self.tuples.insert(at, (t_min + t_max, of_class, index, t_max - t_min))

    def drop_below(self, bound: int) -> None:
        """Advance the front to the first maximum that is not below the bound, and further if the room is exceeded."""
        held = len(self.t_max) - self.front
        self.front = bisect_left(self.t_max, bound, self.front)
        surplus = len(self.t_max) - self.front - self.room
        if surplus > 0:
            self.front += surplus
            self.overflow += surplus
        self.most = max(self.most, min(held, self.room))
        if self.front >= GIVE_BACK and 2 * self.front >= len(self.t_max):
            del self.t_max[: self.front], self.index[: self.front], self.tuples[: self.front]
            self.cut += self.front
            self.front = 0
        self.look_at = min(len(self.t_max) + LOOK_EVERY, self.front + self.room + 1)


class Eager(Operator):
    """Match each tuple when it arrives."""

    name = "eager"

    def __init__(self, condition: Condition, a: StreamBounds, b: StreamBounds, *, max_buffer: int = MAX_BUFFER) -> None:
        centre = condition.doubled_centre
        self._a, self._b = _Stream(0, a.delay, centre, max_buffer), _Stream(1, b.delay, -centre, max_buffer)
        self._holds = Probe(condition).holds
        super().__init__(condition, a, b, max_buffer=max_buffer)

    def push(self, side: Side, index: Whole | Column, t_min: Any, t_max: Any, now: Any) -> list[Pair]:
        """Process one tuple or many, see `Operator.push`; one tuple of plain integers takes a faster path."""
        if type(index) is int:
            if side == "a":
                partners = self._partners(self._a, self._b, index, t_min, t_max, now)
                return list(zip(repeat(index), partners)) if partners else []
            if side == "b":
                partners = self._partners(self._b, self._a, index, t_min, t_max, now)
                return list(zip(partners, repeat(index))) if partners else []
        return super().push(side, index, t_min, t_max, now)

    def partners(self, side: Side, index: int, t_min: int, t_max: int, now: int) -> list[int]:
        """Process one tuple and return only the indices of the other stream: cheaper than `push` with many matches."""
        base, target = (self._b, self._a) if number(side) else (self._a, self._b)
        return self._partners(base, target, index, t_min, t_max, now)

    def _push_one(self, n: int, index: int, t_min: int, t_max: int, now: int) -> list[Pair]:
        partners = self.partners("b" if n else "a", index, t_min, t_max, now)
        return [(j, index) for j in partners] if n else [(index, j) for j in partners]

    def _partners(self, base: _Stream, target: _Stream, index: int, t_min: int, t_max: int, now: int) -> list[int]:
        length, waited = t_max - t_min, now - t_max  # small numbers are compared faster than times
        if base.rho <= length <= base.pi and waited <= base.delay and self._now <= now:
            self._now = now
        else:  # late, out of order, of an unusual length, or wrong
            if not self._admit(base.n, index, t_min, t_max, now):
                return []
            now = self._now
            waited = now - t_max
        first, sure_first, sure_last, last, sure, reach, of_class = base.rows[(length - base.rho) // base.step]
        maxima = target.t_max
        newest = maxima[-1] - t_min if maxima else first - 1
        if newest < first:
            partners = []
        elif sure_first > sure_last:
            low = bisect_left(maxima, t_min + first, target.front)
            partners = self._probe(base, target, low, bisect_right(maxima, t_min + last, low), t_min, t_max)
        else:
            sure_low = bisect_left(maxima, t_min + sure_first, target.front)
            low = bisect_left(maxima, t_min + first, target.front, sure_low)
            sure_high = high = len(maxima)
            if newest > sure_last:
                sure_high = bisect_right(maxima, t_min + sure_last, sure_low)
                high = bisect_right(maxima, t_min + last, sure_high)
            partners = target.index[sure_low:sure_high]
            base.sure += sure_high - sure_low
            if newest > length and sure_low < sure_high and maxima[sure_high - 1] > t_max:
                later = maxima[bisect_right(maxima, t_max, sure_low, sure_high) : sure_high]
                base.waited += len(later) * t_max - sum(later)
            if low < sure_low:
                if sure_first > length:  # some may end after the base
                    partners += self._probe(base, target, low, sure_low, t_min, t_max)
                else:
                    base.evaluations += sure_low - low
                    centre = t_min + t_max + base.centre
                    for middle, c, partner, w in target.tuples[low:sure_low]:
                        distance = centre - middle
                        if distance <= sure[c] or (distance <= reach[c] and self._holds(distance, length, w)):
                            partners.append(partner)
            if sure_high < high:
                partners += self._probe(base, target, sure_high, high, t_min, t_max)
        if partners:
            base.pairs += len(partners)
            base.waited += waited * len(partners)
        maxima = base.t_max
        if not maxima or t_max >= maxima[-1]:
            maxima.append(t_max)
            base.index.append(index)
            base.tuples.append((t_min + t_max, of_class, index, length))
        else:
            base.insert(index, t_min, t_max, of_class)
        if len(maxima) >= base.look_at:
            base.drop_below(now + base.drop_at)
        return partners

    def _probe(self, base: _Stream, target: _Stream, low: int, high: int, t_min: int, t_max: int) -> list[int]:
        """Return the indices of the matching targets from low to high; the caller adds now - t_max for each to `waited`."""
        length, centre, holds = t_max - t_min, t_min + t_max + base.centre, self._holds
        _, _, _, _, sure, reach, _ = base.rows[(length - base.rho) // base.step]
        partners: list[int] = []
        above = 0
        for middle, c, partner, w in target.tuples[low:high]:
            distance = abs(middle - centre)
            if distance <= sure[c] or (distance <= reach[c] and holds(distance, length, w)):
                partners.append(partner)
                if middle + w > t_max + t_max:
                    above += (middle + w >> 1) - t_max
        base.evaluations += high - low
        base.waited -= above
        return partners

    def _drop_obsolete(self) -> None:
        for stream in (self._a, self._b):
            stream.drop_below(self._now + stream.drop_at)

    def _held(self, n: int) -> int:
        stream = self._b if n else self._a
        return len(stream.t_max) - stream.front

    def _measure(self) -> None:
        super()._measure()
        for n, stream in enumerate((self._a, self._b)):
            lengths, limits = self._lengths[n], self._limits[n]
            table = grid(self.condition, base=lengths, target=self._lengths[1 - n])
            stream.rho, stream.pi, stream.step = lengths.rho, lengths.pi, limits.step
            classes = [at * limits.step // table.base_step for at in range(len(limits.rows))]
            stream.rows = [
                (*row, table.sure[c], table.reach[c], c) for row, c in zip(limits.rows, classes, strict=True)
            ]
            stream.drop_at = self._drop_offset[n] - self._delay[1 - n]
            stream.tuples = [
                (middle, (w - lengths.rho) // table.base_step, index, w) for middle, _, index, w in stream.tuples
            ]

    def _tally(self) -> None:
        self._drop_obsolete()
        counts, a, b = self._counts, self._a, self._b
        counts.sure, counts.evaluations, counts.pairs = (
            a.sure + b.sure, a.evaluations + b.evaluations, a.pairs + b.pairs
        )  # fmt: skip
        counts.response_2010_sum = a.waited + b.waited
        counts.tuples = counts.unmatchable + sum(s.cut + len(s.t_max) for s in (a, b))
        counts.overflow = a.overflow + b.overflow
        counts.purged_a, counts.purged_b = (s.cut + s.front - s.overflow for s in (a, b))
        counts.buffer_a_max, counts.buffer_b_max = (max(s.most, len(s.t_max) - s.front) for s in (a, b))
