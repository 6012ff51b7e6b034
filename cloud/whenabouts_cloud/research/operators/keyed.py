"""Equality on a key besides the timing condition: one operator for each key that holds tuples.

The clock is common: keys are swept by it regularly, and keys without tuples are forgotten, so the number of keys is
bounded by the tuples held. `block` counts the tuples of a key; with many rare keys give `every` as well.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from whenabouts_cloud.research.operators.base import NO_TIME, LateTuple, Operator, Pair, Side, Whole
from whenabouts_cloud.research.operators.counters import Counters

SWEEP_AT_LEAST = 256  # pushes between two sweeps; the number of keys if larger, so that a sweep costs little per push


class Keyed:
    """An operator with `key` in `push`: only tuples of equal keys pair up."""

    def __init__(self, make: Callable[[], Operator]) -> None:
        self._make = make
        self.name = make().name
        self._of_key: dict[Hashable, Operator] = {}
        self._gone = Counters()
        self._late: list[LateTuple] = []
        self._now = NO_TIME
        self._pushes = 0

    def push(self, side: Side, index: Whole | Sequence[int], t_min: Any, t_max: Any, now: Any, key: Any) -> list[Pair]:
        """Return the pairs completed now; with sequences, `key` is a sequence as well.

        Raises:
            ValueError: as the operator of one key; for sequences, those before the faulty tuple have been taken.
        """
        if isinstance(index, int | np.integer):
            return self._push_one(side, int(index), int(t_min), int(t_max), int(now), key)
        pairs: list[Pair] = []
        nows = [now] * len(index) if np.ndim(now) == 0 else now
        for row in zip(index, t_min, t_max, nows, key, strict=True):
            pairs += self._push_one(side, int(row[0]), int(row[1]), int(row[2]), int(row[3]), row[4])
        return pairs

    def advance(self, now: int) -> list[Pair]:
        """A heartbeat for every key."""
        self._now = max(self._now, now)
        return self._sweep()

    def flush(self) -> list[Pair]:
        """Return the pairs of all waiting tuples."""
        return [pair for one in self._of_key.values() for pair in one.flush()]

    def take_late(self) -> list[LateTuple]:
        """Return the late tuples of all keys since the last call."""
        taken = self._late + [late for one in self._of_key.values() for late in one.take_late()]
        self._late = []
        return taken

    @property
    def keys_held(self) -> int:
        """Keys that hold tuples."""
        return len(self._of_key)

    @property
    def counters(self) -> Counters:
        """Sums over all keys; `buffer_*_max` sums the maxima of the keys, even if reached at different times."""
        total = Counters(**vars(self._gone))
        for one in self._of_key.values():
            _add(total, one.counters)
        return total

    def _push_one(self, side: Side, index: int, t_min: int, t_max: int, now: int, key: Hashable) -> list[Pair]:
        self._now = max(self._now, now)
        one = self._of_key.get(key)
        if one is None:
            one = self._of_key[key] = self._make()
        pairs = one.push(side, index, t_min, t_max, self._now)
        self._pushes += 1
        if self._pushes >= max(SWEEP_AT_LEAST, len(self._of_key)):
            pairs = pairs + self._sweep()
        return pairs

    def _sweep(self) -> list[Pair]:
        self._pushes = 0
        pairs: list[Pair] = []
        for key, one in list(self._of_key.items()):
            pairs += one.advance(self._now)
            counts = one.counters
            if counts.buffer_a == counts.buffer_b == 0:
                _add(self._gone, counts)
                self._late += one.take_late()
                del self._of_key[key]
        return pairs


def _add(total: Counters, more: Counters) -> None:
    for field in fields(Counters):
        setattr(total, field.name, getattr(total, field.name) + getattr(more, field.name))
