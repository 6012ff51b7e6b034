"""Algorithms 1 to 3 of Yang et al., Design of a Sliding Window over Asynchronous Event Streams (2011), section 5.

The lattice of the windows grows from its greatest element and is pruned from its least. Three corrections:

1. Line 2 of Algorithm 2 looks, in an empty lattice, for a consistent global state with the new state and a lower bound of
   another window. If the window of the new state was empty before, there may be none although the lattice grows: the
   theorem that justifies the line (4.2) steps down to the predecessor of the new state. Here the least consistent global
   state with the new state is computed instead. `printed=True` keeps the line.
2. The order of two states is decided by only the dense clock of the later one; the end of the latest state of a process is
   not assumed to be infinite.
3. States of a process are enqueued in the order of their numbers, not of their arrival: theorems 4 to 7 are about windows
   without gaps. The caller ensures this; a gap is refused.
"""

import itertools
from collections import deque
from collections.abc import Sequence

from reference.latwin import Clock, Global, advanced, consistent


class PaperLatWin:
    """The consistent global states of the windows as a set, with the least and the greatest."""

    def __init__(self, processes: int, window: Sequence[int], *, printed: bool = False) -> None:
        self.windows: list[deque[int]] = [deque() for _ in range(processes)]
        self.sizes = list(window)
        self.clocks: dict[tuple[int, int], Clock] = {}
        self.states: set[Global] = set()
        self.minimal: Global | None = None
        self.maximal: Global | None = None
        self.printed = printed
        self.grown = self.pruned = 0  # numbers of states that the last push added and deleted

    def push(self, process: int, state: int, clock: Clock) -> None:
        """Algorithm 1: enqueue, slide, grow, prune."""
        window = self.windows[process]
        if window and state != window[-1] + 1:
            raise ValueError(f"process {process}: found state {state}, expected {window[-1] + 1}")
        old_latest = window[-1] if window else None
        stale = window.popleft() if len(window) == self.sizes[process] else None
        window.append(state)
        self.clocks[process, state] = clock
        self.grown = self.pruned = 0
        self._grow(process, state, old_latest)
        self._prune(process, stale)
        if stale is not None:
            del self.clocks[process, stale]

    def _is_state(self, state: Global) -> bool:
        return all((p, s) in self.clocks for p, s in enumerate(state)) and consistent(self.clocks, state)

    def _grow(self, k: int, s: int, old_latest: int | None) -> None:
        """Algorithm 2, lines 1 to 9."""
        if not self.states:
            one = self._seed_printed(k, s) if self.printed else self._seed(k, s)
            if one is not None:
                self._add(one, k, s, was_empty=True)
        elif self.maximal is not None and self.maximal[k] == old_latest:
            following = (*self.maximal[:k], s, *self.maximal[k + 1 :])
            if self._is_state(following):
                self._add(following, k, s, was_empty=False)

    def _seed_printed(self, k: int, s: int) -> Global | None:
        """Line 2: a consistent global state with the new state and the lower bound of another window."""
        choices = [[s] if p == k else list(window) for p, window in enumerate(self.windows)]
        for state in itertools.product(*choices):
            lower = any(p != k and state[p] == window[0] for p, window in enumerate(self.windows))
            if lower and consistent(self.clocks, state):
                return state
        return None

    def _seed(self, k: int, s: int) -> Global | None:
        """The least consistent global state with the new state: constituents that precede another advance."""
        if not all(self.windows):
            return None
        state = [window[0] for window in self.windows]
        state[k] = s
        while True:
            for i, j in itertools.permutations(range(len(state)), 2):
                needed = self.clocks[j, state[j]][i]
                if needed > state[i]:
                    if i == k or needed > self.windows[i][-1]:
                        return None
                    state[i] = needed
                    break
            else:
                return tuple(state)

    def _add(self, one: Global, k: int, s: int, *, was_empty: bool) -> None:
        """Lines 10 to 19: the state and all predecessors and successors that are not there yet."""
        edge = [one]
        self.states.add(one)
        while edge:
            state = edge.pop()
            self.grown += 1
            around = [advanced(state, p, by) for p in range(len(state)) for by in (1, -1)]
            for other in around:
                if other not in self.states and other[k] == s and self._is_state(other):
                    self.states.add(other)
                    edge.append(other)
            if state[k] == s and not any(self._is_state(advanced(state, p)) for p in range(len(state))):
                self.maximal = state
            if was_empty and not any(self._is_state(advanced(state, p, -1)) for p in range(len(state)) if p != k):
                self.minimal = state

    def _prune(self, k: int, stale: int | None) -> None:
        """Algorithm 3."""
        if self.minimal is None or self.maximal is None or stale is None or self.minimal[k] != stale:
            return
        if self.maximal[k] == stale:
            self.pruned = len(self.states)
            self.states.clear()
            self.minimal = self.maximal = None
            return
        edge = [self.minimal]
        deleted = {self.minimal}
        self.states.discard(self.minimal)
        lowest = None
        while edge:
            state = edge.pop()
            self.pruned += 1
            for p in range(len(state)):
                after = advanced(state, p)
                if after not in self.states:
                    continue
                if after[k] == stale:
                    self.states.discard(after)
                    deleted.add(after)
                    edge.append(after)
                elif lowest is None or all(a <= b for a, b in zip(after, lowest, strict=True)):
                    lowest = after
        self.minimal = lowest
