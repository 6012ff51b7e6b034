"""Sorts rows into the order the kernels need, compiled with numba; same functions as in `matches_numpy`.

Key, middle and row number are packed into one number, numpy's vectorized sort orders these numbers, and the kernels'
columns are unpacked from them: each stamp is read twice and each result written once. Rows that are already in order are
not sorted.
"""

from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.correlation.batch import input, matches_numpy
from whenabouts_cloud.correlation.batch.input import NO_KEY
from whenabouts_cloud.correlation.batch.slabs import Dealt, Ordered
from whenabouts_cloud.jit import Array, compiled

INT64 = np.iinfo(np.int64)


class Packing(NamedTuple):
    """Layout of packed numbers: key, middle minus the lowest, row; middles are minus twice the base."""

    base: int
    lowest: int
    row_bits: int
    middle_bits: int


def order(
    t_min: Array, t_max: Array, code: Array | None, row: Array | None, start: int, base: int, longest: int
) -> Ordered:
    """Return the rows up to length `longest` by (code, middle), middles minus twice the base, numbered row + start."""
    stamps, codes, rows = (_plain(t_min), _plain(t_max)), _plain(code), _plain(row)
    useful, lowest, highest, most, ready = _survey(*stamps, codes, base, longest)
    row_bits, middle_bits = len(t_min).bit_length(), (highest - lowest).bit_length()
    if row_bits + middle_bits + most.bit_length() > 63:
        return matches_numpy.order(t_min, t_max, code, row, start, base, longest)
    packed = np.empty(useful, np.int64)
    packing = Packing(base, lowest, row_bits, middle_bits)
    _pack(*stamps, codes, longest, packing, packed)
    if not ready:
        packed.sort()
    middle, length, number = (np.empty(useful, np.int64) for _ in range(3))
    key = np.empty(0 if code is None else useful, np.int64)
    ordered = Ordered(middle, length, number, key)
    _unpack(packed, *stamps, rows, start, packing, ordered)
    return ordered if code is not None else ordered._replace(code=None)


def deal(t_min: Array, t_max: Array, earliest: int, shift: int, buckets: int) -> Dealt:
    """Return the row numbers ordered by (t_min - earliest) >> shift, and the `survey` of the rows in that order."""
    zone = input.ZONE
    zones = -(-len(t_min) // zone)
    row = np.empty(len(t_min), np.int32 if len(t_min) < 1 << 31 else np.int64)
    low, high = np.full(zones, INT64.max), np.full(zones, INT64.min)
    dealt = row, low, high
    _scatter(_plain(t_min), _plain(t_max), earliest, shift, buckets, zone, dealt)
    return dealt


def _plain(given: Array | None) -> Array:
    """Contiguous read-only view of the input, so that the functions are compiled once."""
    view = np.ascontiguousarray(np.empty(0, np.int64) if given is None else given).view()
    view.flags.writeable = False
    return view


@compiled
def _survey(t_min: Array, t_max: Array, code: Array, base: int, longest: int) -> tuple[Any, ...]:
    """Number of useful rows, their lowest and highest middle, their highest code, and True if they are in order."""
    useful, lowest, highest, most, ready, before = 0, np.int64(1) << 62, -(np.int64(1) << 62), 0, len(code) == 0, 0
    for row in range(len(t_min)):
        middle = (t_min[row] - base) + (t_max[row] - base)
        if t_max[row] - t_min[row] <= longest and (len(code) == 0 or code[row] != NO_KEY):
            ready &= useful == 0 or middle >= before
            useful, before = useful + 1, middle
            lowest, highest = min(lowest, middle), max(highest, middle)
            if len(code):
                most = max(most, code[row])
    return useful, min(lowest, highest), highest, most, ready


@compiled
def _pack(t_min: Array, t_max: Array, code: Array, longest: int, packing: Packing, packed: Array) -> None:
    base, lowest, row_bits, middle_bits = packing
    count = 0
    for row in range(len(t_min)):
        if t_max[row] - t_min[row] <= longest and (len(code) == 0 or code[row] != NO_KEY):
            packed[count] = (((t_min[row] - base) + (t_max[row] - base) - lowest) << row_bits) | row
            if len(code):
                packed[count] |= code[row] << (row_bits + middle_bits)
            count += 1


@compiled
def _unpack(
    packed: Array, t_min: Array, t_max: Array, rows: Array, start: int, packing: Packing, ordered: Ordered
) -> None:
    middle, length, number = ordered.middle, ordered.length, ordered.row
    code: Any = ordered.code
    _, lowest, row_bits, middle_bits = packing
    row_mask, middle_mask = (np.int64(1) << row_bits) - 1, (np.int64(1) << middle_bits) - 1
    for n in range(len(packed)):
        row = np.uintp(packed[n] & row_mask)
        middle[n] = lowest + ((packed[n] >> row_bits) & middle_mask)
        length[n] = t_max[row] - t_min[row]
        number[n] = (rows[row] if len(rows) else np.int64(row)) + start
        if len(code):
            code[n] = packed[n] >> (row_bits + middle_bits)


@compiled
def _scatter(t_min: Array, t_max: Array, earliest: int, shift: int, buckets: int, zone_rows: int, dealt: Dealt) -> None:
    rows, low, high = dealt
    place = np.zeros(buckets + 1, np.int64)
    for row in range(len(t_min)):
        place[((t_min[row] - earliest) >> shift) + 1] += 1
    for bucket in range(buckets):
        place[bucket + 1] += place[bucket]
    for row in range(len(t_min)):
        bucket = (t_min[row] - earliest) >> shift
        to = place[bucket]
        place[bucket] += 1
        rows[to] = row
        zone = to // zone_rows
        low[zone], high[zone] = min(low[zone], t_min[row]), max(high[zone], t_max[row])
