"""Common part of the block operators: tuples wait, and a block of them is matched at once by a compiled kernel.

After Algorithms 4 and 5 (LazyTimingCorrelation, BlockTimingCorrelation) of "Lazy Approaches ..." (2010), Section 4.2. A
stream's block is evaluated when it is large enough (`block` tuples wait in it), when `every` has passed since the last
evaluation (then both streams' blocks), or, with both, whichever comes first.

Corrections: a block is matched against *processed* targets only, so that of two tuples the later processed emits the pair,
once (the printed algorithms match waiting tuples with waiting tuples twice); the block itself is sorted, not only the
target; waiting and processed tuples are separate, so sorting moves no pointer; after a block, tuples are dropped by the
future *and* the waiting tuples of the other stream, and waiting tuples never (see `base`).

Times are kept relative to the first tuple, as int64: stamps may lie within 2^58 of it (9 000 years in microseconds, 9 in
nanoseconds), limits within 2^58; `eager` has no such bound. Cost: 25 us a block besides the work per tuple, so blocks of 100
and more pay; tuple by tuple, `eager` with the standard library is faster.
"""

from typing import Any, ClassVar

import numpy as np

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators.base import (
    MAX_BUFFER,
    NO_TIME,
    Arrays,
    Column,
    Operator,
    Pair,
    Side,
    StreamBounds,
    Whole,
    check_interval,
    number,
)
from whenabouts_cloud.research.operators.block_buffer import ARRIVAL, INDEX, KEY, LENGTH, MIDDLE, Columns, Ints
from whenabouts_cloud.research.operators.block_kernels import Arrivals, Bands, Bases, Targets, compiled
from whenabouts_cloud.research.operators.probe import Probe

REACH = 1 << 58  # distance from the first stamp, and size of the limits: 2^58 + 2 * 2^60 and every sum stay below 2^62
NO_PAIRS: Arrays = (np.empty(0, np.int64), np.empty(0, np.int64))
Found = tuple[Ints, Ints, Ints, Ints]  # indices of a, places in them, indices of b, places in them; one place per pair


