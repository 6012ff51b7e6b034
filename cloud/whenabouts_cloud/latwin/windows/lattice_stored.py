"""The stored lattice of a group's windows: the box, and predicates bound to it."""

from functools import cached_property
from typing import Any

import numpy as np

from whenabouts_cloud.jit import Array, compiled_inline, compiled_noref, entry
from whenabouts_cloud.latwin.model.layout import HEAD, META, NO_ROOM, Ring
from whenabouts_cloud.latwin.model.predicate import Function, Predicate
from whenabouts_cloud.latwin.windows.all_true import CLOCKS_DISAGREE, IMPOSSIBLE, UNAVOIDABLE
from whenabouts_cloud.latwin.windows.bound import BoundPredicate
from whenabouts_cloud.latwin.windows.bound_conjunction import KEPT, OTHER, Conjunctions
from whenabouts_cloud.latwin.windows.box import FACTS, Box, drop, new_box, rebuild, step
from whenabouts_cloud.latwin.windows.ring import accept, note, release, renew
from whenabouts_cloud.latwin.windows.walk_box import any_true, greatest, least, list_states, mark_true, unavoidable

NOTHING = object()  # no predicate is this one


class Stored:
    """All CGSs as a bit set over the box.

    Raises:
        BoxLimitError: the box is too large.
    """

    def __init__(self, ring: Ring) -> None:
        self.box = new_box([int(w) for w in ring.heads[:, HEAD.width]])
        n = len(ring.heads)
        ends = np.zeros((3, n), np.int64)
        self._ends = (ends[0], ends[1], ends[2])  # C_min, C_max, and a cursor between them
        self._facts = self.box.facts.data
        self._conjunctions = Conjunctions()
        self._bound: dict[int, tuple[Predicate, BoundPredicate]] = {}
        self._asked: Any = NOTHING  # the predicate that `_verdict` belongs to, until the next change
        self._verdict = OTHER
        self._marked: Any = None  # the predicate whose bits are in `_true`, until the next change
        self._push = entry(push, ring, self.box, 0, 0, ends[0], 0, 0)
        words = self.box.words
        self._avoids = entry(unavoidable_now, ring, self.box, *self._ends, words, words)

    @cached_property
    def _true(self) -> Array:
        """The cells where a predicate holds that is no conjunction."""
        return np.zeros_like(self.box.words)

    @cached_property
    def _reached(self) -> Array:
        """Working memory for Def of such a predicate."""
        return np.zeros_like(self.box.words)

    def push(self, ring: Ring, process: int, state: int, clock: Array, lo: int, hi: int) -> int:
        """Takes a report, see `ring.accept`."""
        self._asked, self._marked = NOTHING, None
        status: int = self._push(ring, self.box, process, state, clock, lo, hi)
        return status

    def note(self, ring: Ring, process: int, state: int, clock: Array, lo: int) -> int:
        """Takes a clock heartbeat, see `ring.note`."""
        self._asked, self._marked = NOTHING, None
        return int(take_note(ring, self.box, process, state, clock, lo))

    def renew(self, ring: Ring, process: int, state: int) -> int:
        """Takes a renewal, see `ring.renew`."""
        self._asked, self._marked = NOTHING, None
        return int(begin_anew(ring, self.box, process, state))

    def rebuild(self, ring: Ring) -> None:
        """Rebuilds the box after a restore of the ring."""
        self._asked, self._marked = NOTHING, None
        self._bound.clear()
        self._conjunctions.clear()
        self.box.facts[FACTS.retracted] = 0
        rebuild(ring, self.box)

    def size(self, ring: Ring) -> int:
        """Number of CGSs."""
        size: int = self._facts[FACTS.size]
        return size

    def retracted(self) -> int:
        """Number of CGSs that the last report retracted."""
        return int(self.box.facts[FACTS.retracted])

    def states(self, ring: Ring) -> Array:
        """The CGSs in lexicographic order, (size, n) state numbers."""
        rows = np.zeros((self.size(ring), len(self._ends[0])), np.int64)
        if len(rows) and least(ring, self._ends[0]) and greatest(ring, self._ends[1]):
            list_states(self.box, *self._ends, rows)
        return rows

    def possibly(self, ring: Ring, predicate: Predicate | Function) -> bool:
        """Pos: True if the predicate holds in a CGS."""
        verdict = self._verdict if predicate is self._asked else self._judge(ring, predicate)
        if verdict != OTHER:
            return verdict != IMPOSSIBLE
        if not isinstance(predicate, Predicate):
            return any(predicate(tuple(row)) for row in self.states(ring).tolist())
        return self.size(ring) > 0 and self._mark(ring, predicate)

    def definitely(self, ring: Ring, predicate: Predicate | Function) -> bool:
        """Def over the window: True if each path from C_min to C_max passes a CGS where the predicate holds."""
        verdict = self._verdict if predicate is self._asked else self._judge(ring, predicate)
        if verdict not in (OTHER, CLOCKS_DISAGREE):
            return verdict == UNAVOIDABLE
        if not self.size(ring) or not self._mark(ring, predicate):
            return False
        return bool(self._avoids(ring, self.box, *self._ends, self._true, self._reached))

    def _judge(self, ring: Ring, predicate: Predicate | Function) -> int:
        """The verdict on a conjunction, or OTHER."""
        self._verdict, self._asked = self._conjunctions.verdict(ring, predicate), predicate
        return self._verdict

    def _mark(self, ring: Ring, predicate: Predicate | Function) -> bool:
        """Sets the bits of `_true` where a predicate holds; returns True if it holds in a CGS."""
        if self._marked is not None and self._marked[0] is predicate:
            return bool(self._marked[1])
        if isinstance(predicate, Predicate):
            holds = self._bind(ring, predicate).holds(self._true)
            self._marked = (predicate, holds)
            return holds
        rows = self.states(ring)
        mark_true(self.box, rows, np.array([bool(predicate(tuple(row))) for row in rows.tolist()], bool), self._true)
        self._marked = None  # a function may return something else next time
        return bool(any_true(self.box, self._true))

    def _bind(self, ring: Ring, predicate: Predicate) -> BoundPredicate:
        key = id(predicate)
        if key not in self._bound:
            if len(self._bound) == KEPT:
                del self._bound[next(iter(self._bound))]
            self._bound[key] = predicate, BoundPredicate(predicate, ring, self.box)  # the reference keeps its id unique
        return self._bound[key][1]


