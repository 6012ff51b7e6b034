"""The matches of a slab, compiled with numba: the same functions as `kernel_numpy`, with the same results.

Both sides are gone through once, in the order of (key, middle). The first candidate of a row of A and the end of its sure
matches are found by galloping from those of the row before; the candidates left and right of the sure ones are evaluated one
by one. Where the probability comes closer to the threshold than GUARD, exact integers of 128 bits and their product with the
confidence decide.

Importing this module loads numba (half a second), and the first use compiles (three seconds). The machine code is kept in
`__pycache__` or, where that cannot be written, in the user's cache folder; where neither can be, each process compiles anew.
"""

import importlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.correlation.kernel_numpy import GUARD, Runs
from whenabouts_cloud.correlation.kernel_reach import Terms, reach
from whenabouts_cloud.correlation.kernel_slabs import Slab

RUNS = 1 << 16  # runs given out at once, 1.5 MiB

Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])
Limbs = tuple[Any, Any]  # uint64: high, low

_numba = importlib.import_module("numba")


def _compiled(function: Function) -> Function:
    """The function as machine code, kept from process to process where there is a place to keep it."""
    try:
        found: Function = _numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # numba finds no folder that it can write to
        found = _numba.njit(nogil=True)(function)
    return found


def runs(slab: Slab, terms: Terms) -> Iterator[Runs]:
    """All matches of the slab, in parts."""
    a, b = slab.a, slab.b
    table = reach(a.length, b.length, terms)
    keyed = a.code is not None and b.code is not None
    a_code, b_code = (a.code, b.code) if a.code is not None and b.code is not None else (a.row, b.row)  # else unused
    size = max(RUNS, len(b.row) // 2 + 2)
    row = 0
    while row < len(a.row):
        out = tuple(np.empty(size, np.int64) for _ in range(3))
        row, found, probes = _find_runs(
            row, a.middle, a.length, a_code, b.middle, b.length, b_code, keyed,
            table.shortest, table.shift, table.sure, table.far, terms.centre, terms.width, terms.p, terms.q, GUARD, *out,
        )  # fmt: skip
        yield Runs(out[0][:found], out[1][:found], out[2][:found], probes)


def expand(found: Runs, slab: Slab, i: Array, j: Array) -> Iterator[int]:
    """Row numbers of the pairs of the runs, written into i and j; each time one is full, and at the end, how many."""
    run, offset = 0, 0
    while run < len(found.a):
        run, offset, filled = _fill(run, offset, found.a, found.first, found.last, slab.a.row, slab.b.row, i, j)
        yield filled


def deal(
    t_min: Array, t_max: Array, code: Array | None, earliest: int, shift: int, buckets: int
) -> tuple[Array, Array, Array | None, Array]:
    """The rows by (t_min - earliest) >> shift, with their numbers: read in order, written to one place per bucket."""
    out_min, out_max, row = (np.empty(len(t_min), np.int64) for _ in range(3))
    out_code = np.empty(0 if code is None else len(code), np.int64)
    codes = out_code if code is None else code
    _scatter(t_min, t_max, codes, earliest, shift, buckets, out_min, out_max, row, out_code)
    return out_min, out_max, None if code is None else out_code, row


def pair_probability(i: Array, j: Array, stamps: tuple[Array, Array, Array, Array], terms: Terms) -> Array:
    """P for pairs of row numbers that satisfy the condition: never below the threshold, within 1e-15.

    stamps are a_min, a_max, b_min, b_max as they were given, spanning little enough for int64.
    """
    chance = np.empty(len(i))
    _fill_probability(i, j, *stamps, terms.centre, terms.width, terms.threshold, chance)
    return chance


@_compiled
def _scatter(
    t_min: Array, t_max: Array, code: Array, earliest: int, shift: int, buckets: int, out_min: Array, out_max: Array,
    out_row: Array, out_code: Array,
) -> None:  # fmt: skip
    place = np.zeros(buckets + 1, np.int64)
    for row in range(len(t_min)):
        place[((t_min[row] - earliest) >> shift) + 1] += 1
    for bucket in range(buckets):
        place[bucket + 1] += place[bucket]
    for row in range(len(t_min)):
        bucket = (t_min[row] - earliest) >> shift
        at = place[bucket]
        place[bucket] += 1
        out_min[at], out_max[at], out_row[at] = t_min[row], t_max[row], row
        if len(code):
            out_code[at] = code[row]


@_compiled
def _place(values: Array, low: int, high: int, guess: int, value: int) -> int:
    """The first place in [low, high) with values[place] >= value, looked for from the guess outward."""
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


@_compiled
def _distribution(s: int, low: int, high: int) -> float:
    """P(U(0, low) + U(0, high) <= s), low <= high. The first test decides the tie of two points."""
    if s >= low + high:
        return 1.0
    if s <= 0:
        return 0.0
    if s < low:
        return float(s) * float(s) / (2.0 * float(low) * float(high))
    if s <= high:
        return (float(s) - float(low) / 2.0) / float(high)
    rest = float(low + high - s)
    return 1.0 - rest * rest / (2.0 * float(low) * float(high))


@_compiled
def _probability(apart: int, w_a: int, w_b: int, width: int) -> float:
    """P for |M| and two lengths, within 1e-15."""
    low, high = min(w_a, w_b), max(w_a, w_b)
    reached = width + w_a + w_b
    return _distribution((reached - apart) >> 1, low, high) + _distribution((reached + apart) >> 1, low, high) - 1.0


@_compiled
def _matches(apart: int, w_a: int, w_b: int, width: int, p: int, q: int, threshold: float, guard: float) -> Any:
    """Whether the pair satisfies the condition."""
    above = _probability(apart, w_a, w_b, width) - threshold
    if abs(above) >= guard:
        return above > 0.0
    return _exactly(apart, w_a, w_b, width, p, q)


@_compiled
def _product(x: Any, y: Any) -> Limbs:
    """x * y of two uint64 as (high, low)."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    x_high, x_low, y_high, y_low = x >> half, x & mask, y >> half, y & mask
    low = x_low * y_low
    cross = x_high * y_low + (low >> half)
    other = x_low * y_high + (cross & mask)
    return x_high * y_high + (cross >> half) + (other >> half), (other << half) | (low & mask)


@_compiled
def _plus(x: Limbs, y: Limbs) -> Limbs:
    low = x[1] + y[1]
    return x[0] + y[0] + np.uint64(low < x[1]), low


@_compiled
def _minus(x: Limbs, y: Limbs) -> Limbs:
    return x[0] - y[0] - np.uint64(x[1] < y[1]), x[1] - y[1]


@_compiled
def _square(x: int) -> Limbs:
    return _product(np.uint64(max(x, 0)), np.uint64(max(x, 0)))


@_compiled
def _area(s: int, w_a: int, w_b: int) -> Limbs:
    """2 w_a w_b times the distribution at s, from 0 to w_a + w_b: s^2 - (s - w_a)+^2 - (s - w_b)+^2."""
    return _minus(_minus(_square(s), _square(s - w_a)), _square(s - w_b))


@_compiled
def _at_least(x: Limbs, q: int, y: Limbs, p: int) -> Any:
    """x * q >= y * p, numbers of 192 bits."""
    x_low, y_low = _product(x[1], np.uint64(q)), _product(y[1], np.uint64(p))
    x_high = _plus(_product(x[0], np.uint64(q)), (np.uint64(0), x_low[0]))
    y_high = _plus(_product(y[0], np.uint64(p)), (np.uint64(0), y_low[0]))
    if x_high[0] != y_high[0]:
        return x_high[0] > y_high[0]
    if x_high[1] != y_high[1]:
        return x_high[1] > y_high[1]
    return x_low[1] >= y_low[1]


@_compiled
def _exactly(apart: int, w_a: int, w_b: int, width: int, p: int, q: int) -> Any:
    """The decision in whole numbers, after F + G - 1 as a ratio of areas; of lengths with a point, as all are below 2^62."""
    total = w_a + w_b
    before, after = (width + total - apart) >> 1, (width + total + apart) >> 1
    if total == 0:
        return before >= 0 and after >= 0
    before, after = min(max(before, 0), total), min(max(after, 0), total)
    none = np.uint64(0)
    if w_a == 0 or w_b == 0:
        if before + after < total:
            return False
        return _at_least((none, np.uint64(before + after - total)), q, (none, np.uint64(total)), p)
    whole = _product(np.uint64(2 * w_a), np.uint64(w_b))
    both = _plus(_area(before, w_a, w_b), _area(after, w_a, w_b))
    if both[0] < whole[0] or (both[0] == whole[0] and both[1] < whole[1]):
        return False
    return _at_least(_minus(both, whole), q, whole, p)


@_compiled
def _find_runs(
    row: int, a_middle: Array, a_length: Array, a_code: Array, b_middle: Array, b_length: Array, b_code: Array,
    keyed: bool, shortest: int, shift: int, sure: Array, far: Array, centre: int, width: int, p: int, q: int,
    guard: float, out_a: Array, out_first: Array, out_last: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Runs of the rows of A from `row` on, until the next one might not fit: next row, runs, probes."""
    found, probes, threshold = 0, 0, p / q
    low, high = 0, 0 if keyed else len(b_middle)
    first, middle = 0, 0
    begun = row
    while row < len(a_middle):
        if keyed and (row == begun or a_code[row] != a_code[row - 1]):
            low = _place(b_code, 0, len(b_code), high, a_code[row])
            high = _place(b_code, low, len(b_code), low, a_code[row] + 1)
            first, middle = low, low
        kind = (a_length[row] - shortest) >> shift
        reached, certain = far[kind], sure[kind]
        if reached < 0:
            row += 1
            continue
        target, w_a = a_middle[row] + centre, a_length[row]
        first = _place(b_middle, low, high, first, target - reached)
        # From here on `place` walks right; a run that is open began at `start`.
        place, start = first, -1
        if certain >= 0:
            middle = _place(b_middle, first, high, max(middle, first), target + certain + 1)
        # A row has at most every second candidate as a run.
        if found + (high - first) // 2 + 1 >= len(out_a):
            last = _place(b_middle, first, high, max(middle, first), target + reached + 1)
            if found + (last - first) // 2 + 1 >= len(out_a):
                return row, found, probes
        while place < high and b_middle[place] <= target + reached:
            apart = abs(b_middle[place] - target)
            if apart <= certain:
                if start < 0:
                    start = place
                place = middle
                continue
            probes += 1
            if _matches(apart, w_a, b_length[place], width, p, q, threshold, guard):
                if start < 0:
                    start = place
            elif start >= 0:
                out_a[found], out_first[found], out_last[found] = row, start, place
                found += 1
                start = -1
            place += 1
        if start >= 0:
            out_a[found], out_first[found], out_last[found] = row, start, place
            found += 1
        row += 1
    return row, found, probes


@_compiled
def _fill(
    run: int, offset: int, run_a: Array, run_first: Array, run_last: Array, a_row: Array, b_row: Array, i: Array,
    j: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """Pairs of the runs from (run, offset) on, until the buffers are full: next run, next offset, pairs."""
    filled = 0
    while run < len(run_a):
        first = run_first[run] + offset
        count = min(run_last[run] - first, len(i) - filled)
        row = a_row[run_a[run]]
        for at in range(count):
            i[filled + at] = row
            j[filled + at] = b_row[first + at]
        filled += count
        offset += count
        if first + count == run_last[run]:
            run += 1
            offset = 0
        if filled == len(i):
            break
    return run, offset, filled


@_compiled
def _fill_probability(
    i: Array, j: Array, a_min: Array, a_max: Array, b_min: Array, b_max: Array, centre: int, width: int,
    threshold: float, chance: Array,
) -> None:  # fmt: skip
    for at in range(len(i)):
        x_min, x_max, y_min, y_max = a_min[i[at]], a_max[i[at]], b_min[j[at]], b_max[j[at]]
        apart = abs((y_min - x_min) + (y_max - x_max) - centre)
        chance[at] = max(_probability(apart, x_max - x_min, y_max - y_min, width), threshold)
