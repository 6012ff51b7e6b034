"""Pairs in the order of (i, j) without a sort, compiled with numba; for slabs whose rows follow each other in the input.

Rows of A are visited in the order of their numbers. The matches of a row are marked as bits in a set of B's row numbers,
and reading the set gives them in order: a match costs the same among ten or among thousands. A second set has a bit for
each word of the first that is in use, so that numbers far apart do not make the reading long.

Memory that is seen for the first time costs more than the join. Until their number is known, pairs are therefore kept as
distances from the slab's first rows, which mostly fit 16 bits, in blocks that return to the system as they are copied.

Cost: some 100 ns a row of A with as many of B, and 5 ns a pair, apart from new memory; 4 or 8 bytes a pair of work memory.
"""

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from whenabouts_cloud.arrays import fresh
from whenabouts_cloud.correlation.batch import matches_numpy
from whenabouts_cloud.correlation.batch.decide import Criterion
from whenabouts_cloud.correlation.batch.matches_numpy import Part
from whenabouts_cloud.correlation.batch.pairs_numba import Axis, Filler, decided
from whenabouts_cloud.correlation.batch.reach import Terms
from whenabouts_cloud.correlation.batch.slabs import Slab
from whenabouts_cloud.jit import Array, compiled, inlined

FIRST_PAIRS = 1 << 17  # of the first block: few pairs need no more
BLOCK_PAIRS = 1 << 22  # of the others, which take memory only as they are filled
NARROW, WIDE = 1 << 16, 1 << 31  # distances of row numbers below these are kept in 16 and 32 bits
WORD_BITS = 6

trailing_zeros: Any = importlib.import_module("numba.cpython.unsafe.numbers").trailing_zeros


def in_order(slabs: Iterable[Slab], terms: Terms) -> Iterator[Part]:
    """Yield the pairs of slabs with A in the order of its rows, in parts, ordered by (i, j) within and between parts."""
    block, used, size = np.empty((2, 0), np.uint16), 0, FIRST_PAIRS
    for slab in slabs:
        filler = Filler.of(slab, terms)
        i_start, j_start = int(slab.a.row[0]), int(slab.b.row.min())
        width = int(slab.b.row.max()) - j_start + 1
        widest = max(width, int(slab.a.row[-1]) - i_start + 1)
        if filler is None or widest > WIDE:
            yield from matches_numpy.in_order([slab], terms)
            continue
        kind = np.uint16 if widest <= NARROW else np.int32
        if block.dtype != kind:
            block, used = np.empty((2, 0), kind), 0
        words = np.zeros(_words(width), np.int64)
        groups = np.zeros(_words(len(words)), np.int64)
        row = 0
        while row < len(slab.a.row):
            free = block[:, used:]
            row, filled = _fill(row, *filler.prepared(), i_start, j_start, words, groups, free[0], free[1])
            if filled:
                yield Part(i_start, j_start, free[0, :filled], free[1, :filled])
                used += filled
            if row < len(slab.a.row):
                size = max(size, filler.candidates(row))
                block, used, size = fresh(2 * size, kind).reshape(2, size), 0, BLOCK_PAIRS


def _words(bits: int) -> int:
    return (bits >> WORD_BITS) + 1


@inlined
def _mark(number: Any, hit: Any, words: Array, groups: Array) -> None:
    """Add the number to the set if hit is 1."""
    word = np.uintp(number >> WORD_BITS)
    words[word] |= hit << (number & 63)
    groups[word >> np.uintp(WORD_BITS)] |= hit << np.int64(word & np.uintp(63))


@compiled
def _fill(
    row: int, a: Axis, b: Axis, places: Array, criterion: Criterion, i_start: int, j_start: int, words: Array,
    groups: Array, i: Array, j: Array,
) -> tuple[Any, Any]:  # fmt: skip
    """Write the pairs of the rows of A from `row` on, until one might not fit; return next row, pairs."""
    a_axis, a_length, a_row, b_axis, b_length, b_row = a.place, a.length, a.row, b.place, b.length, b.row
    filled: Any = 0
    first: Any
    threshold, one = criterion.p / criterion.q, np.int64(1)
    while row < len(a_row):
        first, sure_first = np.int64(places[0, row]), np.int64(places[1, row])
        sure_last, last = np.int64(places[2, row]), np.int64(places[3, row])
        if filled + last - first > len(i):
            break
        own, w_a, target = a_row[row] - i_start, a_length[row], a_axis[row]
        lowest, highest = one << 31, np.int64(-1)
        for place in range(sure_first, sure_last):
            number = b_row[np.uintp(place)] - j_start
            _mark(number, one, words, groups)
            lowest, highest = min(lowest, number), max(highest, number)
        left = sure_first - first
        for probe in range(left + last - sure_last):
            here = np.uintp(first + probe + (sure_last - sure_first if probe >= left else 0))
            number = b_row[here] - j_start
            hit = np.int64(decided(b_axis[here] - target, w_a, b_length[here], threshold, criterion))
            _mark(number, hit, words, groups)
            lowest, highest = min(lowest, number), max(highest, number)
        for group in range(lowest >> 2 * WORD_BITS, (highest >> 2 * WORD_BITS) + 1):
            used = groups[np.uintp(group)]
            groups[np.uintp(group)] = 0
            while used != 0:
                word = np.uintp((group << WORD_BITS) + np.int64(trailing_zeros(used)))
                used &= used - 1
                bits = words[word]
                words[word] = 0
                while bits != 0:
                    i[np.uintp(filled)] = own
                    j[np.uintp(filled)] = np.int64(word << np.uintp(WORD_BITS)) + np.int64(trailing_zeros(bits))
                    filled += 1
                    bits &= bits - 1
        row += 1
    return row, filled
