"""All pairs of two arrays of intervals that satisfy a `Condition`: sorted, counted, as ranges, or streamed out.

    correlate          index arrays (i, j), sorted, on request with probabilities
    count_pairs        how many there are
    correlate_ranges   stretches of B, in an order that is returned with them, instead of single pairs
    correlate_chunks   the pairs through a buffer that is used again, for results larger than memory

The work is cut into slabs that fit the cache (`kernel_slabs`), and one of two engines finds the matches of a slab, with the
same result: `kernel_numpy`, or `kernel_numba`, three times faster, but loaded in half a second and, once after each
installation, compiled in three. So numba is taken where it is installed and there are NUMBA_ROWS rows or more, or it is
loaded already; `engine` says otherwise. Stamps that span too much for int64 go to `kernel`, on Python integers.
"""

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.correlation import kernel, kernel_numpy
from whenabouts_cloud.correlation.condition import Condition
from whenabouts_cloud.correlation.kernel_input import codes, side, spans_too_much
from whenabouts_cloud.correlation.kernel_reach import Terms
from whenabouts_cloud.correlation.kernel_slabs import Cutter, Slab

CHUNK_PAIRS = 1 << 17  # 2 MiB of indices: they stay in the cache of a core while they are consumed
NUMBA_ROWS = 1_000_000  # both sides: numpy takes 0.6 us a row, as long as numba takes to load
NUMBA_MODULE = "whenabouts_cloud.correlation.kernel_numba"
ENGINES = ("numpy", "numba")

Array = npt.NDArray[Any]
Index = npt.NDArray[np.int64]
Probability = npt.NDArray[np.float64]
Pairs = tuple[Index, Index]
PairsWithProbability = tuple[Index, Index, Probability]
Engine = Literal["numpy", "numba"]


class Ranges(NamedTuple):
    """Row i[k] of A matches the rows b_order[first[k] : last[k]] of B; ordered by (i, first), no two of them touch."""

    i: Index
    first: Index
    last: Index
    b_order: Index


class _Join:
    """Two checked sides and a condition, ready to be gone through."""

    def __init__(
        self, a_min: Any, a_max: Any, b_min: Any, b_max: Any, condition: Condition, key_a: Any, key_b: Any, engine: Any
    ) -> None:
        if engine not in (None, *ENGINES):
            raise ValueError(f"engine: found {engine!r}, expected one of {', '.join(ENGINES)}")
        a, b = side(a_min, a_max, "a"), side(b_min, b_max, "b")
        self.rows = len(a.t_min), len(b.t_min)
        a_code, b_code = codes(key_a, key_b, *self.rows)
        self.stamps = (a.t_min, a.t_max, b.t_min, b.t_max)
        self.wide: PairsWithProbability | None = None
        self.cutter: Cutter | None = None
        if not all(self.rows):
            return
        if spans_too_much(a, b):
            self.wide = _wide(self.stamps, a_code, b_code, condition)
            return
        # Limits beyond all distances there are change nothing but the size of numbers.
        nearest, farthest = int(b.low.min()) - int(a.high.max()), int(b.high.max()) - int(a.low.min())
        lo, hi = max(condition.lo_us, nearest - 1), min(condition.hi_us, farthest + 1)
        self.engine = _engine(engine, sum(self.rows))
        if lo <= hi:
            self.terms = Terms(lo, hi, condition.ct.numerator, condition.ct.denominator)
            a, b = a._replace(code=a_code), b._replace(code=b_code)
            self.cutter = Cutter(a, b, self.terms, self.engine.deal)

    def chunks(self, size: int, counts: "Counter[str] | None") -> Iterator[Pairs]:
        """The pairs slab by slab, in buffers that are used again."""
        if self.cutter is None:
            return
        i, j = np.empty(size, np.int64), np.empty(size, np.int64)
        for slab in self.cutter.slabs():
            for found in self.runs(slab, counts):
                for filled in self.engine.expand(found, slab, i, j):
                    yield i[:filled], j[:filled]

    def runs(self, slab: Slab, counts: "Counter[str] | None") -> Iterator[kernel_numpy.Runs]:
        for found in self.engine.runs(slab, self.terms):
            if counts is not None:
                counts["probes"] += found.probes
                counts["pairs"] += int((found.last - found.first).sum())
            yield found


