"""Joins two sides of intervals slab by slab: from the input arrays to the matches of each slab.

The work is cut into slabs that fit the cache (`slabs`). One of two engines with the same results finds the matches of a
slab: `matches_numpy`, or `matches_numba`, which is several times faster but takes half a second to load and, once per
installation, several seconds to compile. Numba is therefore used if it is installed and there are NUMBA_ROWS rows or
more, or if it is already loaded; `engine` overrides this. Stamps that span too much for int64 go to `one_by_one`, on
Python integers.
"""

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.arrays import Array
from whenabouts_cloud.correlation.batch import matches_numpy, one_by_one
from whenabouts_cloud.correlation.batch.input import codes, side, spans_too_much
from whenabouts_cloud.correlation.batch.reach import Terms
from whenabouts_cloud.correlation.batch.slabs import Cutter
from whenabouts_cloud.pattern.condition import Condition

NUMBA_ROWS = 2_000_000  # both sides: numpy takes 0.2 us a row more, and numba half a second to load
NUMBA_MODULE = "whenabouts_cloud.correlation.batch.matches_numba"
ENGINES = ("numpy", "numba")

Index = npt.NDArray[np.int64]
Pairs = tuple[Index, Index]
PairsWithProbability = tuple[Index, Index, npt.NDArray[np.float64]]


class Given(NamedTuple):
    """One side as a caller gives it: stamps, not checked yet, and the keys, if they are compared."""

    t_min: Any
    t_max: Any
    key: Any = None


class Join:
    """Two checked sides and a condition, ready to be iterated over; rows are counted from `starts`.

    If stamps need Python integers, `wide` holds all pairs; if nothing can match, `cutter` is None.
    """

    def __init__(
        self, given_a: Given, given_b: Given, condition: Condition, engine: str | None, starts: tuple[int, int] = (0, 0)
    ) -> None:
        if engine not in (None, *ENGINES):
            raise ValueError(f"engine: found {engine!r}, expected one of {', '.join(ENGINES)}")
        a, b = side(given_a.t_min, given_a.t_max, "a"), side(given_b.t_min, given_b.t_max, "b")
        self.rows = len(a.t_min), len(b.t_min)
        a_code, b_code = codes(given_a.key, given_b.key, *self.rows)
        self.stamps = (a.t_min, a.t_max, b.t_min, b.t_max)
        self.wide: PairsWithProbability | None = None
        self.cutter: Cutter | None = None
        if not all(self.rows):
            return
        if spans_too_much(a, b):
            i, j, p = _wide(self.stamps, a_code, b_code, condition)
            self.wide = i + starts[0], j + starts[1], p
            return
        # Limits clipped to the distances that occur give the same result with smaller numbers.
        nearest, farthest = int(b.low.min()) - int(a.high.max()), int(b.high.max()) - int(a.low.min())
        lo, hi = max(condition.lo_us, nearest - 1), min(condition.hi_us, farthest + 1)
        self.engine = _engine(engine, sum(self.rows))
        if lo <= hi:
            self.terms = Terms(lo, hi, condition.ct.numerator, condition.ct.denominator)
            a, b = a._replace(code=a_code), b._replace(code=b_code)
            self.cutter = Cutter(a, b, self.terms, self.engine, starts)

    def chunks(self, size: int, counts: "Counter[str] | None") -> Iterator[Pairs]:
        """Yield the pairs slab by slab, in parts of at most `size`, in reused buffers."""
        if self.wide is not None:
            i, j, _ = self.wide
            if counts is not None:
                counts["pairs"] += len(i)
            yield from ((i[at : at + size], j[at : at + size]) for at in range(0, len(i), size))
        if self.cutter is None:
            return
        i, j = np.empty(size, np.int64), np.empty(size, np.int64)
        for slab in self.cutter.slabs():
            for filled, probes in self.engine.pairs(slab, self.terms, i, j):
                if counts is not None:
                    counts["probes"] += probes
                    counts["pairs"] += filled
                if filled:
                    yield i[:filled], j[:filled]


def _engine(wanted: str | None, rows: int) -> Any:
    """Module of the engine that finds matches."""
    if wanted is None:
        loaded = NUMBA_MODULE in sys.modules
        large = rows >= NUMBA_ROWS and importlib.util.find_spec("numba") is not None
        wanted = "numba" if loaded or large else "numpy"
    return importlib.import_module(NUMBA_MODULE) if wanted == "numba" else matches_numpy


def _wide(stamps: tuple[Array, ...], a_code: Any, b_code: Any, condition: Condition) -> PairsWithProbability:
    """Pairs of stamps that need Python integers."""
    a_min, a_max, b_min, b_max = (x.astype(object) for x in stamps)
    if a_code is None:
        return one_by_one.pairs(None, a_min, a_max, None, b_min, b_max, condition)
    a_at, b_at = np.flatnonzero(a_code >= 0), np.flatnonzero(b_code >= 0)
    i, j, p = one_by_one.pairs(
        a_code[a_at], a_min[a_at], a_max[a_at], b_code[b_at], b_min[b_at], b_max[b_at], condition
    )
    return a_at[i], b_at[j], p
