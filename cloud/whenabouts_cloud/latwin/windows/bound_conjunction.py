"""Conjunctions of local predicates bound to one group: their truth in each state held, and their verdict.

`All` of predicates of one process each, also nested, is such a conjunction, and so is one of these by itself. What a
predicate says of a state is asked once, when the state is new in the windows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from whenabouts_cloud.jit import entry
from whenabouts_cloud.latwin.model.layout import HEAD, META, Ring
from whenabouts_cloud.latwin.model.predicate import All, Function, Predicate, Related
from whenabouts_cloud.latwin.windows.all_true import SEARCH, verdict

KEPT = 16  # predicates that are kept from call to call; beyond, the one bound first is dropped
RELEASED, TOUCHED = META.released, META.touched
OTHER = -1  # the predicate is no conjunction of local ones

Holds = Callable[[int], object]


class Conjunctions:
    """The predicates that one group was asked for, with the truth of those that are conjunctions: n w bytes for each."""

    def __init__(self) -> None:
        self._bound: dict[int, BoundConjunction | Other] = {}

    def verdict(self, ring: Ring, predicate: Predicate | Function) -> int:
        """A verdict of `all_true` over the current windows, or OTHER."""
        bound = self._bound.get(id(predicate))
        if bound is None:
            bound = self._bind(ring, predicate)
        return bound.verdict()

    def clear(self) -> None:
        """Forgets all predicates, as after a restore of the ring."""
        self._bound.clear()

    def _bind(self, ring: Ring, predicate: Predicate | Function) -> "BoundConjunction | Other":
        if not isinstance(predicate, Predicate):
            return Other(predicate)
        parts = local_parts(predicate, len(ring.heads))
        bound = Other(predicate) if parts is None else BoundConjunction(predicate, parts, ring)
        if len(self._bound) == KEPT:
            del self._bound[next(iter(self._bound))]
        self._bound[id(predicate)] = bound
        return bound


class Other(NamedTuple):
    """A function, or a predicate that is no conjunction of local ones."""

    predicate: Predicate | Function  # the reference keeps its id unique

    def verdict(self) -> int:
        """OTHER."""
        return OTHER


class BoundConjunction:
    """The truth of a conjunction in the states that a ring holds. parts: the local predicates of each process."""

    def __init__(self, predicate: Predicate, parts: list[list[Holds]], ring: Ring) -> None:
        n, depth = ring.window.shape[:2]
        true = np.ones((n, depth), np.uint8)  # a process without a predicate is always true
        self.predicate = predicate  # the reference keeps its id unique
        self._arrays = ring.heads, ring.window, true, np.zeros((len(SEARCH), n), np.int64)
        self._verdict: Callable[..., int] = entry(verdict, *self._arrays)
        self._holds = [own[0] if len(own) == 1 else _together(own) for own in parts]
        # Single numbers are read and written faster through these than through numpy.
        self._meta, self._true = ring.meta.data, true.data
        self._first, self._next = ring.heads[:, HEAD.first].data, ring.heads[:, HEAD.next].data
        self._widths = ring.heads[:, HEAD.width].tolist()
        self._released, self._seen = 0, [0] * n  # releases, and next states, whose truth is known

    def verdict(self) -> int:
        """A verdict of `all_true` over the current windows."""
        released = self._meta[RELEASED]
        if released != self._released:
            p = self._meta[TOUCHED]
            end = self._next[p]
            if released == self._released + 1 and self._first[p] < end == self._seen[p] + 1:
                self._true[p, (end - 1) % self._widths[p]] = 1 if self._holds[p](end - 1) else 0
                self._seen[p] = end
            else:
                self._catch_up()
            self._released = released
        return self._verdict(*self._arrays)

    def _catch_up(self) -> None:
        """Asks for all states held that are new."""
        for p, holds in enumerate(self._holds):
            end = self._next[p]
            for number in range(max(self._seen[p], self._first[p]), end):
                self._true[p, number % self._widths[p]] = 1 if holds(number) else 0
            self._seen[p] = end


def local_parts(predicate: Predicate, processes: int) -> list[list[Holds]] | None:
    """The local predicates of each process whose conjunction a predicate is; None if it is something else."""
    parts: list[list[Holds]] = [[] for _ in range(processes)]
    left: list[Any] = [predicate]
    while left:
        node = left.pop()
        if isinstance(node, All):
            left += node.parts()
        elif isinstance(node, Related) and len(node.processes) == 1 and 0 <= node.processes[0] < processes:
            parts[node.processes[0]].append(node.function)
        else:
            return None
    return parts


def _together(own: list[Holds]) -> Holds:
    return lambda number: all(holds(number) for holds in own)
