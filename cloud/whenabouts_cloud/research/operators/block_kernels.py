"""Compiled loops of the block operators: sure ranges are filled, probe regions are evaluated or looked up.

Plain functions, compiled by numba at first use (3 s, kept in numba's cache if that is writable). All arrays are
int64. Bases are in the order of their maxima (or middles), targets too. Limits of `target_bounds` are taken by the class of
the base's length, relative to its `anchor`. A probability is
evaluated in the branch form of the trapezoid, within 1e-15; closer to ct than GUARD the pair is put in `near` and decided
by the caller in integers. Lengths and distances stay below 2^61 (ensured by `block_operator`), so every sum fits.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

GUARD = 1e-9  # the float error is below 1e-15 of the probability; beyond 2^53 of a length below 1e-12
SATISFIED, VIOLATED = 1, 2  # states of a look-up entry; 0 is "not initialised"


BEGIN, SURE_BEGIN, SURE_END, END = range(4)  # columns of ranges: a target may match, matches for sure, from .. to


class Bases(NamedTuple):
    """A block; `centre` is the doubled middle with the condition's centre added, so that distances are target - centre."""

    anchor: Ints
    centre: Ints
    length: Ints


class Targets(NamedTuple):
    """Held tuples of the other stream, ordered by `key`: the maximum, or the doubled middle."""

    key: Ints
    middle: Ints
    length: Ints


class Bands(NamedTuple):
    """Limits of `target_bounds` in the columns BEGIN to END; a row for each class of lengths: rho .. rho + step - 1, ..."""

    rows: Ints
    rho: int
    step: int


class Arrivals(NamedTuple):
    """Arrival times, doubled middles and lengths of intervals."""

    arrived: Ints
    middle: Ints
    length: Ints


def _reached(s: int, w1: int, w2: int) -> float:
    """P(U(0, w1) + U(0, w2) <= s/2). The first test decides the tie of two points."""
    total = 2 * (w1 + w2)
    if s >= total:
        return 1.0
    if s <= 0:
        return 0.0
    low = min(w1, w2)
    high = max(w1, w2)
    if s < 2 * low:
        return float(s) * float(s) / (8.0 * low * high)
    if s <= 2 * high:
        return float(s - low) / (2.0 * high)
    return 1.0 - float(total - s) * float(total - s) / (8.0 * low * high)


def _probability(distance: int, w1: int, w2: int, width: int) -> float:
    """Probability of a pair whose middles are `distance`/2 from the condition's centre; `width` is hi - lo."""
    distance = abs(distance)
    total = w1 + w2
    first = _reached(width + total - distance, w1, w2)
    if width >= total:  # the other tail is not cut off
        return first
    return first + _reached(width + total + distance, w1, w2) - 1.0


