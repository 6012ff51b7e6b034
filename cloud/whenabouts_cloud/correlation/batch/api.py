"""All pairs of two arrays of intervals that satisfy a `Condition`: sorted, counted, as ranges, or in chunks.

    correlate          index arrays (i, j), sorted, on request with probabilities
    correlate_narrow   the same in half of the memory, for callers that take rows at once
    count_pairs        how many there are
    correlate_ranges   ranges of B, in an order that is returned with them, instead of single pairs
    correlate_chunks   the pairs in a reused buffer, for results larger than memory

`join` does the work with one of two engines; both give the same result.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.arrays import fresh
from whenabouts_cloud.correlation.batch.join import Given, Index, Join, Pairs, PairsWithProbability
from whenabouts_cloud.pattern.condition import Condition

CHUNK_PAIRS = 1 << 17  # 2 MiB of indices, which stay in a core's cache while they are consumed
Engine = Literal["numpy", "numba"]
AnyIndex = npt.NDArray[np.int32] | Index


class Ranges(NamedTuple):
    """Row i[k] of A matches the rows b_order[first[k] : last[k]] of B; ordered by (i, first), no two of them touch."""

    i: Index
    first: Index
    last: Index
    b_order: Index


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
    within 1e-15 and never below the confidence. Takes 16 bytes a pair while it runs, 24 if rows are
    in any other order than nearly that of time; with probability 8 more.

    Raises:
        ValueError: shapes or types do not fit, an interval ends before it begins, or keys are on one side only.

    >>> within = Condition("within", d=10, confidence="0.2")
    >>> correlate(np.array([0]), np.array([100]), np.array([300, 40]), np.array([300, 41]), within, probability=True)
    (array([0]), array([1]), array([0.2]))
    """
    join = Join(Given(a_min, a_max, key_a), Given(b_min, b_max, key_b), condition, engine)
    return _with_probability(join, np.int64) if probability else _sorted_pairs(join, np.int64)


def correlate_narrow(
    a: Given, b: Given, condition: Condition, *, engine: Engine | None = None
) -> tuple[AnyIndex, AnyIndex, npt.NDArray[np.float64]]:
    """The pairs of `correlate` with their probability. Row numbers are int32 where they fit and rows need no sort.

    For callers that only take rows: half of the memory that is new, which costs more than finding the pairs.
    """
    join = Join(a, b, condition, engine)
    return _with_probability(join, np.int32 if max(join.rows) < 1 << 31 else np.int64)


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
    """Number of pairs that satisfy the condition; arguments and errors as in `correlate`.

    counts, if given: its entries "pairs" and "probes" (probabilities that had to be evaluated) are increased. Where
    stamps need Python integers, every candidate is evaluated and "probes" is not increased.
    """
    join = Join(Given(a_min, a_max, key_a), Given(b_min, b_max, key_b), condition, engine)
    tally: Counter[str] = Counter()
    if join.wide is not None:
        tally["pairs"] = len(join.wide[0])
    elif join.cutter is not None:
        for slab in join.cutter.slabs():
            for pairs, probes in join.engine.counts(slab, join.terms):
                tally["pairs"] += pairs
                tally["probes"] += probes
    if counts is not None:
        counts.update(tally)
    return tally["pairs"]


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
    """Yield the pairs (i, j) in parts of at most `chunk_pairs`, each pair once; arguments and errors as in `correlate`.

    The arrays are views of one buffer, which the next step overwrites: consume or copy them. Rows of A that are adjacent
    in time come out near each other; no other order is guaranteed. counts as in `count_pairs`. Besides the input, one
    slab and the buffer are in memory if rows are nearly in the order of time; rows in any other order take four bytes a
    row more.
    """
    if chunk_pairs < 1:
        raise ValueError(f"chunk_pairs: found {chunk_pairs}, expected at least 1")
    join = Join(Given(a_min, a_max, key_a), Given(b_min, b_max, key_b), condition, engine)
    return join.chunks(chunk_pairs, counts)


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
    """The pairs as ranges of B in the order of (key, middle); arguments and errors as in `correlate`.

    A row of A has one range for all its certain matches, and few more at its borders where the lengths differ: the size
    of the result grows with the rows of A, not with the pairs.
    """
    join = Join(Given(a_min, a_max, key_a), Given(b_min, b_max, key_b), condition, engine)
    if join.wide is not None:
        return _ranges_of(join.wide[0], join.wide[1])
    nothing = np.empty(0, np.int64)
    if join.cutter is None:
        return Ranges(nothing, nothing, nothing, nothing)
    a, b = join.cutter.order(0), join.cutter.order(1)
    parts = [
        (slab.a.row[runs.a], runs.first + slab.b_start, runs.last + slab.b_start)
        for slab in join.cutter.ordered_slabs(a, b)
        for runs in join.engine.runs(slab, join.terms)
    ]
    if not parts:
        return Ranges(nothing, nothing, nothing, b.row)
    i, first, last = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(i, kind="stable")
    return Ranges(i[order], first[order], last[order], b.row)


def _with_probability(join: Join, kind: Any) -> PairsWithProbability:
    if join.wide is not None:
        return join.wide
    i, j = _sorted_pairs(join, kind)
    if not len(i):
        return i, j, np.empty(0)
    return i, j, join.engine.pair_probability(i, j, join.stamps, join.terms)


def _sorted_pairs(join: Join, kind: Any) -> Pairs:
    """All pairs in order, as numbers of this type where no sort is needed; parts are released as soon as they are copied."""
    if join.wide is not None:
        return join.wide[:2]
    if join.cutter is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if not join.cutter.rows_follow:
        return _sorted_at_once(join)
    parts = list(join.engine.in_order(join.cutter.slabs_by_row(), join.terms))[::-1]
    total = sum(len(part.i) for part in parts)
    i, j = fresh(total, kind), fresh(total, kind)
    at = 0
    while parts:
        part = parts.pop()
        end = at + len(part.i)
        np.add(part.i, part.i_start, out=i[at:end], dtype=kind)
        np.add(part.j, part.j_start, out=j[at:end], dtype=kind)
        at = end
    return i, j


def _sorted_at_once(join: Join) -> Pairs:
    """All pairs in order, by packing both indices into one number, which is twice as fast as ordering by two."""
    bits = join.rows[1].bit_length()
    if join.rows[0].bit_length() + bits > 63:
        raise ValueError(f"rows: found {join.rows[0]} and {join.rows[1]}, expected a product below 2^63")
    parts = [np.empty(0, np.int64)]
    for i, j in join.chunks(CHUNK_PAIRS, None):
        parts.append(i << bits)
        parts[-1] |= j
    packed = np.concatenate(parts)
    parts.clear()
    packed.sort()
    return packed >> bits, packed & ((1 << bits) - 1)


def _ranges_of(i: Index, j: Index) -> Ranges:
    """Each pair as a separate range, B in the order of its rows."""
    return Ranges(i, j, j + 1, np.arange(int(j.max()) + 1 if len(j) else 0))
