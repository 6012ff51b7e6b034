"""Rows that wait for a time: a binary heap of (time, place) over rows that do not move; for buffers and pending matches."""

from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.cep.kernel.layout import TIMER
from whenabouts_cloud.jit import Array, compiled
from whenabouts_cloud.research.baselines.stacks import doubled


class TimerHeap(NamedTuple):
    """`order[: size[0]]` is the heap; order[size[0]:, TIMER.place] are the free places of `rows`."""

    order: Array
    rows: Array
    size: Array


class Guarantee(NamedTuple):
    """Frontier in force when a block begins, (1,)."""

    frontier: Array


def empty_held(width: int) -> TimerHeap:
    """Empty heap for rows of `width` numbers."""
    order = np.stack([np.zeros(8, np.int64), np.arange(8, dtype=np.int64)], axis=1)
    return TimerHeap(order, np.zeros((8, width), np.int64), np.zeros(1, np.int64))


@compiled
def hold(held: TimerHeap, time: int, row: Array) -> TimerHeap:
    """Add the row, due at the time; grow if there is no room."""
    if held.size[0] == len(held.order):
        order = doubled(held.order)
        for n in range(len(held.order), len(order)):
            order[n, TIMER.place] = n
        held = TimerHeap(order, doubled(held.rows), held.size)
    order = held.order
    at = held.size[0]
    held.size[0] += 1
    place = order[at, TIMER.place]
    held.rows[place] = row
    while at > 0 and order[(at - 1) >> 1, TIMER.due] > time:
        order[at, TIMER.due], order[at, TIMER.place] = (
            order[(at - 1) >> 1, TIMER.due],
            order[(at - 1) >> 1, TIMER.place],
        )
        at = (at - 1) >> 1
    order[at, TIMER.due], order[at, TIMER.place] = time, place
    return held


@compiled
def take(held: TimerHeap) -> Any:
    """Remove the row that is due first; return its place, where it can be read until the next `hold`."""
    order = held.order
    held.size[0] -= 1
    last = held.size[0]
    first, time, place = order[0, TIMER.place], order[last, TIMER.due], order[last, TIMER.place]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        if child + 1 < last and order[child + 1, TIMER.due] < order[child, TIMER.due]:
            child += 1
        if order[child, TIMER.due] >= time:
            break
        order[at, TIMER.due], order[at, TIMER.place] = order[child, TIMER.due], order[child, TIMER.place]
        at = child
    order[at, TIMER.due], order[at, TIMER.place] = time, place
    order[last, TIMER.place] = first
    return first