@compiled_noref
def push(ring: Ring, box: Box, process: int, number: int, clock: Array, lo: int, hi: int) -> Any:
    """Takes one report and performs all releases."""
    status = accept(ring, process, number, clock, lo, hi, 0)
    if status < 0:
        return status
    box.facts[FACTS.retracted] = 0
    follow(ring, box)
    while status == NO_ROOM:
        status = accept(ring, process, number, clock, lo, hi, 0)
        follow(ring, box)
    return status


@compiled_noref
def take_note(ring: Ring, box: Box, process: int, number: int, clock: Array, lo: int) -> Any:
    """Takes a clock heartbeat and performs all releases."""
    status = note(ring, process, number, clock, lo)
    if status >= 0:
        box.facts[FACTS.retracted] = 0
        follow(ring, box)
    return status


@compiled_noref
def begin_anew(ring: Ring, box: Box, process: int, number: int) -> Any:
    """Restarts a process and performs all releases."""
    status = renew(ring, process, number)
    if status >= 0:
        box.facts[FACTS.retracted] = 0
        follow(ring, box)
    return status


@compiled_inline
def follow(ring: Ring, box: Box) -> None:
    """Updates the lattice after an input, release by release."""
    if ring.meta[META.emptied] >= 0:
        drop(box, ring.meta[META.emptied])
    process = release(ring)
    while process >= 0:
        step(ring, box, process)
        process = release(ring)


@compiled_noref
def unavoidable_now(ring: Ring, box: Box, low: Array, high: Array, numbers: Array, true: Array, reached: Array) -> bool:
    """`walk_box.unavoidable` between the current ends of the lattice."""
    least(ring, low)
    greatest(ring, high)
    return unavoidable(box, low, high, true, reached, numbers)
