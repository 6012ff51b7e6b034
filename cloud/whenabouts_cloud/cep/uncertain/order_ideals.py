"""Orders in which the positives of an alternative may happen: its order ideals (downsets) and its linear extensions.

An order ideal is a set of positives that contains, with each positive, all that must happen before it: a possible set of
those that have happened by some moment. A chain of n has n + 1 order ideals, n unordered positives have 2^n. Walks from the
empty to the full order ideal, one positive a step, cover every linear extension once; sums that depend only on the last
positive's time are shared: 2^n steps for n!.

The gaps that are open between two steps are known: `blocked`. All results depend only on the alternative and are cached.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.pattern.plan import Alternative

ORDER_IDEALS = 1024  # AND of 10; more is refused: the exact probability would take seconds a candidate
EXTENSIONS = 40_320  # AND of 8; more is refused where linear extensions are enumerated
NEGATIONS = 62  # bits of a mask

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class OrderIdeals(NamedTuple):
    """D order ideals by size, the empty one first, for K negations and n positives; sets are bits of either."""

    before: Ints  # (n,) all positives before it, also through others
    covers: Ints  # (n,) the latest of these
    first: int  # positives that have none before them
    last: int  # positives that are before none
    left: Ints  # (K,)
    right: Ints  # (K,)
    left_last: Ints  # (K,) left positives that are before no other left one; if there is no left, of all positives
    right_first: Ints  # (K,) right positives with no other right one before them; if there is no right, of all
    sets: Ints  # (D,)
    successors: Ints  # (D, n) place of the order ideal with one more positive, or -1
    blocked: Ints  # (D,) negations whose gap is open when exactly this order ideal has happened


def ideals(alternative: Alternative) -> OrderIdeals:
    """The order ideals of an alternative.

    Raises:
        ValueError: there are more than ORDER_IDEALS order ideals or NEGATIONS negations.
    """
    return _order_ideals(alternative.before, tuple((n.left, n.right) for n in alternative.negations))


@lru_cache(maxsize=256)
def _order_ideals(masks: tuple[int, ...], gaps: tuple[tuple[int, int], ...]) -> OrderIdeals:
    n = len(masks)
    if len(gaps) > NEGATIONS:
        raise ValueError(f"found {len(gaps)} negations in one pattern, expected at most {NEGATIONS}: split the pattern")
    before = _closure(masks)
    places = {0: 0}
    order = [0]
    for mask in order:  # grows while it is read, so it is sorted by size
        for i in range(n):
            more = mask | 1 << i
            if not mask >> i & 1 and before[i] & ~mask == 0 and more not in places:
                places[more] = len(order)
                order.append(more)
        if len(order) > ORDER_IDEALS:
            raise ValueError(f"found more than {ORDER_IDEALS} orders of {n} elements: put some of an AND in a SEQ")
    successors = np.full((len(order), n), -1, np.int64)
    for place, mask in enumerate(order):
        for i in range(n):
            if not mask >> i & 1:
                successors[place, i] = places.get(mask | 1 << i, -1) if before[i] & ~mask == 0 else -1
    everything = (1 << n) - 1
    return OrderIdeals(
        before=np.array(before, np.int64),
        covers=np.array([_latest(mask, before) for mask in before], np.int64),
        first=sum(1 << i for i in range(n) if before[i] == 0),
        last=_latest(everything, before),
        left=np.array([left for left, _ in gaps], np.int64),
        right=np.array([right for _, right in gaps], np.int64),
        left_last=np.array([_latest(left or everything, before) for left, _ in gaps], np.int64),
        right_first=np.array([_earliest(right or everything, before) for _, right in gaps], np.int64),
        sets=np.array(order, np.int64),
        successors=successors,
        blocked=np.array(
            [sum(1 << k for k, (lt, rt) in enumerate(gaps) if lt & ~mask == 0 and rt & mask == 0) for mask in order],
            np.int64,
        ),
    )


def _closure(masks: tuple[int, ...]) -> list[int]:
    """For each positive, all that are before it, also through others; each is listed after those before it."""
    before: list[int] = []
    for mask in masks:
        before.append(mask)
        for j, earlier in enumerate(before[:-1]):
            if mask >> j & 1:
                before[-1] |= earlier
    return before


def _latest(mask: int, before: list[int]) -> int:
    members = [i for i in range(len(before)) if mask >> i & 1]
    return sum(1 << i for i in members if not any(before[j] >> i & 1 for j in members))


def _earliest(mask: int, before: list[int]) -> int:
    return sum(1 << i for i in range(len(before)) if mask >> i & 1 and before[i] & mask == 0)


@lru_cache(maxsize=32)
def extensions(before: tuple[int, ...]) -> Ints:
    """All orders (E, n) in which each positive comes after those before it.

    Raises:
        ValueError: there are more than EXTENSIONS of them.
    """
    closed, n = _closure(before), len(before)
    partial: list[tuple[int, ...]] = [()]
    for _ in range(n):
        partial = [
            (*done, i)
            for done in partial
            for i in range(n)
            if i not in done and all(j in done for j in range(n) if closed[i] >> j & 1)
        ]
        if len(partial) > EXTENSIONS:
            raise ValueError(f"found more than {EXTENSIONS} orders of {n} elements: put some of an AND in a SEQ")
    return np.array(partial, np.int64).reshape(-1, n)