def _ranges(bases: Bases, keys: Ints, bands: Bands) -> Ints:
    """For each base the places in the targets, half open, in the columns BEGIN, SURE_BEGIN, SURE_END, END."""
    anchor, lengths, rows = bases.anchor, bases.length, bands.rows
    ranges = np.empty((len(anchor), 4), np.int64)
    for i in range(len(anchor)):
        row = rows[(lengths[i] - bands.rho) // bands.step]
        low = np.searchsorted(keys, anchor[i] + row[BEGIN])
        high = max(low, np.searchsorted(keys, anchor[i] + row[END], side="right"))
        sure_low = sure_high = high
        if row[SURE_BEGIN] <= row[SURE_END]:
            sure_low = low + np.searchsorted(keys[low:high], anchor[i] + row[SURE_BEGIN])
            sure_high = max(sure_low, low + np.searchsorted(keys[low:high], anchor[i] + row[SURE_END], side="right"))
        ranges[i, BEGIN], ranges[i, SURE_BEGIN], ranges[i, SURE_END], ranges[i, END] = low, sure_low, sure_high, high
    return ranges


def match_block(
    bases: Bases, targets: Targets, bands: Bands, width: int, ct: float
) -> tuple[Ints, Ints, Ints, Ints, int, int]:
    """Return places (base, target) that match, places too near to ct to decide, evaluations, sure pairs."""
    centre, lengths, target_middle, target_length = bases.centre, bases.length, targets.middle, targets.length
    ranges = _ranges(bases, targets.key, bands)
    room = int(np.sum(ranges[:, END] - ranges[:, BEGIN]))
    out_i, out_j = np.empty(room, np.int64), np.empty(room, np.int64)
    sure = int(np.sum(ranges[:, SURE_END] - ranges[:, SURE_BEGIN]))
    near_i, near_j = np.empty(room - sure, np.int64), np.empty(room - sure, np.int64)
    count = near = 0
    for i in range(len(centre)):
        low, sure_low, sure_high, high = ranges[i, BEGIN], ranges[i, SURE_BEGIN], ranges[i, SURE_END], ranges[i, END]
        for j in range(sure_low, sure_high):
            out_i[count] = i
            out_j[count] = j
            count += 1
        for j in range(low, high):
            if sure_low <= j < sure_high:
                continue
            p = _probability(target_middle[j] - centre[i], lengths[i], target_length[j], width)
            if abs(p - ct) < GUARD:
                near_i[near], near_j[near] = i, j
                near += 1
            elif p >= ct:
                out_i[count], out_j[count] = i, j
                count += 1
    return out_i[:count], out_j[:count], near_i[:near], near_j[:near], room - sure, sure


def _add_sure(ranges: Ints, out_i: Ints, out_j: Ints) -> int:
    """Write the pairs that match for sure; return their number."""
    count = 0
    for i in range(len(ranges)):
        for j in range(ranges[i, SURE_BEGIN], ranges[i, SURE_END]):
            out_i[count], out_j[count] = i, j
            count += 1
    return count


def _still_matches(right: int, begin: int, end: int, tail: int, stored: int, width: int) -> bool:
    """True if a target that matched the base with the minimum `stored` also matches the base [begin, end].

    `tail` is the target's minimum on the right side, its maximum on the left. Only one tail of the pair's difference may
    be cut off: on the right, the target's minimum is not more than d before the base's maximum.
    """
    if right:
        return begin >= stored and tail >= end - width
    return begin <= stored and tail <= begin + width


def match_block_lookup(
    bases: Bases, targets: Targets, bands: Bands, width: int, ct: float
) -> tuple[Ints, Ints, Ints, Ints, int, int, int]:
    """Return what `match_block` returns, found with the look-up table of `lookup` in both probe regions, and the hits."""
    centre, lengths, target_middle, target_length = bases.centre, bases.length, targets.middle, targets.length
    ranges = _ranges(bases, targets.key, bands)
    room = int(np.sum(ranges[:, END] - ranges[:, BEGIN]))
    out_i, out_j = np.empty(room, np.int64), np.empty(room, np.int64)
    sure = int(np.sum(ranges[:, SURE_END] - ranges[:, SURE_BEGIN]))
    near_i, near_j = np.empty(room - sure, np.int64), np.empty(room - sure, np.int64)
    count, near, hits = _add_sure(ranges, out_i, out_j), 0, 0
    count_of_bases = len(centre)
    stored_end = np.empty(len(target_middle), np.int64)
    for right in range(2):
        # Left regions from the largest base to the smallest, right ones from the smallest to the largest. Each walk has a
        # table for its range, from the first to the last target that a base of this block may probe on that side.
        state = np.zeros(len(target_middle), np.int8)
        for walk in range(count_of_bases):
            i = walk if right else count_of_bases - 1 - walk
            low, high = (ranges[i, SURE_END], ranges[i, END]) if right else (ranges[i, BEGIN], ranges[i, SURE_BEGIN])
            begin = centre[i] - lengths[i]  # the base's doubled minimum, moved by the condition's centre
            end = centre[i] + lengths[i]
            for j in range(low, high):
                tail = target_middle[j] - target_length[j] if right else target_middle[j] + target_length[j]
                if state[j] == SATISFIED and _still_matches(right, begin, end, tail, stored_end[j], width):
                    hits += 1
                    out_i[count], out_j[count] = i, j
                    count += 1
                    continue
                p = _probability(target_middle[j] - centre[i], lengths[i], target_length[j], width)
                stored_end[j] = begin
                state[j] = VIOLATED
                if abs(p - ct) < GUARD:  # decided later; not reused, which costs an evaluation but is always correct
                    near_i[near], near_j[near] = i, j
                    near += 1
                elif p >= ct:
                    state[j] = SATISFIED
                    out_i[count], out_j[count] = i, j
                    count += 1
    return out_i[:count], out_j[:count], near_i[:near], near_j[:near], room - sure - hits, sure, hits


def extent(rows: Ints) -> tuple[int, int, int, int, int]:
    """Shortest, longest, least minimum, least and greatest maximum of intervals (`rows[0]` to `rows[1]`)."""
    shortest = longest = rows[1, 0] - rows[0, 0]
    first, least, last = rows[0, 0], rows[1, 0], rows[1, 0]
    for at in range(1, rows.shape[1]):
        t_min, t_max = rows[0, at], rows[1, at]
        shortest, longest = min(shortest, t_max - t_min), max(longest, t_max - t_min)
        first, least, last = min(first, t_min), min(least, t_max), max(last, t_max)
    return shortest, longest, first, least, last


def waits(now: int, base: Arrivals, target: Arrivals, places: Ints, target_places: Ints) -> tuple[int, int]:
    """Sums over the pairs of places: `now` minus the later arrival, and minus the later maximum."""
    arrived, middle, lengths = base
    target_arrived, target_middle, target_length = target
    by_arrival = by_maximum = 0
    for at in range(len(places)):
        i, j = places[at], target_places[at]
        by_arrival += now - max(arrived[i], target_arrived[j])
        by_maximum += now - (max(middle[i] + lengths[i], target_middle[j] + target_length[j]) >> 1)
    return by_arrival, by_maximum


@cache
def compiled(name: str) -> Any:
    """Return the function of this module with that name, compiled.

    Raises:
        ImportError: numba is not installed.
    """
    try:
        import numba
    except ImportError:
        raise ImportError("block operators: found no numba, expected it: pip install 'whenabouts[cloud]'") from None
    here = globals()
    for helper in ("_reached", "_probability", "_ranges", "_add_sure", "_still_matches"):
        if not hasattr(here[helper], "py_func"):
            here[helper] = numba.njit(here[helper])
    function = here[name]
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # the cache is not writable, as in a read-only installation without a home
        return numba.njit(function)