class BlockOperator(Operator):
    """Tuples wait in `_waiting`, are matched by blocks, and are kept in `_kept`."""

    kernel: ClassVar[str] = "match_block"

    def __init__(
        self,
        condition: Condition,
        a: StreamBounds,
        b: StreamBounds,
        *,
        block: int | None,
        every: int | None,
        max_buffer: int = MAX_BUFFER,
    ) -> None:
        if block is None and every is None:
            raise ValueError(f"{self.name}: found neither block nor every, expected at least one of them")
        if (block is not None and block < 1) or (every is not None and every < 1):
            raise ValueError(f"{self.name}: found block {block} and every {every}, expected 1 or more")
        if max(abs(condition.lo_us), abs(condition.hi_us)) > REACH:
            raise ValueError(f"{self.name}: found limits beyond 2^58, expected smaller ones; eager has no such bound")
        self._rows: list[Ints] = []
        super().__init__(
            condition,
            StreamBounds(a.delay, min(a.pi, REACH), min(a.rho, REACH)),
            StreamBounds(b.delay, min(b.pi, REACH), min(b.rho, REACH)),
            max_buffer=max_buffer,
        )
        self._block = min(block or max_buffer, max_buffer)
        self._every = every
        self._evaluated = NO_TIME
        self._origin: int | None = None
        self._kept = (Columns(), Columns())
        self._waiting: tuple[list[Ints], list[Ints]] = ([], [])  # blocks of (t_min, t_max, index, arrival), relative
        self._singles: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = ([], [])
        self._count_waiting = [0, 0]
        self._least_waiting = [-NO_TIME, -NO_TIME]  # least maximum of waiting tuples, absolute
        self._holds = Probe(condition).holds
        self._ct = float(condition.ct)

    def push(self, side: Side, index: Whole | Column, t_min: Any, t_max: Any, now: Any) -> list[Pair]:
        """Process one tuple, or arrays as a whole, see `Operator.push`."""
        if isinstance(index, int | np.integer):
            return super().push(side, index, t_min, t_max, now)
        return _as_list(self._take(number(side), index, t_min, t_max, now))

    def push_arrays(self, side: Side, index: Any, t_min: Any, t_max: Any, now: Any) -> Arrays:
        """Process tuples, see `push`; return the pairs as two int64 arrays, without a Python object per pair."""
        return _as_arrays(self._take(number(side), index, t_min, t_max, now))

    def advance(self, now: int) -> list[Pair]:
        """Heartbeat; evaluate blocks that are due."""
        self._tick(now)
        pairs = _as_list(self._due(None))
        self._drop_obsolete()
        return pairs

    def flush(self) -> list[Pair]:
        """Evaluate all waiting tuples."""
        return _as_list(self._evaluate(0) + self._evaluate(1))

    def flush_arrays(self) -> Arrays:
        """Evaluate all waiting tuples and return the pairs as two arrays."""
        return _as_arrays(self._evaluate(0) + self._evaluate(1))

    def _push_one(self, n: int, index: int, t_min: int, t_max: int, now: int) -> list[Pair]:
        return _as_list(self._take_one(n, index, t_min, t_max, now))

    def _take(self, n: int, index: Any, t_min: Any, t_max: Any, now: Any) -> list[Found]:
        if isinstance(index, int):
            return self._take_one(n, index, t_min, t_max, now)
        index, t_min, t_max = (_whole(x).reshape(-1) for x in (index, t_min, t_max))
        if not len(index):
            return []
        self._admit_block(n, index, t_min, t_max, _whole(now))
        return self._due(n)

    def _take_one(self, n: int, index: int, t_min: int, t_max: int, now: int) -> list[Found]:
        check_interval(t_min, t_max)
        self._set_origin(t_min, t_max)
        if self._admit(n, index, t_min, t_max, now):
            origin = self._origin or 0
            self._singles[n].append((t_min - origin, t_max - origin, index, now - origin))
            self._count_waiting[n] += 1
            self._least_waiting[n] = min(self._least_waiting[n], t_max)
        return self._due(n)

    def _admit_block(self, n: int, index: Ints, t_min: Ints, t_max: Ints, now: Ints) -> None:
        rows = np.empty((4, len(index)), np.int64)
        rows[0], rows[1], rows[2] = t_min, t_max, index
        shortest, longest, first, least, last = compiled("extent")(rows)
        if shortest < 0:
            at = int((t_max - t_min).argmin())
            raise ValueError(f"interval {at}: found [{t_min[at]}, {t_max[at]}], expected the minimum first")
        self._set_origin(first, last)
        origin = self._origin or 0
        if now.ndim:
            clock = np.maximum.accumulate(now)
            clock = clock if self._now == NO_TIME else np.maximum(clock, self._now)
            self._now = int(clock[-1])
        else:
            self._now = max(self._now, int(now))
            clock = np.asarray(self._now, np.int64)
        if least < self._now - self._delay[n]:
            for at in np.flatnonzero(clock - t_max > self._delay[n]).tolist():
                late_at = int(clock[at]) if now.ndim else self._now
                self._note_late(n, int(index[at]), int(t_min[at]), int(t_max[at]), late_at)
        self._counts.tuples += len(index)
        rows[3] = clock
        rows[:2] -= origin
        rows[3] -= origin
        if shortest < self._lengths[n].rho or longest > self._lengths[n].pi:
            rows = rows[:, [self._admit_length(n, w) for w in (t_max - t_min).tolist()]]
            if not rows.shape[1]:
                return
        self._gather(n)
        self._waiting[n].append(rows)
        self._count_waiting[n] += rows.shape[1]
        self._least_waiting[n] = min(self._least_waiting[n], least)

    def _set_origin(self, *stamps: int) -> None:
        """Set the origin of relative times to the first stamp.

        Raises:
            ValueError: a stamp is too far from the origin.
        """
        origin = stamps[0] if self._origin is None else self._origin
        for stamp in stamps:
            if not -REACH <= stamp - origin <= REACH:
                raise ValueError(
                    f"{self.name}: found the stamp {stamp}, expected one within 2^58 of the first, {origin}; "
                    "eager has no such bound"
                )
        self._origin = origin

    def _gather(self, n: int) -> None:
        """Turn tuples that arrived one by one into a block."""
        if self._singles[n]:
            self._waiting[n].append(np.array(self._singles[n], np.int64).T)
            self._singles[n].clear()

    def _due(self, n: int | None) -> list[Found]:
        """Evaluate the blocks that are due: stream n by count, both by time."""
        if self._evaluated == NO_TIME:
            self._evaluated = self._now
        if self._every is not None and self._now - self._evaluated >= self._every:
            self._evaluated = self._now
            return self._evaluate(0) + self._evaluate(1)
        if n is not None and self._count_waiting[n] >= self._block:
            return self._evaluate(n)
        return []

    def _evaluate(self, n: int) -> list[Found]:
        """Match the waiting tuples of stream n with the processed tuples of the other, and mark them processed."""
        self._gather(n)
        if not self._count_waiting[n]:
            return []
        self._count_held()
        waiting = self._waiting[n]
        rows = waiting[0] if len(waiting) == 1 else np.concatenate(waiting, axis=1)
        base = np.empty((5, rows.shape[1]), np.int64)
        base[MIDDLE], base[LENGTH], base[INDEX], base[ARRIVAL] = rows[0] + rows[1], rows[1] - rows[0], rows[2], rows[3]
        base[KEY] = base[MIDDLE] if self.order == "middle" else rows[1]
        base = base.take(base[KEY].argsort(kind="stable"), axis=1)
        waiting.clear()
        self._count_waiting[n], self._least_waiting[n] = 0, -NO_TIME
        self._counts.blocks += 1
        matched = self._match(n, base, self._kept[1 - n].rows)
        self._kept[n].merge(base)
        surplus = len(self._kept[n]) - self.max_buffer
        if surplus > 0:
            self._kept[n].drop_first(surplus)
            self._counts.overflow += surplus
        self._drop_obsolete()
        return matched

    def _match(self, n: int, base: Ints, target: Ints) -> list[Found]:
        if not target.shape[1]:
            return []
        limits, centre = self._limits[n], self.condition.doubled_centre
        middle = base[MIDDLE] + (-centre if n else centre)
        anchor = base[KEY] if self.order == "middle" else base[KEY] - base[LENGTH]
        i, j, near_i, near_j, evaluations, sure, *hits = compiled(self.kernel)(
            Bases(anchor, middle, base[LENGTH]), Targets(target[KEY], target[MIDDLE], target[LENGTH]),
            Bands(self._rows[n], limits.rho, limits.step), self.condition.width, self._ct,
        )  # fmt: skip
        counts = self._counts
        counts.evaluations += evaluations
        counts.sure += sure
        if hits:
            counts.hits += hits[0]
            counts.lookups += evaluations + hits[0]
        if len(near_i):
            distance = (target[MIDDLE][near_j] - middle[near_i]).tolist()
            lengths = zip(distance, base[LENGTH][near_i].tolist(), target[LENGTH][near_j].tolist(), strict=True)
            kept = np.fromiter((self._holds(*one) for one in lengths), bool, len(near_i))
            i, j = np.concatenate([i, near_i[kept]]), np.concatenate([j, near_j[kept]])
        self._count_pairs(base, target, i, j)
        indices = target[INDEX].copy()  # the held rows move with the next block
        return [(indices, j, base[INDEX], i) if n else (base[INDEX], i, indices, j)]

    def _count_pairs(self, base: Ints, target: Ints, i: Ints, j: Ints) -> None:
        counts = self._counts
        counts.pairs += len(i)
        by_arrival, by_maximum = compiled("waits")(
            self._now - (self._origin or 0), Arrivals(base[ARRIVAL], base[MIDDLE], base[LENGTH]),
            Arrivals(target[ARRIVAL], target[MIDDLE], target[LENGTH]), i, j,
        )  # fmt: skip
        counts.response_2009_sum += by_arrival
        counts.response_2010_sum += by_maximum

    def _drop_obsolete(self) -> None:
        if self._now == NO_TIME:
            return
        origin = self._origin or 0
        for n in (0, 1):
            to_come = min(self._now - self._delay[1 - n], self._least_waiting[1 - n]) - origin
            bound = (2 * to_come if self.order == "middle" else to_come) + self._drop_offset[n]
            self._count_purged(n, self._kept[n].drop_below(max(-4 * REACH, min(bound, 4 * REACH))))

    def _held(self, n: int) -> int:
        return len(self._kept[n]) + self._count_waiting[n]

    def _measure(self) -> None:
        super()._measure()
        self._rows = [np.array(one.rows, np.int64) for one in self._limits]


def _whole(values: Any) -> Ints:
    column = np.asarray(values)
    if column.size and column.dtype.kind not in "iu":
        raise ValueError(f"columns: found {column.dtype} values, expected whole numbers")
    return column.astype(np.int64, copy=False)


def _as_arrays(matched: list[Found]) -> Arrays:
    if len(matched) == 1:
        a, i, b, j = matched[0]
        return a[i], b[j]
    return np.concatenate([NO_PAIRS[0], *(a[i] for a, i, _, _ in matched)]), np.concatenate(
        [NO_PAIRS[1], *(b[j] for _, _, b, j in matched)]
    )


def _as_list(matched: list[Found]) -> list[Pair]:
    pairs: list[Pair] = []
    for a, i, b, j in matched:
        part = list(zip(_numbers(a, i), _numbers(b, j), strict=True))
        pairs = pairs + part if pairs else part
    return pairs


def _numbers(indices: Ints, places: Ints) -> list[int]:
    """The indices at these places; where they repeat, one Python number per index instead of one per pair."""
    numbers: list[int] = (indices if len(places) < len(indices) else indices.astype(object))[places].tolist()
    return numbers
