"""In which orders the positives of a variant may happen: its downsets, and its linear extensions.

A downset is a set of positives that holds, with each, all that must happen before it: what may have happened at a moment. A
chain of n has n + 1 of them, n unordered ones 2^n. Walking from the empty to the full downset, one positive a step, goes
through every linear extension once, but sums that depend on the last positive's time alone are shared: 2^n steps for n!.

Between two steps the gaps that are open are known: `blocked`. Everything here depends on the variant alone and is kept.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from whenabouts_cloud.pattern.plan import Alternative

ORDER_IDEALS = 1024  # AND of 10; more is refused: the exact probability would take seconds a candidate
EXTENSIONS = 40_320  # AND of 8; more is refused where linear extensions are gone through one by one
NEGATIONS = 62  # bits of a mask

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class OrderIdeals(NamedTuple):
    """Sets are bits of positives, or of negations; D downsets by size, the empty one first, K negations, n positives."""

    before: Ints  # (n,) closed under "before"
    covers: Ints  # (n,) of these the latest ones
    first: int  # positives with none before them
    last: int  # positives that are before none
    left: Ints  # (K,)
    right: Ints  # (K,)
    left_last: Ints  # (K,) of the left ones those that are before no other left one; of all positives if there is none
    right_first: Ints  # (K,) of the right ones those with no other right one before them; of all if there is none
    sets: Ints  # (D,)
    successors: Ints  # (D, n) place of the downset with one more positive, or -1
    blocked: Ints  # (D,) negations whose gap is open when this downset has happened and no more


def ideals(alternative: Alternative) -> OrderIdeals:
    """The downsets of a variant.

    Raises:
        ValueError: more than DOWNSETS downsets or NEGATIONS negations.
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
    for mask in order:  # grows while it is read: by size
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
    """Everything that is before, also through others; positives are listed in an order that agrees with time."""
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
        ValueError: more than EXTENSIONS of them.
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
