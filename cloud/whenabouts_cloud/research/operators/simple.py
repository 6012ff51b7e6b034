"""`simple`: Algorithm 1, SimpleTimingCorrelation, of "Lazy Approaches ..." (2010), Section 4.2; also 2009, Section 5.

Every tuple that arrives is compared with every tuple of the other buffer by its probability. Buffers stay in the order of
arrival; obsolete tuples are dropped when they reach the front. Correction: tuples become obsolete by the stream's own
longest interval and the other's shortest, under any lo <= Y - X <= hi (`target_bounds`), not by the papers' single pi.
Cost: one evaluation for every tuple held, 0.3 us each.
"""

from whenabouts_cloud.pattern.condition import Condition
from whenabouts_cloud.research.operators.base import MAX_BUFFER, Operator, Pair, StreamBounds
from whenabouts_cloud.research.operators.probe import Probe
from whenabouts_cloud.research.operators.tuple_buffer import TupleBuffer


class Simple(Operator):
    """Compares with every held tuple; the reference for the savings of the others."""

    name = "simple"
    _sorted = False

    def __init__(self, condition: Condition, a: StreamBounds, b: StreamBounds, *, max_buffer: int = MAX_BUFFER) -> None:
        super().__init__(condition, a, b, max_buffer=max_buffer)
        self._buffers = (TupleBuffer(), TupleBuffer())
        self._holds = Probe(condition).holds

    def _push_one(self, n: int, index: int, t_min: int, t_max: int, now: int) -> list[Pair]:
        if not self._admit(n, index, t_min, t_max, now):
            self._drop_obsolete()
            return []
        partners, maxima = self._matched(self._buffers[1 - n], n, t_min + t_max, t_max - t_min)
        self._count_pairs(t_max, maxima)
        self._drop_obsolete()
        base = self._buffers[n]
        if self._sorted:
            base.insert(index, t_min, t_max)
        else:
            base.append(index, t_min, t_max)
        self._bound(n)
        return [(j, index) for j in partners] if n else [(index, j) for j in partners]

    def _matched(self, target: TupleBuffer, n: int, middle: int, length: int) -> tuple[list[int], list[int]]:
        """Return index and maximum of the targets that match."""
        holds, front = self._holds, target.front
        centre = middle - self.condition.doubled_centre if n else middle + self.condition.doubled_centre
        self._counts.evaluations += len(target)
        places = [
            at
            for at, (other, w) in enumerate(zip(target.middle[front:], target.length[front:], strict=True), front)
            if holds(other - centre, length, w)
        ]
        return [target.index[at] for at in places], [target.t_max[at] for at in places]

    def _count_pairs(self, t_max: int, maxima: list[int]) -> None:
        self._counts.pairs += len(maxima)
        self._counts.response_2010_sum += self._now * len(maxima) - sum(max(t_max, other) for other in maxima)

    def _drop_obsolete(self) -> None:
        self._count_held()
        for n in (0, 1):
            bound = self._now - self._delay[1 - n] + self._drop_offset[n]
            self._count_purged(n, self._buffers[n].drop_below(bound))

    def _bound(self, n: int) -> None:
        if len(self._buffers[n]) > self.max_buffer:
            self._buffers[n].drop_first()
            self._counts.overflow += 1

    def _held(self, n: int) -> int:
        return len(self._buffers[n])