@overload
def correlate(
    a_min: Any, a_max: Any, b_min: Any, b_max: Any, condition: Condition, key_a: Any = None, key_b: Any = None,
    probability: Literal[False] = False, *, engine: Engine | None = None,
) -> Pairs: ...  # fmt: skip
@overload
def correlate(
    a_min: Any, a_max: Any, b_min: Any, b_max: Any, condition: Condition, key_a: Any = None, key_b: Any = None,
    *, probability: Literal[True], engine: Engine | None = None,
) -> PairsWithProbability: ...  # fmt: skip
def correlate(
    a_min: Any,
    a_max: Any,
    b_min: Any,
    b_max: Any,
    condition: Condition,
    key_a: Any = None,
    key_b: Any = None,
    probability: bool = False,
    *,
    engine: Engine | None = None,
) -> Pairs | PairsWithProbability:
    """Indices i into A and j into B of all pairs that satisfy the condition, ordered by (i, j), with their probability.

    Stamps are whole numbers in ticks of the condition, in any order: int64, or Python integers of any size. Keys, if given,
    are arrays or lists of hashable values; only equal ones pair up, and None, NaN and NaT equal nothing. Probabilities are
    within 1e-15 and never below the confidence. Takes 24 bytes a pair while it runs, 32 with probability.

    Raises:
        ValueError: shapes or types do not fit, an interval ends before it begins, or keys are on one side only.

    >>> within = Condition("within", d=10, confidence="0.2")
    >>> correlate(np.array([0]), np.array([100]), np.array([300, 40]), np.array([300, 41]), within, probability=True)
    (array([0]), array([1]), array([0.2]))
    """
    join = _Join(a_min, a_max, b_min, b_max, condition, key_a, key_b, engine)
    if join.wide is not None:
        return join.wide if probability else join.wide[:2]
    i, j = _sorted_pairs(join)
    if not probability:
        return i, j
    if not len(i):
        return i, j, np.empty(0)
    return i, j, join.engine.pair_probability(i, j, join.stamps, join.terms)


def count_pairs(
    a_min: Any,
    a_max: Any,
    b_min: Any,
    b_max: Any,
    condition: Condition,
    key_a: Any = None,
    key_b: Any = None,
    *,
    engine: Engine | None = None,
    counts: "Counter[str] | None" = None,
) -> int:
    """How many pairs satisfy the condition; arguments and errors as in `correlate`.

    counts, if given, gets "pairs" and "probes", the probabilities that had to be evaluated, added.
    """
    join = _Join(a_min, a_max, b_min, b_max, condition, key_a, key_b, engine)
    if join.wide is not None:
        return len(join.wide[0])
    if join.cutter is None:
        return 0
    found: Counter[str] = Counter()
    for slab in join.cutter.slabs():
        for _ in join.runs(slab, found):
            pass
    if counts is not None:
        counts.update(found)
    return found["pairs"]


def correlate_chunks(
    a_min: Any,
    a_max: Any,
    b_min: Any,
    b_max: Any,
    condition: Condition,
    key_a: Any = None,
    key_b: Any = None,
    *,
    chunk_pairs: int = CHUNK_PAIRS,
    engine: Engine | None = None,
    counts: "Counter[str] | None" = None,
) -> Iterator[Pairs]:
    """The pairs (i, j) in parts of at most `chunk_pairs`, each pair once; arguments and errors as in `correlate`.

    The arrays are views of one buffer, which the next step overwrites: consume or copy them. Rows of A that follow each
    other in time come out near each other; beyond that there is no order. counts as in `count_pairs`.
    """
    if chunk_pairs < 1:
        raise ValueError(f"chunk_pairs: found {chunk_pairs}, expected at least 1")
    join = _Join(a_min, a_max, b_min, b_max, condition, key_a, key_b, engine)
    if join.wide is None:
        return join.chunks(chunk_pairs, counts)
    i, j, _ = join.wide
    return ((i[at : at + chunk_pairs], j[at : at + chunk_pairs]) for at in range(0, len(i), chunk_pairs))


