"""Checks the input's stamps and keys and converts them to the form the engines work on.

Stamps become int64 arrays. Stamps that do not fit int64, or span too much for sums of four stamps, are detected by
`spans_too_much` and handled as Python integers. Keys become small integers, equal where the keys are equal; None, NaN and
NaT equal nothing, as in a database, and become NO_KEY.

Cost: 2 ns a stamp; some 100 ns a key by sorting if all keys have one plain type, 200 ns by hashing otherwise.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.arrays import Array

ZONE = 4096  # rows summarised by one entry of `Side.low` and `Side.high`
ZONES_AT_ONCE = 16  # checked in one step: as many as fit the cache
SAFE_SPAN = 1 << 59  # of all stamps: M, D, T and their sum then stay below 2^63
NO_KEY = -1
PLAIN = "iubSUmM"  # kinds of numpy types for which np.unique groups exactly the equal keys

Index = npt.NDArray[np.int64]


class Side(NamedTuple):
    """Checked stamps of one side, and the earliest minimum and latest maximum of each ZONE rows.

    `code`: keys as numbers, None without keys. `row`, if given, is the order in which rows are grouped into zones; the
    stamps and codes stay in the order of the input.
    """

    t_min: Array
    t_max: Array
    low: Array
    high: Array
    code: Index | None = None
    row: Array | None = None


class Numbered(NamedTuple):
    """Keys of a side that are numbers from 0 on already, int64, equal where keys are; NO_KEY equals nothing."""

    code: Index


def side(t_min: Any, t_max: Any, name: str) -> Side:
    """Return the checked stamps of side `name` ("a" or "b").

    Raises:
        ValueError: they are not one-dimensional arrays of whole numbers of one length, or an interval ends before it begins.
    """
    low, high = _stamps(t_min, f"{name}_min"), _stamps(t_max, f"{name}_max")
    if len(low) != len(high):
        raise ValueError(
            f"{name}_min and {name}_max: found {len(low)} and {len(high)} stamps, expected one of each for every interval"
        )
    if low.dtype == object or high.dtype == object:
        low, high = low.astype(object), high.astype(object)
    zones = -(-len(low) // ZONE)
    lows, highs = np.empty(zones, low.dtype), np.empty(zones, low.dtype)
    for zone in range(0, zones, ZONES_AT_ONCE):
        start, stop = zone * ZONE, (zone + ZONES_AT_ONCE) * ZONE
        wrong = np.asarray(low[start:stop] > high[start:stop], dtype=bool)
        if wrong.any():
            at = start + int(wrong.argmax())
            raise ValueError(
                f"interval {at} of {name}: found [{low[at]}, {high[at]}], expected the minimum first; "
                "remove such rows before correlating"
            )
        zone_bounds = survey(low[start:stop], high[start:stop])
        lows[zone : zone + ZONES_AT_ONCE], highs[zone : zone + ZONES_AT_ONCE] = zone_bounds
    return Side(low, high, lows, highs)


def survey(t_min: Array, t_max: Array) -> tuple[Array, Array]:
    """Earliest minimum and latest maximum of each zone: `low` and `high` of `Side`."""
    starts = np.arange(0, len(t_min), ZONE)
    return np.minimum.reduceat(t_min, starts), np.maximum.reduceat(t_max, starts)


def spans_too_much(a: Side, b: Side) -> bool:
    """Return True if int64 is too narrow for the stamps of two sides, neither of them empty."""
    if a.t_min.dtype == object or b.t_min.dtype == object:
        return True
    return max(int(a.high.max()), int(b.high.max())) - min(int(a.low.min()), int(b.low.min())) > SAFE_SPAN


def codes(key_a: Any, key_b: Any, rows_a: int, rows_b: int) -> tuple[Index, Index] | tuple[None, None]:
    """Return the keys of both sides as numbers from 0, NO_KEY for keys that equal nothing; None when there are no keys.

    Raises:
        ValueError: keys are given for one side only, are too many or too few, or cannot be compared by hash.
    """
    if key_a is None and key_b is None:
        return None, None
    if key_a is None or key_b is None:
        raise ValueError("keys: found them on one side, expected them on both or on none")
    if isinstance(key_a, Numbered) and isinstance(key_b, Numbered):
        return key_a.code, key_b.code
    a, b = _keys(key_a, rows_a, "key_a"), _keys(key_b, rows_b, "key_b")
    if a.dtype.kind == b.dtype.kind and a.dtype.kind in PLAIN and (a.dtype == b.dtype or a.dtype.kind not in "mM"):
        values, code = np.unique(np.concatenate([a, b]), return_inverse=True)
        if values.dtype.kind in "mM" and len(values):
            code = np.where(np.isnat(values)[code], NO_KEY, code)
        return code[:rows_a].astype(np.int64), code[rows_a:].astype(np.int64)
    known: dict[Any, int] = {}
    return _hashed(a, known, "key_a"), _hashed(b, known, "key_b")


def _stamps(given: Any, name: str) -> Array:
    stamps = np.asarray(given)
    if stamps.ndim != 1:
        raise ValueError(f"{name}: found {stamps.ndim} dimensions, expected a one-dimensional array of stamps")
    if not len(stamps):
        return np.empty(0, np.int64)
    if stamps.dtype == np.uint64 and int(stamps.max()) >= 1 << 63:
        return stamps.astype(object)
    if stamps.dtype.kind in "iu":
        return stamps.astype(np.int64, copy=False)
    if stamps.dtype == object and all(isinstance(x, int) and not isinstance(x, bool) for x in stamps.tolist()):
        return stamps
    raise ValueError(
        f"{name}: found {stamps.dtype} stamps, expected whole numbers (int64); convert them to ticks such as microseconds "
        "first, as floating point loses microseconds and nulls have no place in time"
    )


def _keys(given: Any, rows: int, name: str) -> Array:
    if isinstance(given, (list, tuple)):
        keys = np.fromiter(given, dtype=object, count=len(given))
    else:
        keys = np.asarray(given)
    if keys.ndim != 1 or len(keys) != rows:
        raise ValueError(f"{name}: found shape {keys.shape}, expected a key for each of the {rows} intervals")
    return keys


def _hashed(keys: Array, known: dict[Any, int], name: str) -> Index:
    code = np.empty(len(keys), np.int64)
    try:
        for at, key in enumerate(keys.tolist() if keys.dtype.kind not in "mM" else keys.astype(object)):
            # A value that does not equal itself (NaN, NaT) equals no other either.
            code[at] = NO_KEY if key is None or key != key else known.setdefault(key, len(known))
    except TypeError as error:
        raise ValueError(f"{name}: found {key!r}, expected keys that can be hashed: {error}") from None
    return code
