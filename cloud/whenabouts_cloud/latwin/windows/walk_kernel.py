"""Compiled part of the walks: masks of the states consistent with each state, and the lexical walk over them.

Each process has a field of as many bits as it has states held; masks[i, k] has the bits of all states of later
processes that are consistent with state k of process i. The AND of the masks of a prefix gives its continuations, and
in each field they are one run of bits, because clocks never fall. Fields of up to 64 bits share words, none is split
between two; a longer one has words for itself. Between C_min and C_max a prefix always has a continuation (from C_min
joined with the least CGSs above the prefix), so no step of the walk is wasted, provided clocks carry all that follows
from them; if not, the result is the same and some steps are wasted.
"""

import importlib
from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.jit import Array, compiled, compiled_noref, inlined

_bits: Any = importlib.import_module("numba.cpython.unsafe.numbers")
leading_zeros, trailing_zeros = _bits.leading_zeros, _bits.trailing_zeros  # of 0: 64
WORD = 64
SIGN = -(1 << 63)  # flips the sign bit, to compare words as unsigned
SLACK = 4  # rows written beyond a run


class Masks(NamedTuple):
    """The masks of a window (n + 1, w, words), and where the field of each process lies in them."""

    masks: Array
    word: Array
    shift: Array
    size: Array


class Cursor(NamedTuple):
    """Position of a walk: continuations of each prefix, the next state of each process and the last one, rows so far."""

    may: Array  # (n, words)
    place: Array  # (n + 1,), the last is the current depth of the walk
    end: Array  # (n,)
    head: Array  # (n, row words)


@compiled
def build(
    first: Array, count: Array, clocks: Array, low: Array, high: Array, word: Array, shift: Array, words: int
) -> Array:
    """The masks (n, w, words), and as one more entry that of all states from low to high: (n + 1, w, words)."""
    n, w = clocks.shape[:2]
    masks = np.zeros((n + 1, w, words), np.int64)
    for d in range(n):
        _set(masks[n, 0], word[d], shift[d], low[d], high[d])
    for i in range(n):
        for d in range(i + 1, n):
            last = low[d] - 1
            for k in range(low[i], high[i] + 1):
                while last < high[d] and clocks[d, last + 1, i] <= first[i] + k:
                    last += 1
                _set(masks[i, k], word[d], shift[d], max(low[d], clocks[i, k, d] - first[d]), last)
    return masks