def correlate_ranges(
    a_min: Any,
    a_max: Any,
    b_min: Any,
    b_max: Any,
    condition: Condition,
    key_a: Any = None,
    key_b: Any = None,
    *,
    engine: Engine | None = None,
) -> Ranges:
    """The pairs as stretches of B in the order of (key, middle); arguments and errors as in `correlate`.

    A row of A has one stretch for all that matches surely, and few more at its borders where the lengths differ: the result
    grows with the rows of A, not with the pairs.
    """
    join = _Join(a_min, a_max, b_min, b_max, condition, key_a, key_b, engine)
    if join.wide is not None:
        return _ranges_of(join.wide[0], join.wide[1])
    nothing = np.empty(0, np.int64)
    if join.cutter is None:
        return Ranges(nothing, nothing, nothing, nothing)
    a, b = join.cutter.order(0), join.cutter.order(1)
    parts = [
        (slab.a.row[found.a], found.first + slab.b_start, found.last + slab.b_start)
        for slab in join.cutter.ordered_slabs(a, b)
        for found in join.runs(slab, None)
    ]
    if not parts:
        return Ranges(nothing, nothing, nothing, b.row)
    i, first, last = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(i, kind="stable")
    return Ranges(i[order], first[order], last[order], b.row)


def _sorted_pairs(join: _Join) -> Pairs:
    """All pairs, ordered by packing both indices into one number: twice as fast as ordering by two."""
    bits = join.rows[1].bit_length()
    if join.rows[0].bit_length() + bits > 63:
        raise ValueError(f"rows: found {join.rows[0]} and {join.rows[1]}, expected a product below 2^63")
    parts: list[Index] = []
    if join.cutter is not None:
        for slab in join.cutter.slabs():
            part = _packed(join, slab, bits)
            part.sort()
            parts.append(part)
        if not join.cutter.rows_follow:
            parts = [np.concatenate(parts)] if parts else []
            for part in parts:
                part.sort()
    total = sum(len(part) for part in parts)
    i, j = np.empty(total, np.int64), np.empty(total, np.int64)
    at = 0
    for part in parts:
        np.right_shift(part, bits, out=i[at : at + len(part)])
        np.bitwise_and(part, (1 << bits) - 1, out=j[at : at + len(part)])
        at += len(part)
    return i, j


def _packed(join: _Join, slab: Slab, bits: int) -> Index:
    """The pairs of a slab as i << bits | j."""
    found = list(join.runs(slab, None))
    total = sum(int((part.last - part.first).sum()) for part in found)
    packed, at = np.empty(total, np.int64), 0
    i, j = np.empty(CHUNK_PAIRS, np.int64), np.empty(CHUNK_PAIRS, np.int64)
    for part in found:
        for filled in join.engine.expand(part, slab, i, j):
            target = packed[at : at + filled]
            np.left_shift(i[:filled], bits, out=target)
            target |= j[:filled]
            at += filled
    return packed


def _engine(wanted: str | None, rows: int) -> Any:
    """The module that finds matches."""
    if wanted is None:
        loaded = NUMBA_MODULE in sys.modules
        large = rows >= NUMBA_ROWS and importlib.util.find_spec("numba") is not None
        wanted = "numba" if loaded or large else "numpy"
    return importlib.import_module(NUMBA_MODULE) if wanted == "numba" else kernel_numpy


def _wide(stamps: tuple[Array, ...], a_code: Any, b_code: Any, condition: Condition) -> PairsWithProbability:
    """Pairs of stamps that need Python integers."""
    a_min, a_max, b_min, b_max = (x.astype(object) for x in stamps)
    if a_code is None:
        return kernel.pairs(None, a_min, a_max, None, b_min, b_max, condition)
    a_at, b_at = np.flatnonzero(a_code >= 0), np.flatnonzero(b_code >= 0)
    i, j, p = kernel.pairs(a_code[a_at], a_min[a_at], a_max[a_at], b_code[b_at], b_min[b_at], b_max[b_at], condition)
    return a_at[i], b_at[j], p


def _ranges_of(i: Index, j: Index) -> Ranges:
    """Each pair as a stretch of its own, B in the order of its rows."""
    return Ranges(i, j, j + 1, np.arange(int(j.max()) + 1 if len(j) else 0))
