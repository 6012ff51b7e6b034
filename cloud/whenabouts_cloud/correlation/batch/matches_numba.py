"""Matches of a slab, compiled with numba; same functions and results as `matches_numpy`.

Pairs come from `pairs_numba`. This module finds runs, and also the pairs that `pairs_numba` cannot find (a row with more
candidates than the buffer, keys and middles too far apart for one number). Both sides are traversed once, in the order of
(key, middle). The first candidate of a row of A and the end of its certain matches are found by galloping search from
those of the row before. The candidates left and right of the certain matches are decided one by one (`decide`).

Importing this module loads numba (half a second), and the first use compiles (some seconds). The machine code is cached
in `__pycache__` or, if that is not writable, in the user's cache folder; if neither is writable, each process compiles
again.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from whenabouts_cloud.correlation.batch.decide import Criterion, matches, probability
from whenabouts_cloud.correlation.batch.matches_numpy import GUARD, Runs, by_runs
from whenabouts_cloud.correlation.batch.ordered_numba import in_order
from whenabouts_cloud.correlation.batch.pairs_numba import Filler
from whenabouts_cloud.correlation.batch.reach import Reach, Terms, reach
from whenabouts_cloud.correlation.batch.slabs import Ordered, Slab
from whenabouts_cloud.correlation.batch.sort import deal, order
from whenabouts_cloud.jit import Array, compiled

__all__ = ["counts", "deal", "expand", "in_order", "order", "pair_probability", "pairs", "runs"]

RUNS = 1 << 16  # runs yielded at once, 1.5 MiB
COUNTED = 1 << 15  # size of the buffer when pairs are only counted: a loop that writes nothing would be no faster


def runs(slab: Slab, terms: Terms) -> Iterator[Runs]:
    """Yield all matches of the slab, in parts."""
    a, b = slab.a, slab.b
    table = reach(a.length, b.length, terms)
    keyed = a.code is not None and b.code is not None
    if not keyed:  # then unused
        a, b = a._replace(code=a.row), b._replace(code=b.row)
    size = max(RUNS, len(b.row) // 2 + 2)
    criterion = Criterion(terms.width, terms.p, terms.q, GUARD)
    row = 0
    while row < len(a.row):
        first, last, of_a = (np.empty(size, np.int64) for _ in range(3))
        row, count, probes = _find_runs(row, a, b, keyed, table, terms.centre, criterion, Runs(of_a, first, last, 0))
        yield Runs(of_a[:count], first[:count], last[:count], probes)


def pairs(slab: Slab, terms: Terms, i: Array, j: Array) -> Iterator[tuple[int, int]]:
    """Write the row numbers of the slab's pairs into i and j; yield (pairs, probabilities evaluated) of each filling."""
    filler = Filler.of(slab, terms)
    while filler is not None and filler.row < len(slab.a.row):
        filled, probes = filler.fill(i, j)
        if filled or probes:
            yield filled, probes
        elif filler.row < len(slab.a.row):  # a row with more candidates than fit
            unmatched = slab._replace(a=slab.a.cut(filler.row, filler.row + 1))
            yield from by_runs(runs, expand, unmatched, terms, i, j)
            filler.row += 1
    if filler is None:
        yield from by_runs(runs, expand, slab, terms, i, j)


def counts(slab: Slab, terms: Terms) -> Iterator[tuple[int, int]]:
    """Yield numbers of pairs of the slab and of probabilities evaluated, in parts."""
    return pairs(slab, terms, np.empty(COUNTED, np.int64), np.empty(COUNTED, np.int64))


def expand(part: Runs, slab: Slab, i: Array, j: Array) -> Iterator[int]:
    """Write the row numbers of the runs' pairs into i and j; yield their number when the buffers are full and at the end."""
    run, offset = 0, 0
    while run < len(part.a):
        run, offset, filled = _fill(run, offset, part, slab.a.row, slab.b.row, i, j)
        yield filled


def pair_probability(i: Array, j: Array, stamps: tuple[Array, Array, Array, Array], terms: Terms) -> Array:
    """Return P of pairs of row numbers that satisfy the condition: never below the threshold, within 1e-15.

    stamps: a_min, a_max, b_min, b_max as given, with a span that fits int64.
    """
    chance = np.empty(len(i))
    _fill_probability(i, j, stamps, terms.centre, terms.width, terms.threshold, chance)
    return chance