@inlined
def _set(mask: Array, word: int, shift: int, low: int, high: int) -> None:
    for k in range(low, high + 1):
        bit = shift + k
        mask[word + bit // WORD] |= 1 << (bit % WORD)


@inlined
def _run(a: Array, b: Array, word: int, shift: int, size: int) -> Any:
    """First and last bit of a field that both masks have; 0 and -1 if there is none."""
    low, high = np.int64(0), np.int64(-1)
    if size <= WORD:
        bits = a[word] & b[word] & (-1 if size == WORD else ((1 << size) - 1) << shift)
        if bits != 0:
            low, high = trailing_zeros(bits) - shift, 63 - leading_zeros(bits) - shift
        return low, high
    for m in range((size + WORD - 1) // WORD):
        bits = a[word + m] & b[word + m]
        if bits != 0:
            if high < 0:
                low = m * WORD + trailing_zeros(bits)
            high = m * WORD + 63 - leading_zeros(bits)
    return low, high


@compiled
def count_all(fields: Masks) -> int:
    """Number of CGSs: a walk over the prefixes without the last process, which adds up the runs of the last one."""
    masks, word, shift, size = fields
    n, words = len(size), masks.shape[2]
    may = np.empty((n, words), np.int64)
    place, end = np.empty(n, np.int64), np.empty(n, np.int64)
    may[0] = masks[n, 0]
    place[0], end[0] = _run(may[0], may[0], word[0], shift[0], size[0])
    total, d, before_last = 0, 0, n - 2
    while d >= 0:
        if place[d] > end[d]:
            d -= 1
            continue
        if d == before_last:
            for k in range(place[d], end[d] + 1):
                low, high = _run(may[d], masks[d, k], word[d + 1], shift[d + 1], size[d + 1])
                total += high - low + 1
            d -= 1
            continue
        chosen = place[d]
        place[d] += 1
        for m in range(word[d + 1], words):
            may[d + 1, m] = may[d, m] & masks[d, chosen, m]
        d += 1
        place[d], end[d] = _run(may[d], may[d], word[d], shift[d], size[d])
    return total


@compiled_noref
def begin(fields: Masks, cursor: Cursor) -> None:
    """Puts a walk at its start."""
    masks, word, shift, size = fields
    may, place, end, head = cursor
    for m in range(masks.shape[2]):
        may[0, m] = masks[len(size), 0, m]
    for r in range(head.shape[1]):
        head[0, r] = 0
    place[0], end[0] = _run(may[0], may[0], word[0], shift[0], size[0])
    place[len(size)] = 0


@compiled_noref
def fill(fields: Masks, cursor: Cursor, lanes: int, out: Array) -> int:
    """Writes the next CGSs, in lexical order, as rows (block, row words), `lanes` places a word; returns how many, or 0.

    The block has room for all states of the last process and SLACK; a run that might not fit is left for the next
    block.
    """
    masks, word, shift, size = fields
    may, place, end, head = cursor
    n, words, row_words, full = len(size), masks.shape[2], out.shape[1], out.shape[0] - size[-1] - SLACK
    bits, last, before_last = WORD // lanes, n - 1, n - 2
    lane, lane_before = (last % lanes) * bits, (before_last % lanes) * bits
    d, row = place[n], 0
    while d >= 0 and row <= full:
        if place[d] > end[d]:
            d -= 1
            continue
        chosen = place[d]
        place[d] += 1
        if d < before_last:
            for m in range(word[d + 1], words):
                may[d + 1, m] = may[d, m] & masks[d, chosen, m]
            for r in range(row_words):
                head[d + 1, r] = head[d, r]
            head[d + 1, d // lanes] += chosen << ((d % lanes) * bits)
            d += 1
            place[d], end[d] = _run(may[d], may[d], word[d], shift[d], size[d])
            continue
        low, high = _run(may[d], masks[d, chosen], word[last], shift[last], size[last])
        for r in range(row_words):
            fixed = head[d, r]
            if r == before_last // lanes:
                fixed += chosen << lane_before
            step, k = 0, 0
            if r == last // lanes:
                fixed += low << lane
                step = 1 << lane
            while k <= high - low:  # four at a time, the surplus is overwritten by the next run
                for more in range(4):
                    out[row + k + more, r] = fixed + (k + more) * step
                k += 4
        row += high - low + 1
    place[n] = d
    return row


@compiled_noref
def advance(
    first: Array, count: Array, clocks: Array, lanes: int, level: Array, place: Array, key: Array, out: Array
) -> int:  # fmt: skip
    """Writes the CGSs one step after those of a level, each once; returns how many, or -1: no room.

    Rows (m, row words) are in ascending order in and out. One more step of the same process keeps rows in order, so the
    level is merged with itself, once for each process.
    """
    n, m, row_words = len(first), level.shape[0], level.shape[1]
    for d in range(n):
        place[d] = -1
        _next(first, count, clocks, lanes, level, d, place, key)
    written = 0
    while True:
        best = -1
        for d in range(n):
            if place[d] < m and (best < 0 or _compare(key, d, best, row_words) < 0):
                best = d
        if best < 0:
            return written
        if written == out.shape[0]:
            return -1
        for r in range(row_words):
            out[written, r] = key[best, r]
        for d in range(n - 1, -1, -1):
            if d != best and place[d] < m and _compare(key, d, best, row_words) == 0:
                _next(first, count, clocks, lanes, level, d, place, key)
        _next(first, count, clocks, lanes, level, best, place, key)
        written += 1


@compiled_noref
def _compare(key: Array, a: int, b: int, row_words: int) -> int:
    for r in range(row_words):
        if key[a, r] != key[b, r]:
            return -1 if key[a, r] ^ SIGN < key[b, r] ^ SIGN else 1
    return 0


@compiled_noref
def _next(
    first: Array, count: Array, clocks: Array, lanes: int, level: Array, d: int, place: Array, key: Array
) -> None:  # fmt: skip
    """Moves process d to the next row of the level in which it may take a step, and stores the row after the step."""
    n, m, bits = len(first), level.shape[0], WORD // lanes
    every = (1 << bits) - 1
    while True:
        place[d] += 1
        row = place[d]
        if row >= m:
            return
        after = (level[row, d // lanes] >> ((d % lanes) * bits) & every) + 1
        free = after < count[d]
        if free:
            for i in range(n):
                other = level[row, i // lanes] >> ((i % lanes) * bits) & every
                free = free and (i == d or clocks[d, after, i] <= first[i] + other)
        if free:
            for r in range(level.shape[1]):
                key[d, r] = level[row, r]
            key[d, d // lanes] += 1 << ((d % lanes) * bits)
            return