@compiled
def _place(values: Array, low: int, high: int, guess: int, value: int) -> int:
    """First place in [low, high) with values[place] >= value, searched from the guess outward."""
    step = 1
    if guess < high and values[guess] < value:
        first, last = guess + 1, guess + 1
        while last < high and values[last] < value:
            first = last + 1
            last += step
            step *= 2
        last = min(last, high)
    else:
        first, last = guess, guess
        while first > low and values[first - 1] >= value:
            last = first - 1
            first -= step
            step *= 2
        first = max(first, low)
    while first < last:
        middle = (first + last) >> 1
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


@compiled
def _find_runs(
    row: int, a: Ordered, b: Ordered, keyed: bool, table: Reach, centre: int, criterion: Criterion, out: Runs
) -> tuple[int, int, int]:
    """Find the runs of the rows of A from `row` on, until the next row might not fit; return next row, runs, probes."""
    # Local names for the arrays: numba would update a reference count at each access through the tuple.
    a_middle, a_length, b_middle, b_length = a.middle, a.length, b.middle, b.length
    a_code: Any = a.code
    b_code: Any = b.code
    out_a, out_first, out_last, sure, far = out.a, out.first, out.last, table.sure, table.far
    count, probes, threshold = 0, 0, criterion.p / criterion.q
    low, high = 0, 0 if keyed else len(b_middle)
    first, middle = 0, 0
    begun = row
    while row < len(a_middle):
        if keyed and (row == begun or a_code[row] != a_code[row - 1]):
            low = _place(b_code, 0, len(b_code), high, a_code[row])
            high = _place(b_code, low, len(b_code), low, a_code[row] + 1)
            first, middle = low, low
        kind = (a_length[row] - table.shortest) >> table.shift
        reached, certain = far[kind], sure[kind]
        if reached < 0:
            row += 1
            continue
        target, w_a = a_middle[row] + centre, a_length[row]
        first = _place(b_middle, low, high, first, target - reached)
        if certain >= 0:
            middle = _place(b_middle, first, high, max(middle, first), target + certain + 1)
        # At most every second candidate of a row starts a run.
        if count + (high - first) // 2 + 1 >= len(out_a):
            last = _place(b_middle, first, high, max(middle, first), target + reached + 1)
            if count + (last - first) // 2 + 1 >= len(out_a):
                return row, count, probes
        # `place` moves right; the open run began at `start`, -1 if none is open.
        place, start = first, -1
        while place < high and b_middle[place] <= target + reached:
            apart = abs(b_middle[place] - target)
            if apart <= certain:
                if start < 0:
                    start = place
                place = middle
                continue
            probes += 1
            if matches(apart, w_a, b_length[place], threshold, criterion):
                if start < 0:
                    start = place
            elif start >= 0:
                out_a[count], out_first[count], out_last[count] = row, start, place
                count += 1
                start = -1
            place += 1
        if start >= 0:
            out_a[count], out_first[count], out_last[count] = row, start, place
            count += 1
        row += 1
    return row, count, probes


@compiled
def _fill(run: int, offset: int, runs: Runs, a_row: Array, b_row: Array, i: Array, j: Array) -> tuple[int, int, int]:
    """Write the pairs of the runs from (run, offset) on, until the buffers are full; return next run, next offset, pairs."""
    of_a, first, last = runs.a, runs.first, runs.last
    filled = 0
    while run < len(of_a):
        begin = first[run] + offset
        count = min(last[run] - begin, len(i) - filled)
        row = a_row[of_a[run]]
        for n in range(count):
            i[filled + n] = row
            j[filled + n] = b_row[begin + n]
        filled += count
        offset += count
        if begin + count == last[run]:
            run += 1
            offset = 0
        if filled == len(i):
            break
    return run, offset, filled


@compiled
def _fill_probability(
    i: Array, j: Array, stamps: tuple[Array, Array, Array, Array], centre: int, width: int, threshold: float,
    chance: Array,
) -> None:  # fmt: skip
    a_min, a_max, b_min, b_max = stamps
    for n in range(len(i)):
        x_min, x_max, y_min, y_max = a_min[i[n]], a_max[i[n]], b_min[j[n]], b_max[j[n]]
        apart = abs((y_min - x_min) + (y_max - x_max) - centre)
        chance[n] = max(probability(apart, x_max - x_min, y_max - y_min, width), threshold)
